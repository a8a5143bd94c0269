//! When to ask again after no answer.

use std::time::Duration;

use tidegate::Timestamp;

use super::jitter::Jitter;

const FIRST: Duration = Duration::from_millis(25);
const MOST: Duration = Duration::from_millis(500);

/// Calls that failed in a row, and when the next may be made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attempts {
    failed: u32,
    not_before: Timestamp,
}

impl Attempts {
    pub(crate) fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// Waits twice as long as before, less a random part, so that nodes come back one by one.
    pub(crate) fn failed(&mut self, now: Timestamp, jitter: &mut Jitter) {
        let longest = FIRST.saturating_mul(1 << self.failed.min(8)).min(MOST);
        self.failed = self.failed.saturating_add(1);
        self.not_before = now.after(jitter.up_to(longest, 10));
    }

    pub(crate) const fn not_before(&self) -> Timestamp {
        self.not_before
    }

    pub(crate) fn is_waiting(&self, now: Timestamp) -> bool {
        now < self.not_before
    }
}
