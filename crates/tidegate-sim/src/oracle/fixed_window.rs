//! A list of who came when; windows are drawn over it.

use std::time::Duration;

use super::admissions::{Admissions, Window};
use super::nanos;

/// At most so many in each window of the clock, `[k * window, (k + 1) * window)`.
#[derive(Clone, Debug)]
pub struct FixedWindowOracle {
    permits: i128,
    window: i128,
    admissions: Admissions,
}

impl FixedWindowOracle {
    /// Nobody has come yet.
    pub fn new(permits: u64, window: Duration) -> Self {
        Self {
            permits: i128::from(permits),
            window: nanos(window),
            admissions: Admissions::default(),
        }
    }
}

impl Window for FixedWindowOracle {
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
        Some((at / self.window + 1) * self.window)
    }

    fn counted(&self, now: u64) -> i128 {
        let window = self.admissions.now(now) / self.window;
        self.admissions
            .list
            .iter()
            .filter(|admission| admission.at / self.window == window)
            .map(|admission| admission.permits)
            .sum()
    }
}
