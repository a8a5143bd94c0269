//! A limit: a name, and what it holds requests to.

mod meters;
mod share;
mod words;

use alloc::string::String;
use core::num::NonZeroU32;
use core::time::Duration;

#[cfg(feature = "std")]
pub(crate) use self::meters::{FromAlgorithm, first_meter};
use crate::CalendarUnit;
use crate::meter::{SmoothBursty, SmoothWarmUp};
use crate::quota::{Quota, QuotaError};

/// A named limit.
///
/// What it is called is for people, logs and headers; two limits of one name in one place are
/// the caller's mistake, not the engine's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    name: String,
    algorithm: Algorithm,
}

/// How a limit counts, with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Algorithm {
    /// Token bucket, greedy refill, pay now; the same thing as GCRA and as a leaky bucket
    /// that meters. See [`TokenBucket`](crate::meter::TokenBucket).
    TokenBucket(Quota),
    /// At most `permits` in each window, windows aligned to the epoch. See
    /// [`FixedWindow`](crate::meter::FixedWindow).
    FixedWindow {
        /// Permits of one window.
        permits: u64,
        /// Length of a window.
        window: Duration,
    },
    /// The same, but windows begin with the first request of a key after its window before. See
    /// [`FixedWindow::from_first`](crate::meter::FixedWindow::from_first).
    WindowFromFirst {
        /// Permits of one window.
        permits: u64,
        /// Length of a window.
        window: Duration,
    },
    /// At most `permits` in each day, week, month or year (UTC). See
    /// [`FixedWindow::calendar`](crate::meter::FixedWindow::calendar).
    CalendarWindow {
        /// Permits of one of them.
        permits: u64,
        /// Which.
        unit: CalendarUnit,
    },
    /// At most `permits` in every window of this length, exactly. See
    /// [`SlidingLog`](crate::meter::SlidingLog).
    SlidingLog {
        /// Permits of any window.
        permits: u64,
        /// Length of the window.
        window: Duration,
    },
    /// Token bucket that is refilled by whole periods (Bucket4j's interval refill). See
    /// [`IntervalBucket`](crate::meter::IntervalBucket).
    IntervalBucket {
        /// What comes at once with each period, and the most that there is.
        quota: Quota,
        /// Whether periods are aligned to the epoch, or begin when a full bucket is first asked.
        aligned: bool,
    },
    /// At most `permits` in every window, counted in parts. See
    /// [`SlidingWindow`](crate::meter::SlidingWindow).
    SlidingWindow {
        /// Permits of any window.
        permits: u64,
        /// Length of the window.
        window: Duration,
        /// Parts of it.
        parts: NonZeroU32,
    },
    /// About `permits` in any window, from two counters. See
    /// [`SlidingCounter`](crate::meter::SlidingCounter).
    SlidingCounter {
        /// Permits of any window, about.
        permits: u64,
        /// Length of the window.
        window: Duration,
    },
    /// nginx's `limit_req`. See [`Nginx`](crate::meter::Nginx).
    Nginx {
        /// Requests per second, or per minute.
        requests: u64,
        /// Whether they are per minute.
        per_minute: bool,
        /// nginx's own burst, which does not include the first request.
        burst: u64,
        /// How many of it are not delayed; `None` for `nodelay`.
        delay: Option<u64>,
    },
    /// Sentinel's warm-up. See [`SentinelWarmUp`](crate::meter::SentinelWarmUp).
    SentinelWarmUp {
        /// Permits per second when warm.
        count: u64,
        /// Seconds from cold to warm.
        warm_up_seconds: u32,
        /// How many times fewer a cold limit lets through.
        cold_factor: u32,
    },
    /// Sentinel's warm-up with queueing. See
    /// [`SentinelWarmUpQueue`](crate::meter::SentinelWarmUpQueue).
    SentinelWarmUpQueue {
        /// Permits per second when warm.
        count: u64,
        /// Seconds from cold to warm.
        warm_up_seconds: u32,
        /// How many times slower a cold limit is.
        cold_factor: u32,
    },
    /// redis-cell's `CL.THROTTLE`: a token bucket of [`Quota::redis_cell`].
    RedisCell {
        /// What may come at once beyond the first.
        max_burst: u64,
        /// Permits of a period.
        count: u64,
        /// The period.
        period_seconds: u64,
    },
    /// Guava's smooth bursty: stored permits, pay later. See
    /// [`SmoothBursty`](crate::meter::SmoothBursty).
    SmoothBursty {
        /// Rate, and the most permits that are stored.
        quota: Quota,
        /// How far ahead permits may be granted.
        max_debt: Duration,
    },
    /// Guava's smooth warm-up: slow after rest. See
    /// [`SmoothWarmUp`](crate::meter::SmoothWarmUp).
    SmoothWarmUp {
        /// The rate when warm (the burst is not used: what is stored follows from the warm-up).
        quota: Quota,
        /// Time from cold to warm.
        warm_up: Duration,
        /// How many times slower a cold limit is.
        cold_factor: u32,
        /// How far ahead permits may be granted.
        max_debt: Duration,
    },
    /// At most `max` in flight. See [`Concurrency`](crate::gate::Concurrency).
    Concurrency {
        /// Places.
        max: u64,
    },
}

impl Limit {
    /// A limit of this name and algorithm.
    ///
    /// # Errors
    /// [`QuotaError`] where the numbers make no limit.
    pub fn new(name: impl Into<String>, algorithm: Algorithm) -> Result<Self, QuotaError> {
        algorithm.validate()?;
        Ok(Self {
            name: name.into(),
            algorithm,
        })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How it counts.
    pub const fn algorithm(&self) -> &Algorithm {
        &self.algorithm
    }
}

impl Algorithm {
    /// Guava's smooth bursty, with the
    /// [default bound](crate::meter::SmoothBursty::default_max_debt) of what it grants ahead.
    pub fn smooth_bursty(quota: Quota) -> Self {
        let max_debt = SmoothBursty::default_max_debt(quota);
        Self::SmoothBursty { quota, max_debt }
    }

    /// Guava's smooth warm-up, with the
    /// [default bound](crate::meter::SmoothWarmUp::default_max_debt) of what it grants ahead.
    pub fn smooth_warm_up(quota: Quota, warm_up: Duration, cold_factor: u32) -> Self {
        Self::SmoothWarmUp {
            quota,
            warm_up,
            cold_factor,
            max_debt: SmoothWarmUp::default_max_debt(quota, warm_up, cold_factor),
        }
    }

    /// Whether the numbers make a limit.
    ///
    /// # Errors
    /// [`QuotaError`] where they do not.
    pub fn validate(&self) -> Result<(), QuotaError> {
        meters::validate(self)
    }

    /// Whether this algorithm answers with delays by itself: callers pay later.
    pub const fn delays(&self) -> bool {
        matches!(
            self,
            Self::SmoothBursty { .. }
                | Self::SmoothWarmUp { .. }
                | Self::Nginx { delay: Some(_), .. }
        )
    }

    /// How long `permits` take to come back; for what has no rate, any time.
    pub fn time_for(&self, permits: u64) -> Duration {
        let of = |quota: &Quota, whole_periods: bool| {
            let per_period = u128::from(quota.permits().max(1));
            let period = quota.period().as_nanos();
            let nanos = if whole_periods {
                u128::from(permits).div_ceil(per_period) * period
            } else {
                u128::from(permits) * period / per_period
            };
            Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
        };
        match self {
            Self::TokenBucket(quota)
            | Self::SmoothBursty { quota, .. }
            | Self::SmoothWarmUp { quota, .. } => of(quota, false),
            Self::IntervalBucket { quota, .. } => of(quota, true),
            Self::FixedWindow {
                permits: most,
                window,
            }
            | Self::WindowFromFirst {
                permits: most,
                window,
            }
            | Self::SlidingWindow {
                permits: most,
                window,
                ..
            }
            | Self::SlidingLog {
                permits: most,
                window,
            } => of(&Quota::new(*most, *window), true),
            Self::CalendarWindow {
                permits: most,
                unit,
            } => of(&Quota::new(*most, unit.longest()), true),
            Self::RedisCell {
                max_burst,
                count,
                period_seconds,
            } => Quota::redis_cell(*max_burst, *count, *period_seconds)
                .map_or(Duration::MAX, |quota| of(&quota, false)),
            _ => Duration::MAX,
        }
    }

    /// The most permits that are there at once: what its answers name as the limit.
    pub fn permits_at_once(&self) -> u64 {
        match self {
            Self::TokenBucket(quota)
            | Self::IntervalBucket { quota, .. }
            | Self::SmoothBursty { quota, .. }
            | Self::SmoothWarmUp { quota, .. } => quota.burst_permits(),
            Self::FixedWindow { permits, .. }
            | Self::WindowFromFirst { permits, .. }
            | Self::CalendarWindow { permits, .. }
            | Self::SlidingWindow { permits, .. }
            | Self::SlidingCounter { permits, .. }
            | Self::SlidingLog { permits, .. } => *permits,
            Self::Nginx { burst, .. } => burst.saturating_add(1),
            Self::SentinelWarmUp { count, .. } | Self::SentinelWarmUpQueue { count, .. } => *count,
            Self::RedisCell { max_burst, .. } => max_burst.saturating_add(1),
            Self::Concurrency { max } => *max,
        }
    }

    /// What each of `nodes` (at least 1) may grant on its own, so that all of them together stay
    /// within this limit: one part in so many of the rate, exactly, and of the burst or the
    /// window's permits, rounded down. `None` where that is nothing, or the algorithm has no parts.
    pub fn share_of(&self, nodes: u64) -> Option<Self> {
        share::share_of(*self, nodes)
    }

    /// Whether permits have to come back.
    pub const fn is_gate(&self) -> bool {
        matches!(self, Self::Concurrency { .. })
    }
}

impl From<Quota> for Algorithm {
    fn from(quota: Quota) -> Self {
        Self::TokenBucket(quota)
    }
}
