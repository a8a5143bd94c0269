//! How long to wait before the next attempt: exponential, with full jitter. Chance is an argument.

use std::time::Duration;

/// The ceiling of the first wait.
pub(crate) const FIRST: Duration = Duration::from_millis(25);

/// The ceiling of every later wait.
pub(crate) const LONGEST: Duration = Duration::from_millis(500);

/// Attempts that failed in a row, as far as they matter.
///
/// A wait is anything between nothing and a ceiling that doubles: nodes that lost a server at one
/// moment come back spread over that time, and not at one moment again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Backoff {
    failed: u32,
}

impl Backoff {
    /// The next wait, for a random number that is spread evenly over all of `u64`.
    pub(crate) fn next(&mut self, random: u64) -> Duration {
        let ceiling = self.ceiling().as_nanos();
        self.failed = self.failed.saturating_add(1);
        let nanos = (u128::from(random) * ceiling) >> 64;
        Duration::from_nanos(nanos as u64)
    }

    /// The longest that the next wait may be.
    pub(crate) fn ceiling(self) -> Duration {
        // 2^5 times the first is above the longest already.
        (FIRST * 2_u32.pow(self.failed.min(5))).min(LONGEST)
    }

    /// As if nothing had failed.
    pub(crate) fn reset(&mut self) {
        self.failed = 0;
    }
}

/// A random number, for what is no secret.
pub(crate) fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ceilings_double_up_to_the_longest() {
        let mut backoff = Backoff::default();
        let waits: Vec<_> = (0..8)
            .map(|_| backoff.next(u64::MAX).as_millis() + 1)
            .collect();
        assert_eq!(waits, [25, 50, 100, 200, 400, 500, 500, 500]);
        backoff.reset();
        assert_eq!(backoff.ceiling(), FIRST);
    }

    #[test]
    fn the_jitter_is_full() {
        assert_eq!(Backoff::default().next(0), Duration::ZERO);
        let half = Backoff::default().next(1 << 63);
        assert_eq!(half, FIRST / 2);
    }

    #[test]
    fn numbers_differ() {
        assert_ne!(random(), random());
    }
}
