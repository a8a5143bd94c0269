//! Faults that users of other systems reported, or that reading their source shows: each is
//! looked for here. Named after project and report.

mod burst;
mod change;
mod sharing;
mod waits;

use core::time::Duration;

use tidegate::{Ask, KeyedLimiter, KeyedLimiterBuilder, Limiter, ManualClock, Quota, Timestamp};

const START: Timestamp = Timestamp::from_secs(1_700_000_000);

/// A limiter, and the clock it reads.
fn timed(limit: impl Into<tidegate::Algorithm>) -> (Limiter<ManualClock>, ManualClock) {
    let clock = ManualClock::new(START);
    let limiter = Limiter::with_clock(limit, clock.clone()).expect("valid");
    (limiter, clock)
}

fn keyed(limit: impl Into<tidegate::Algorithm>) -> (KeyedLimiterBuilder<ManualClock>, ManualClock) {
    let clock = ManualClock::new(START);
    (KeyedLimiter::builder(limit).clock(clock.clone()), clock)
}

/// How many of so many single permits pass now.
fn pass(limiter: &Limiter<ManualClock>, asked: u64) -> u64 {
    (0..asked).filter(|_| limiter.check().is_allowed()).count() as u64
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
