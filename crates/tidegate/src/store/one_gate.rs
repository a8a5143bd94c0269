//! The store of one key of a limit whose permits come back, with the line of those who wait.

use std::sync::Arc;

use super::{AtomicCell, StateCell};
use crate::enforce::{Enforce, NO_KEY, Receipt, StoreId};
use crate::gate::{Concurrency, Inside};
use crate::key_hash::KeyHash;
use crate::meter::State;
use crate::queue::{Joined, Line, Waiter, wake};
use crate::store::one_key::peek;
use crate::store::vacated::{Vacate, Vacating};
use crate::sync::{AtomicU64, Mutex, Ordering, lock};
use crate::{Ask, Decision, Meter, Timestamp};

/// Places in one word, and who waits for them.
///
/// The state says whether anybody does, so that nobody else looks at the line. The line's lock is
/// taken before the state is held still.
#[derive(Debug)]
pub(crate) struct OneGate {
    max: AtomicU64,
    inside: AtomicCell<Inside>,
    line: Mutex<Line>,
    /// Who wants to know when nobody is inside.
    vacating: Mutex<Vacating>,
    id: StoreId,
}

impl OneGate {
    pub(crate) fn new(gate: &Concurrency) -> Self {
        Self {
            max: AtomicU64::new(gate.max()),
            inside: AtomicCell::new(Inside::default()),
            line: Mutex::new(Line::default()),
            vacating: Mutex::new(Vacating::default()),
            id: StoreId::next(),
        }
    }

    #[inline]
    fn gate(&self) -> Concurrency {
        Concurrency::of(self.max.load(Ordering::Relaxed))
    }

    /// Changes how many places there are. Those inside stay; those who wait go in, or, where no
    /// waiting helps any more, are told so.
    pub(crate) fn set_max(&self, gate: &Concurrency) {
        self.max.store(gate.max(), Ordering::Relaxed);
        self.serve();
    }

    pub(crate) fn in_use(&self) -> u64 {
        self.inside.hold(|inside| inside.permits())
    }

    #[inline]
    pub(crate) fn take(&self, ask: &Ask) -> (Decision, Option<Receipt>) {
        let (decision, taken) = self.inside.check(&self.gate(), Timestamp::EPOCH, ask);
        (
            decision,
            taken.map(|taken| Receipt::new(taken, NO_KEY, self.id, false)),
        )
    }

    /// Lets those in who are first in line.
    #[cold]
    fn serve(&self) {
        let mut woken = Vec::new();
        let mut line = lock(&self.line);
        self.inside.hold(|inside| {
            let gate = self.gate();
            inside.set_waited_for(false);
            line.serve(&mut woken, |waiter| {
                let plan = gate.plan(inside, Timestamp::EPOCH, waiter.ask());
                let taken = plan.change.map(|change| gate.commit(inside, change));
                let receipt = taken.map(|taken| Receipt::new(taken, NO_KEY, self.id, false));
                (plan.decision, receipt)
            });
            inside.set_waited_for(!line.is_empty());
        });
        drop(line);
        wake(woken);
    }
}

impl Enforce for OneGate {
    fn check(&self, _key: KeyHash, _now: Timestamp, ask: &Ask) -> (Decision, Option<Receipt>) {
        self.take(ask)
    }

    fn peek(&self, _key: KeyHash, now: Timestamp, ask: &Ask) -> Decision {
        self.inside
            .hold(|inside| peek(&self.gate(), inside, now, ask))
    }

    fn prepare(&self, _key: KeyHash, _now: Timestamp) {}

    fn hold(
        &self,
        _key: KeyHash,
        now: Timestamp,
        ask: &Ask,
        rest: &mut dyn FnMut(Decision) -> bool,
    ) -> Option<Receipt> {
        let gate = self.gate();
        let taken = self.inside.hold(|inside| {
            let plan = gate.plan(inside, now, ask);
            let agreed = rest(plan.decision);
            let change = plan.change.filter(|_| agreed)?;
            Some(gate.commit(inside, change))
        })?;
        Some(Receipt::new(taken, NO_KEY, self.id, false))
    }

    fn give_back(&self, receipt: Receipt, now: Timestamp) -> Result<(), Receipt> {
        if receipt.store() != self.id {
            return Err(receipt);
        }
        let after = self.inside.hold(|inside| {
            self.gate().undo(inside, receipt.taken(), now);
            *inside
        });
        if after.is_waited_for() {
            self.serve();
        }
        if after.is_draining() && after.permits() == 0 {
            Vacating::one_less(&self.vacating);
        }
        Ok(())
    }

    fn reset(&self, _key: KeyHash, _now: Timestamp) -> bool {
        self.inside
            .hold(|inside| self.gate().at_stake(inside, Timestamp::EPOCH).is_some())
    }

    fn join(&self, key: KeyHash, _now: Timestamp, ask: &Ask, length: u64) -> Joined {
        let mut line = lock(&self.line);
        let mut joins = false;
        let (decision, receipt) = self.inside.hold(|inside| {
            let gate = self.gate();
            let plan = gate.plan(inside, Timestamp::EPOCH, ask);
            joins = plan.decision.is_on_release() && line.has_room(ask, length);
            if joins {
                inside.set_waited_for(true);
            }
            let taken = plan.change.map(|change| gate.commit(inside, change));
            let receipt = taken.map(|taken| Receipt::new(taken, NO_KEY, self.id, false));
            (plan.decision, receipt)
        });
        if !joins {
            return Joined::Decided(decision, receipt);
        }
        let waiter = Arc::new(Waiter::new(key, *ask, false));
        let is_first = line.join(Arc::clone(&waiter));
        drop(line);
        if is_first {
            self.serve();
        }
        Joined::Waiting(waiter)
    }

    fn leave(&self, waiter: &Waiter) {
        lock(&self.line).leave(waiter);
        // Who was behind it may fit where it did not.
        self.serve();
    }

    fn store_id(&self) -> StoreId {
        self.id
    }

    fn is_gate(&self) -> bool {
        true
    }
}

impl Vacate for OneGate {
    fn vacating(&self) -> &Mutex<Vacating> {
        &self.vacating
    }

    fn mark(&self) -> usize {
        self.inside.hold(|inside| {
            let occupied = inside.permits() > 0;
            inside.set_draining(occupied);
            usize::from(occupied)
        })
    }
}

#[cfg(all(test, not(loom), not(shuttle)))]
mod tests {
    use core::future::Future;
    use core::pin::Pin;
    use core::task::{Context, Waker};

    use super::*;
    use crate::store::Vacated;

    #[test]
    fn who_does_not_wait_for_the_end_any_more_leaves_nothing_behind() {
        let gate = Arc::new(OneGate::new(&Concurrency::of(1)));
        let inside = gate.take(&Ask::ONE).1.expect("free");
        let mut context = Context::from_waker(Waker::noop());
        let vacated = || Vacated::of(&gate);
        let mut waits = vacated();
        assert!(Pin::new(&mut waits).poll(&mut context).is_pending());
        for _ in 0..10 {
            let mut gives_up = vacated();
            assert!(Pin::new(&mut gives_up).poll(&mut context).is_pending());
            assert!(Pin::new(&mut gives_up).poll(&mut context).is_pending());
        }
        assert_eq!(lock(&gate.vacating).len(), 1);
        gate.give_back(inside, Timestamp::EPOCH).expect("its own");
        assert_eq!(lock(&gate.vacating).len(), 0);
        assert!(Pin::new(&mut waits).poll(&mut context).is_ready());
    }
}
