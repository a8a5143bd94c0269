//! One who waits.

use core::task::Waker;

use crate::enforce::Receipt;
use crate::key_hash::KeyHash;
use crate::sync::{AtomicU64, Mutex, Ordering, lock};
use crate::{Ask, Decision, Retry};

/// A caller in a line, shared between the line and the caller.
#[derive(Debug)]
pub struct Waiter {
    key: KeyHash,
    ask: Ask,
    /// Whether it waits for an entry that several keys share.
    shared: bool,
    /// Its number in the line, once it stands there.
    number: AtomicU64,
    progress: Mutex<Progress>,
}

#[derive(Debug)]
enum Progress {
    Waiting(Option<Waker>),
    Decided(Decision, Option<Receipt>),
    /// The answer has been fetched, or the caller has gone.
    Over,
}

/// What a caller that gives up leaves behind.
#[derive(Debug)]
pub(crate) enum LeftBehind {
    /// It still stands in line.
    Place,
    /// It was let in a moment ago.
    Receipt(Receipt),
    Nothing,
}

/// What became of the first in line.
#[derive(Debug)]
pub(super) enum Served {
    GoesOnWaiting,
    /// There is an answer, and who is to be woken for it.
    Decided(Option<Waker>),
    /// The caller had gone away.
    Gone,
}

impl Waiter {
    pub(crate) const fn key(&self) -> KeyHash {
        self.key
    }

    pub(crate) const fn ask(&self) -> &Ask {
        &self.ask
    }

    pub(crate) const fn is_shared(&self) -> bool {
        self.shared
    }

    pub(crate) fn new(key: KeyHash, ask: Ask, shared: bool) -> Self {
        Self {
            key,
            ask,
            shared,
            number: AtomicU64::new(0),
            progress: Mutex::new(Progress::Waiting(None)),
        }
    }

    /// Its number; it is set and read under the line's lock.
    pub(super) fn number(&self) -> u64 {
        self.number.load(Ordering::Relaxed)
    }

    pub(super) fn set_number(&self, number: u64) {
        self.number.store(number, Ordering::Relaxed);
    }

    /// Lets the caller in if `take` does, which is called only if there is still a caller.
    pub(super) fn serve(&self, take: impl FnOnce() -> (Decision, Option<Receipt>)) -> Served {
        let mut progress = lock(&self.progress);
        let Progress::Waiting(waker) = &mut *progress else {
            return Served::Gone;
        };
        let (decision, receipt) = take();
        if decision.retry() == Some(Retry::OnRelease) {
            return Served::GoesOnWaiting;
        }
        let waker = waker.take();
        *progress = Progress::Decided(decision, receipt);
        Served::Decided(waker)
    }

    /// The answer, if there is one; else `waker` is woken when there is.
    pub(super) fn poll(&self, waker: &Waker) -> Option<(Decision, Option<Receipt>)> {
        let mut progress = lock(&self.progress);
        if let Progress::Waiting(known) = &mut *progress {
            match known {
                Some(known) => known.clone_from(waker),
                None => *known = Some(waker.clone()),
            }
            return None;
        }
        match core::mem::replace(&mut *progress, Progress::Over) {
            Progress::Decided(decision, receipt) => Some((decision, receipt)),
            // Polled after its end.
            Progress::Waiting(_) | Progress::Over => None,
        }
    }

    pub(super) fn give_up(&self) -> LeftBehind {
        let mut progress = lock(&self.progress);
        match core::mem::replace(&mut *progress, Progress::Over) {
            Progress::Waiting(_) => LeftBehind::Place,
            Progress::Decided(_, Some(receipt)) => LeftBehind::Receipt(receipt),
            Progress::Decided(_, None) | Progress::Over => LeftBehind::Nothing,
        }
    }
}
