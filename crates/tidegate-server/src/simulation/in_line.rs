//! Requests that wait in line for places, and the order of what is told.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use tidegate::Timestamp;
use tidegate_node::{Pending, Timer, Turn};

use super::DecisionLine;
use crate::trace::TraceRequest;

/// A request with where it stands in the trace.
#[derive(Debug)]
pub(super) struct Asked {
    /// Its line.
    pub(super) line: usize,
    /// Its place among all that is told.
    pub(super) number: u64,
    pub(super) request: Box<TraceRequest>,
    pub(super) came: Timestamp,
}

/// Those who wait in line.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// By their numbers.
    waits: BTreeMap<u64, Waits>,
    by_deadline: BTreeSet<(Timestamp, u64)>,
    /// The numbers of those who have been woken.
    woken: Arc<Mutex<VecDeque<u64>>>,
}

/// A request that waits.
struct Waits {
    asked: Asked,
    until: Timestamp,
    turn: Pin<Box<dyn Future<Output = Turn> + Send>>,
    waker: Waker,
}

impl fmt::Debug for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waits")
            .field("asked", &self.asked)
            .field("until", &self.until)
            .finish_non_exhaustive()
    }
}

/// Rings for one who waits.
struct Bell {
    number: u64,
    woken: Arc<Mutex<VecDeque<u64>>>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        let mut woken = self.woken.lock().unwrap_or_else(PoisonError::into_inner);
        woken.push_back(self.number);
    }
}

/// Time is the trace's: who waits too long is told so when the trace gets there.
#[derive(Debug)]
struct Traces;

impl Timer for Traces {
    fn sleep_until(&self, _at: Timestamp) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::pending())
    }
}

impl Waiting {
    /// Stands in line. What comes of it at once is woken for like everything else.
    pub(super) fn join(&mut self, asked: Asked, pending: Pending) {
        let until = pending.until().unwrap_or(Timestamp::MAX);
        let number = asked.number;
        let woken = Arc::clone(&self.woken);
        let waker = Waker::from(Arc::new(Bell { number, woken }));
        waker.wake_by_ref();
        self.by_deadline.insert((until, number));
        let waits = Waits {
            asked,
            until,
            turn: Box::pin(pending.wait(&Traces)),
            waker,
        };
        self.waits.insert(number, waits);
    }

    /// One for whom something has come of it.
    pub(super) fn next(&mut self) -> Option<(Asked, Turn)> {
        loop {
            let woken = self.woken.lock().map_or_else(
                |poisoned| poisoned.into_inner().pop_front(),
                |mut woken| woken.pop_front(),
            );
            let number = woken?;
            let Some(one) = self.waits.get_mut(&number) else {
                continue;
            };
            let mut context = Context::from_waker(&one.waker);
            let Poll::Ready(turn) = one.turn.as_mut().poll(&mut context) else {
                continue;
            };
            return self.leave(number).map(|asked| (asked, turn));
        }
    }

    /// The first who does not wait until then (`None`: for ever), and its deadline.
    pub(super) fn next_late(&mut self, then: Option<Timestamp>) -> Option<(Asked, Timestamp)> {
        let (until, number) = *self.by_deadline.first()?;
        if then.is_some_and(|then| until >= then) {
            return None;
        }
        self.leave(number).map(|asked| (asked, until))
    }

    /// The request of this line, which waits no more.
    pub(super) fn give_up(&mut self, line: usize) -> Option<Asked> {
        let one = self.waits.values().find(|one| one.asked.line == line)?;
        self.leave(one.asked.number)
    }

    fn leave(&mut self, number: u64) -> Option<Asked> {
        let Waits { asked, until, .. } = self.waits.remove(&number)?;
        self.by_deadline.remove(&(until, number));
        Some(asked)
    }
}

/// What is told, in the order of the trace: who is decided on later is waited for.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// The number of the first that has not been fetched.
    first: u64,
    lines: VecDeque<Option<DecisionLine>>,
}

impl Told {
    pub(super) fn next_number(&mut self) -> u64 {
        self.lines.push_back(None);
        self.first + self.lines.len() as u64 - 1
    }

    pub(super) fn tell(&mut self, number: u64, decision: DecisionLine) {
        let at = number.checked_sub(self.first);
        let at = at.and_then(|at| usize::try_from(at).ok());
        if let Some(line) = at.and_then(|at| self.lines.get_mut(at)) {
            *line = Some(decision);
        }
    }

    /// The next one, if it and all before it have been told.
    pub(super) fn fetch(&mut self) -> Option<DecisionLine> {
        let decision = self.lines.front_mut()?.take()?;
        self.lines.pop_front();
        self.first += 1;
        Some(decision)
    }
}
