//! A list of who came when; who came in the last window of the clock counts in part.

use std::time::Duration;

use super::admissions::{Admissions, Window};
use super::{ceil_div, nanos};

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

impl Window for SlidingCounterOracle {
    fn permits(&self) -> i128 {
        self.permits
    }

    fn admissions(&self) -> &Admissions {
        &self.admissions
    }

    fn admissions_mut(&mut self) -> &mut Admissions {
        &mut self.admissions
    }

    fn leaves(&self, _at: i128) -> Option<i128> {
        None
    }

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

    /// Of a permit of the last window counts as much as of that window is left.
    fn whole(&self) -> i128 {
        self.window
    }
}
