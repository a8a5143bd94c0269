//! Waiting until nobody is inside: for a store whose permits come back.

use core::fmt::Debug;
use core::future::Future;
use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::queue::wake;
use crate::sync::{Mutex, lock};

/// A store that somebody may want to know of when nobody is inside.
pub(crate) trait Vacate: Debug + Send + Sync {
    /// Who wants to know.
    fn vacating(&self) -> &Mutex<Vacating>;

    /// Marks each part of the store that somebody is inside of, and says how many those are. Of
    /// each that is marked, [`one_less`](Vacating::one_less) is told once nobody is inside.
    fn mark(&self) -> usize;
}

/// Who wants to know when nobody is inside, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Vacating {
    wakers: BTreeMap<u64, Waker>,
    joined: u64,
    /// Parts that were marked when somebody last looked, and are still to be told of. It may be
    /// too few, where two look at a time: then they are woken early, and look again.
    parts: usize,
}

impl Vacating {
    /// Nobody is inside of a part any more that was marked. Not to be called under its lock.
    pub(crate) fn one_less(vacating: &Mutex<Self>) {
        let mut vacating = lock(vacating);
        vacating.parts = vacating.parts.saturating_sub(1);
        if vacating.parts > 0 {
            return;
        }
        let woken = mem::take(&mut vacating.wakers);
        drop(vacating);
        wake(woken.into_values().collect());
    }

    #[cfg(all(test, not(loom), not(shuttle)))]
    pub(super) fn len(&self) -> usize {
        self.wakers.len()
    }
}

/// Completes when nobody is inside of a store; of one whose permits do not come back, at once. It
/// needs no runtime.
///
/// Cancel safe: dropped, it leaves nothing behind.
#[derive(Debug)]
#[must_use = "futures do nothing unless they are polled"]
pub struct Vacated {
    store: Arc<dyn Vacate>,
    /// Its number among those who want to know, once it is one of them.
    number: Option<u64>,
}

impl Vacated {
    pub(crate) fn of<S: Vacate + 'static>(store: &Arc<S>) -> Self {
        Self {
            store: Arc::clone(store) as Arc<dyn Vacate>,
            number: None,
        }
    }
}

impl Future for Vacated {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let store = Arc::clone(&self.store);
        // Held while parts are marked: who empties one of them waits to say so.
        let mut vacating = lock(store.vacating());
        vacating.parts = store.mark();
        if vacating.parts == 0 {
            return Poll::Ready(());
        }
        let number = *self.number.get_or_insert_with(|| {
            vacating.joined += 1;
            vacating.joined
        });
        vacating.wakers.insert(number, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Vacated {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let waker = lock(self.store.vacating()).wakers.remove(&number);
            // Not under the lock: whatever a waker is made of goes with it.
            drop(waker);
        }
    }
}
