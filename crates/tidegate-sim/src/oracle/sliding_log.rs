//! A list of who came when, looked back over.

use std::time::Duration;

use super::admissions::{Admissions, Window};
use super::nanos;

/// At most so many in the last `window`, whenever one looks; who came exactly `window` ago is out.
#[derive(Clone, Debug)]
pub struct SlidingLogOracle {
    permits: i128,
    window: i128,
    admissions: Admissions,
}

impl SlidingLogOracle {
    /// Nobody has come yet.
    pub fn new(permits: u64, window: Duration) -> Self {
        Self {
            permits: i128::from(permits),
            window: nanos(window),
            admissions: Admissions::default(),
        }
    }

    /// The same list under another limit. Who was out stays out.
    pub fn change(&mut self, permits: u64, window: Duration, now: u64) {
        self.admissions.latest = self.admissions.now(now);
        let (latest, old) = (self.admissions.latest, self.window);
        self.admissions
            .list
            .retain(|admission| latest - admission.at < old);
        self.permits = i128::from(permits);
        self.window = nanos(window);
    }
}

impl Window for SlidingLogOracle {
    fn permits(&self) -> i128 {
        self.permits
    }

    fn admissions(&self) -> &Admissions {
        &self.admissions
    }

    fn admissions_mut(&mut self) -> &mut Admissions {
        &mut self.admissions
    }

    fn leaves(&self, at: i128) -> Option<i128> {
        Some(at + self.window)
    }

    fn counted(&self, now: u64) -> i128 {
        let now = self.admissions.now(now);
        self.admissions
            .list
            .iter()
            .filter(|admission| now - admission.at < self.window)
            .map(|admission| admission.permits)
            .sum()
    }
}
