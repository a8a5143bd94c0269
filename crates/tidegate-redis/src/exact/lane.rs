//! Who waits for the same limits: at most one call in flight for all of them.
//!
//! Pure: time is an argument, and calls are made by whoever holds this. Callers are answered in
//! the order in which they came, each exactly once. Those that come while a call is in flight wait
//! for the next one, which decides for all of them; so the number of calls does not grow with the
//! number of callers, and with few callers nobody waits for anybody.

use std::collections::VecDeque;
use std::time::Duration;

use tidegate::Ask;

use super::script::{Group, Reply};

/// The most callers that wait for the same limits.
pub(crate) const MAX_WAITING: usize = 65_536;
/// The most callers that one call decides for.
pub(crate) const MAX_BATCH: usize = 4_096;
/// The most groups of equal asks in a call: what bounds the time that Redis takes for it.
pub(crate) const MAX_GROUPS: usize = 128;

/// A caller's place, by which it can leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place(pub(crate) u64);

/// The callers of one set of limits. `T` is how a caller is told.
#[derive(Debug)]
pub(crate) struct Lane<T> {
    waiting: VecDeque<Waiting<T>>,
    in_flight: Option<VecDeque<Waiting<T>>>,
    linger: Duration,
}

#[derive(Debug)]
struct Waiting<T> {
    place: Place,
    ask: Ask,
    since: Duration,
    /// `None` where the caller has left, and a call is in flight that may grant it something.
    caller: Option<T>,
}

/// What is to be done now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Nobody waits.
    Rest,
    /// Nothing before this time.
    Until(Duration),
    /// Make a call of these groups, and come back with its answer.
    Call(Vec<Group>),
}

/// How a call ended for those it was made for.
#[derive(Debug)]
pub(crate) struct Ended<T> {
    /// Each caller's part of the answer, in the order in which they came.
    pub(crate) answers: Vec<(T, Part)>,
    /// Permits that were granted to callers who have left.
    pub(crate) abandoned: u64,
}

/// A caller's part of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Which group it was in.
    pub(crate) group: usize,
    /// How many of its group were granted after it; `None` where it was refused.
    pub(crate) after: Option<u64>,
    pub(crate) ask: Ask,
}

impl<T> Lane<T> {
    /// Nobody waits yet. A call that would be made for a single caller `linger`s that long, for
    /// others to come.
    pub(crate) fn new(linger: Duration) -> Self {
        Self {
            waiting: VecDeque::new(),
            in_flight: None,
            linger,
        }
    }

    /// Joins the end of the line, with a place after all that were given before (in other lanes,
    /// too: a caller may want to leave one that has ended). Returns whether there was room.
    pub(crate) fn join(&mut self, now: Duration, place: Place, ask: Ask, caller: T) -> bool {
        if self.waiting.len() >= MAX_WAITING {
            return false;
        }
        self.waiting.push_back(Waiting {
            place,
            ask,
            since: now,
            caller: Some(caller),
        });
        true
    }

    /// Leaves. `None` where the caller is not here any more: it was answered.
    pub(crate) fn leave(&mut self, place: Place) -> Option<T> {
        // Places ascend.
        if let Ok(at) = self.waiting.binary_search_by_key(&place, |w| w.place) {
            return self.waiting.remove(at)?.caller;
        }
        let in_flight = self.in_flight.as_mut()?;
        let at = in_flight.binary_search_by_key(&place, |w| w.place).ok()?;
        in_flight.get_mut(at)?.caller.take()
    }

    /// Whether nobody waits, and no call is in flight.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.in_flight.is_none()
    }

    /// What is to be done now. `can_grow` says which asks are decided together with their equals.
    pub(crate) fn turn(&mut self, now: Duration, can_grow: impl Fn(&Ask) -> bool) -> Turn {
        if self.in_flight.is_some() {
            // Whoever made that call comes back.
            return Turn::Rest;
        }
        let Some(first) = self.waiting.front() else {
            return Turn::Rest;
        };
        let due = first.since.saturating_add(self.linger);
        if now < due && self.waiting.len() < MAX_BATCH {
            return Turn::Until(due);
        }
        let mut groups: Vec<Group> = Vec::new();
        let mut batch = 0;
        for Waiting { ask, .. } in self.waiting.iter().take(MAX_BATCH) {
            let last = groups.last_mut();
            if let Some(last) = last.filter(|last| last.ask == *ask && can_grow(ask)) {
                last.requests += 1;
            } else if groups.len() < MAX_GROUPS {
                groups.push(Group {
                    requests: 1,
                    ask: *ask,
                });
            } else {
                break;
            }
            batch += 1;
        }
        self.in_flight = Some(self.waiting.drain(..batch).collect());
        Turn::Call(groups)
    }

    /// The call in flight was answered.
    pub(crate) fn answered(&mut self, reply: &Reply, groups: &[Group]) -> Ended<T> {
        let mut ended = Ended {
            answers: Vec::new(),
            abandoned: 0,
        };
        let mut callers = self.in_flight.take().unwrap_or_default().into_iter();
        for (group, (asked, granted)) in groups.iter().zip(&reply.groups).enumerate() {
            let requests = usize::try_from(asked.requests).unwrap_or(usize::MAX);
            for (at, waiting) in (0..).zip(callers.by_ref().take(requests)) {
                let after = granted.requests.checked_sub(at + 1);
                let Waiting { ask, caller, .. } = waiting;
                match caller {
                    Some(caller) => ended.answers.push((caller, Part { group, after, ask })),
                    None if after.is_some() => {
                        ended.abandoned = ended.abandoned.saturating_add(ask.permits());
                    }
                    None => {}
                }
            }
        }
        ended
    }

    /// The call in flight failed: whom it was made for.
    pub(crate) fn failed(&mut self) -> Vec<T> {
        let in_flight = self.in_flight.take().unwrap_or_default();
        in_flight.into_iter().filter_map(|w| w.caller).collect()
    }
}

#[cfg(test)]
mod tests;
