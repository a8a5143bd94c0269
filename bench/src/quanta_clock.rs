//! A `tidegate` clock on `quanta`: the same clock that governor uses by default.

use std::time::Duration;

use tidegate::{Clock, SystemClock, Timestamp};

/// Unix time when it was made, and the processor's counter from there.
#[derive(Clone, Debug)]
pub(crate) struct QuantaClock {
    clock: quanta::Clock,
    start: u64,
    unix: Timestamp,
}

impl QuantaClock {
    pub(crate) fn new() -> Self {
        let clock = quanta::Clock::new();
        let start = clock.raw();
        Self {
            clock,
            start,
            unix: SystemClock::new().now(),
        }
    }
}

impl Clock for QuantaClock {
    #[inline]
    fn now(&self) -> Timestamp {
        self.unix
            .after_nanos(self.clock.delta_as_nanos(self.start, self.clock.raw()))
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

/// A clock that is read once and stands: what a server does that reads it once per batch.
#[derive(Clone, Debug)]
pub(crate) struct CachedClock(pub(crate) Timestamp);

impl Clock for CachedClock {
    #[inline]
    fn now(&self) -> Timestamp {
        self.0
    }

    fn sleep(&self, _duration: Duration) {}
}
