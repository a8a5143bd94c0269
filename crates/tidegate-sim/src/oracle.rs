//! Each algorithm once more: slow, in exact arithmetic, and from another description than the
//! engine's. A token bucket is a level of tokens here, a window is a list of admissions, a gate is
//! a set of who is inside.
//!
//! Nothing in here shares a formula with the engine. Where an answer needs a search (how long
//! until?), the tests search by asking.

mod admissions;
mod calendar_window;
mod concurrency;
mod fixed_window;
mod interval_bucket;
mod nginx;
mod redis_cell;
mod sentinel_warm_up_queue;
mod sliding_counter;
mod sliding_log;
mod sliding_window;
mod smooth_bursty;
mod smooth_warm_up;
mod token_bucket;
mod window_from_first;

use std::fmt::Debug;
use std::time::Duration;

use tidegate::{Algorithm, Quota};

pub use self::calendar_window::CalendarWindowOracle;
pub use self::concurrency::ConcurrencyOracle;
pub use self::fixed_window::FixedWindowOracle;
pub use self::interval_bucket::IntervalBucketOracle;
pub use self::nginx::NginxOracle;
pub use self::redis_cell::RedisCellOracle;
pub use self::sentinel_warm_up_queue::SentinelWarmUpQueueOracle;
pub use self::sliding_counter::SlidingCounterOracle;
pub use self::sliding_log::SlidingLogOracle;
pub use self::sliding_window::SlidingWindowOracle;
pub use self::smooth_bursty::SmoothBurstyOracle;
pub use self::smooth_warm_up::SmoothWarmUpOracle;
pub use self::token_bucket::TokenBucketOracle;
pub use self::window_from_first::WindowFromFirstOracle;

/// One request as an oracle sees it. Times are Unix nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When it comes.
    pub now: u64,
    /// What it takes.
    pub permits: u64,
    /// How long it would wait.
    pub patience: u64,
    /// Whether it takes them whatever the limit says.
    pub forced: bool,
}

impl Request {
    /// `permits` at `now`, by a caller that does not wait.
    pub const fn at(now: u64, permits: u64) -> Self {
        Self {
            now,
            permits,
            patience: 0,
            forced: false,
        }
    }

    /// When it goes ahead if it is forced: at once, unless it is more than any limit counts.
    fn forced_delay(self) -> Option<u64> {
        (self.permits <= Quota::MAX_PERMITS || self.permits == 0).then_some(0)
    }
}

/// What an oracle took; give it back by this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// A limit as one would explain it on paper.
///
/// Times should not decrease; one before the latest is the latest: no time has passed.
pub trait Oracle: Debug {
    /// The most that the limit lets through at once after rest.
    fn limit(&self) -> u64;

    /// After what delay a request would go ahead; `None` where it is refused.
    fn delay_of(&self, request: Request) -> Option<u64>;

    /// Whether a time will come after `now`, with no one else around, at which it is admitted.
    fn ever_admits(&self, request: Request) -> bool;

    /// Permits that are there at this instant, to be had without delay.
    fn remaining(&self, now: u64) -> u64;

    /// Takes what was admitted.
    fn take(&mut self, request: Request) -> Ticket;

    /// Gives back what was taken, where that still means anything.
    fn give_back(&mut self, now: u64, ticket: Ticket);

    /// A copy.
    fn boxed(&self) -> Box<dyn Oracle>;
}

/// The oracle for an algorithm, of a key first seen at `start`.
///
/// # Panics
/// For an algorithm that the oracles do not know.
pub fn oracle_of(algorithm: &Algorithm, start: u64) -> Box<dyn Oracle> {
    match *algorithm {
        Algorithm::TokenBucket(quota) => Box::new(TokenBucketOracle::new(quota, start)),
        Algorithm::FixedWindow { permits, window } => {
            Box::new(FixedWindowOracle::new(permits, window))
        }
        Algorithm::WindowFromFirst { permits, window } => {
            Box::new(WindowFromFirstOracle::new(permits, window))
        }
        Algorithm::CalendarWindow { permits, unit } => {
            Box::new(CalendarWindowOracle::new(permits, unit))
        }
        Algorithm::SlidingLog { permits, window } => {
            Box::new(SlidingLogOracle::new(permits, window))
        }
        Algorithm::IntervalBucket { quota, aligned } => {
            Box::new(IntervalBucketOracle::new(quota, aligned, start))
        }
        Algorithm::SlidingWindow {
            permits,
            window,
            parts,
        } => Box::new(SlidingWindowOracle::new(permits, window, parts)),
        Algorithm::SlidingCounter { permits, window } => {
            Box::new(SlidingCounterOracle::new(permits, window))
        }
        Algorithm::Nginx {
            requests,
            per_minute,
            burst,
            delay,
        } => Box::new(NginxOracle::new(requests, per_minute, burst, delay)),
        Algorithm::RedisCell {
            max_burst,
            count,
            period_seconds,
        } => Box::new(RedisCellOracle::new(max_burst, count, period_seconds)),
        Algorithm::SentinelWarmUpQueue {
            count,
            warm_up_seconds,
            cold_factor,
        } => Box::new(SentinelWarmUpQueueOracle::new(
            count,
            warm_up_seconds,
            cold_factor,
        )),
        Algorithm::SmoothBursty { quota, max_debt } => {
            Box::new(SmoothBurstyOracle::new(quota, max_debt, start))
        }
        Algorithm::SmoothWarmUp {
            quota,
            warm_up,
            cold_factor,
            max_debt,
        } => Box::new(SmoothWarmUpOracle::new(
            quota,
            warm_up,
            cold_factor,
            max_debt,
            start,
        )),
        Algorithm::Concurrency { max } => Box::new(ConcurrencyOracle::new(max)),
        ref other => panic!("no oracle for {other:?}"),
    }
}

/// A duration in nanoseconds; more than there are is as many as there are.
pub fn nanos(duration: Duration) -> i128 {
    i128::try_from(duration.as_nanos()).unwrap_or(i128::MAX)
}

/// `numerator / denominator`, rounded up. Both positive.
fn ceil_div(numerator: i128, denominator: i128) -> i128 {
    (numerator + denominator - 1) / denominator
}

/// As many nanoseconds, or permits, as a `u64` can say.
fn saturated(value: i128) -> u64 {
    u64::try_from(value.max(0)).unwrap_or(u64::MAX)
}
