//! A list of who came when; who came in the last window of the clock counts in part.

use std::time::Duration;

use super::admissions::Admissions;
use super::{Oracle, Request, Ticket, ceil_div, nanos, saturated};

/// At most so many, where each of this window of the clock counts once, and each of the window
/// before it by the part of that one which lies within the last `window`: an exact fraction.
#[derive(Clone, Debug)]
pub struct SlidingCounterOracle {
    permits: i128,
    window: i128,
    admissions: Admissions,
}

impl SlidingCounterOracle {
    /// Nobody has come yet.
    pub fn new(permits: u64, window: Duration) -> Self {
        Self {
            permits: i128::from(permits),
            window: nanos(window),
            admissions: Admissions::default(),
        }
    }

    /// What counts, in parts of `1 / window` of a permit.
    fn counted(&self, now: u64) -> i128 {
        let now = self.admissions.now(now);
        let began = now - now % self.window;
        let overlap = began - (now - self.window);
        let weight = |at: i128| {
            if at >= began {
                self.window
            } else if at >= began - self.window {
                overlap
            } else {
                0
            }
        };
        self.admissions
            .list
            .iter()
            .map(|admission| admission.permits * weight(admission.at))
            .sum()
    }

    /// The same list under another limit. Windows of another length do not know the old ones: what
    /// counts, in whole permits, came just now.
    pub fn change(&mut self, new: &Self, now: u64) {
        self.admissions.latest = self.admissions.now(now);
        if new.window != self.window {
            let permits = ceil_div(self.counted(now), self.window);
            self.admissions.list.clear();
            self.admissions.add(permits);
        }
        (self.permits, self.window) = (new.permits, new.window);
    }
}

impl Oracle for SlidingCounterOracle {
    fn limit(&self) -> u64 {
        saturated(self.permits)
    }

    fn delay_of(&self, request: Request) -> Option<u64> {
        let permits = i128::from(request.permits);
        let counted = self.counted(request.now);
        let fits = permits <= self.permits
            && counted + permits * self.window <= self.permits * self.window;
        (permits == 0 || fits).then_some(0)
    }

    fn ever_admits(&self, request: Request) -> bool {
        i128::from(request.permits) <= self.permits
    }

    fn remaining(&self, now: u64) -> u64 {
        let free = self.permits * self.window - self.counted(now);
        saturated(free.max(0) / self.window)
    }

    fn take(&mut self, request: Request) -> Ticket {
        self.admissions.take(request)
    }

    fn give_back(&mut self, now: u64, ticket: Ticket) {
        self.admissions.give_back(now, ticket);
    }

    fn boxed(&self) -> Box<dyn Oracle> {
        Box::new(self.clone())
    }
}
