//! An algorithm's numbers as the script takes them: whole ticks, whole units, all products exact.
//!
//! Redis counts in doubles, which are exact below 2^53. A rate of `permits` each `period` becomes
//! `a` units each tick, of which `b` make one permit, in lowest terms: nothing is rounded. The
//! tick is the finest at which no product of the script passes 2^51.

use std::fmt;
use std::time::Duration;

use tidegate::{Algorithm, CalendarUnit, Quota, QuotaError};

/// Ticks, in microseconds: from 1 us to 1 s.
const TICKS: [u64; 7] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000];
/// What no product passes: a quarter of what doubles count exactly.
const MOST: u128 = 1 << 51;
/// The most permits of a log, which remembers each of them.
const MOST_LOGGED: u64 = 1 << 16;

/// The numbers of one limit, as arguments of the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Numbers {
    /// Which of the script's kinds.
    pub kind: Kind,
    /// See `lua/head.lua`: what these mean depends on the kind.
    pub a: u64,
    /// The same.
    pub b: u64,
    /// Length of a tick in microseconds.
    pub tick: u64,
    /// The most permits at once.
    pub most: u64,
    /// What a new key has in use, in permits.
    pub first: u64,
    /// See `lua/head.lua`.
    pub y: u64,
}

/// The kinds of state that the script knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Token bucket.
    Bucket,
    /// Token bucket that is paid for later.
    PayLater,
    /// Token bucket that is refilled by whole periods.
    Interval,
    /// Fixed window.
    Fixed,
    /// Two-window counter.
    Counter,
    /// Sliding log, and sliding window of parts.
    Log,
}

impl Kind {
    /// What the script calls it.
    pub const fn letter(self) -> &'static str {
        match self {
            Self::Bucket => "t",
            Self::PayLater => "p",
            Self::Interval => "i",
            Self::Fixed => "f",
            Self::Counter => "s",
            Self::Log => "l",
        }
    }

    /// Whether a caller can wait for permits that are yet to come. The others answer as if nothing
    /// had been offered.
    pub const fn reserves(self) -> bool {
        matches!(self, Self::Bucket | Self::PayLater | Self::Interval)
    }
}

/// Why a limit cannot be kept in Redis exactly.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotShared {
    /// The numbers make no limit anywhere.
    Quota(QuotaError),
    /// An algorithm that each node keeps by itself.
    Local(&'static str),
    /// A window or a period that is not a whole number of microseconds, or of the ticks that its
    /// other numbers need.
    Ticks(Duration),
    /// Numbers whose products pass 2^51 at every tick.
    TooLarge,
    /// A log that would remember more permits than this.
    LogTooLong(u64),
}

impl fmt::Display for NotShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quota(_) => f.write_str("the numbers make no limit"),
            Self::Local(name) => write!(
                f,
                "{name} is kept by each node by itself: exact mode on Redis does not have it"
            ),
            Self::Ticks(time) => write!(
                f,
                "{time:?} is not a whole number of the ticks (1 us to 1 s) that Redis counts in \
                 for a limit of these numbers"
            ),
            Self::TooLarge => f.write_str(
                "Redis counts exactly up to 2^53, and this limit's burst and period need more even \
                 in ticks of 1 s: take a smaller burst, or a period that divides more evenly",
            ),
            Self::LogTooLong(permits) => write!(
                f,
                "a sliding log of {permits} permits would keep each of them in Redis: at most \
                 {MOST_LOGGED}"
            ),
        }
    }
}

impl std::error::Error for NotShared {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Quota(error) => Some(error),
            _ => None,
        }
    }
}

impl Numbers {
    /// The numbers of this algorithm.
    ///
    /// # Errors
    /// [`NotShared`] where it stays local, or its numbers are beyond what Redis counts exactly.
    pub fn of(algorithm: &Algorithm) -> Result<Self, NotShared> {
        algorithm.validate().map_err(NotShared::Quota)?;
        match *algorithm {
            Algorithm::TokenBucket(quota) => bucket(quota, Kind::Bucket, Duration::ZERO),
            Algorithm::SmoothBursty { quota, max_debt } => bucket(quota, Kind::PayLater, max_debt),
            Algorithm::IntervalBucket { quota, aligned } => interval(quota, aligned),
            Algorithm::FixedWindow { permits, window } => fixed(permits, window, false, 0),
            Algorithm::WindowFromFirst { permits, window } => fixed(permits, window, true, 0),
            Algorithm::CalendarWindow { permits, unit } => calendar(permits, unit),
            Algorithm::SlidingCounter { permits, window } => counter(permits, window),
            Algorithm::SlidingLog { permits, window } => log(permits, window),
            Algorithm::SlidingWindow {
                permits,
                window,
                parts,
            } => parted(permits, window, parts.get()),
            Algorithm::RedisCell { .. } => Err(NotShared::Local("redis-cell's CL.THROTTLE")),
            Algorithm::Nginx { .. } => Err(NotShared::Local("nginx's limit_req")),
            Algorithm::SentinelWarmUp { .. } => Err(NotShared::Local("Sentinel's warm-up")),
            Algorithm::SentinelWarmUpQueue { .. } => {
                Err(NotShared::Local("Sentinel's warm-up with queueing"))
            }
            Algorithm::SmoothWarmUp { .. } => Err(NotShared::Local("Guava's smooth warm-up")),
            Algorithm::Concurrency { .. } => Err(NotShared::Local("a concurrency limit")),
            _ => Err(NotShared::Local("this algorithm")),
        }
    }
}

/// Which permits each tick, in lowest terms: the finest tick at which `fits` says yes.
fn finest(fits: impl Fn(u64) -> Option<Numbers>) -> Result<Numbers, NotShared> {
    TICKS.into_iter().find_map(fits).ok_or(NotShared::TooLarge)
}

/// The same for a window or period, which has to be whole ticks.
fn finest_of(
    span: Duration,
    fits: impl Fn(u64, u128) -> Option<Numbers>,
) -> Result<Numbers, NotShared> {
    let whole = |tick: u64| {
        let nanos = u128::from(tick) * 1_000;
        span.as_nanos()
            .is_multiple_of(nanos)
            .then_some(span.as_nanos() / nanos)
    };
    if whole(1).is_none() {
        return Err(NotShared::Ticks(span));
    }
    let found = TICKS.into_iter().find_map(|tick| fits(tick, whole(tick)?));
    // Where a coarser tick would do but for what it leaves over, that is the reason.
    let uneven = || TICKS.into_iter().any(|tick| whole(tick).is_none());
    found.ok_or_else(|| {
        if uneven() {
            NotShared::Ticks(span)
        } else {
            NotShared::TooLarge
        }
    })
}

/// As a `u64`, where it is at most [`MOST`].
fn within_most(value: u128) -> Option<u64> {
    (value <= MOST).then_some(value as u64)
}

fn bucket(quota: Quota, kind: Kind, max_debt: Duration) -> Result<Numbers, NotShared> {
    let rate = quota.rate().map_err(NotShared::Quota)?;
    let burst = quota.burst_permits();
    finest(|tick| {
        let nanos = u128::from(tick) * 1_000;
        // Of permits per nanosecond: per tick. A rate of 0 has a burst of 0: no time matters.
        let (units, per_permit) = (
            u128::from(rate.permits().max(1)) * nanos,
            rate.nanos().into(),
        );
        let divisor = gcd(units, per_permit);
        let (a, b) = (units / divisor, per_permit / divisor);
        let debt = max_debt.as_nanos().saturating_mul(a) / nanos;
        within_most(b * u128::from(burst) + debt)?;
        let pays_later = kind == Kind::PayLater;
        Some(Numbers {
            kind,
            a: within_most(a)?,
            b: within_most(b)?,
            tick,
            most: burst,
            first: if pays_later {
                burst
            } else {
                burst - quota.initial_permits()
            },
            y: within_most(debt)?,
        })
    })
}

fn interval(quota: Quota, aligned: bool) -> Result<Numbers, NotShared> {
    let (permits, burst) = (quota.permits().max(1), quota.burst_permits());
    finest_of(quota.period(), |tick, period| {
        within_most(u128::from(burst.div_ceil(permits) + 1) * period)?;
        Some(Numbers {
            kind: Kind::Interval,
            a: permits,
            b: within_most(period)?,
            tick,
            most: burst,
            first: burst - quota.initial_permits(),
            y: aligned.into(),
        })
    })
}

fn fixed(
    permits: u64,
    window: Duration,
    from_first: bool,
    offset_us: u64,
) -> Result<Numbers, NotShared> {
    finest_of(window, |tick, window| {
        Some(Numbers {
            kind: Kind::Fixed,
            a: within_most(window)?,
            b: from_first.into(),
            tick,
            most: permits,
            first: 0,
            y: offset_us / tick,
        })
    })
}

fn calendar(permits: u64, unit: CalendarUnit) -> Result<Numbers, NotShared> {
    match unit {
        CalendarUnit::Day => fixed(permits, unit.longest(), false, 0),
        // 1970-01-01 was a Thursday: weeks begin three days before it.
        CalendarUnit::Week => fixed(permits, unit.longest(), false, 3 * 86_400_000_000),
        CalendarUnit::Month | CalendarUnit::Year => Err(NotShared::Local(
            "a window of calendar months or years (of days or weeks it is fine)",
        )),
    }
}

fn counter(permits: u64, window: Duration) -> Result<Numbers, NotShared> {
    finest_of(window, |tick, window| {
        within_most(u128::from(permits) * window)?;
        Some(Numbers {
            kind: Kind::Counter,
            a: within_most(window)?,
            b: 0,
            tick,
            most: permits,
            first: 0,
            y: 0,
        })
    })
}

fn log(permits: u64, window: Duration) -> Result<Numbers, NotShared> {
    if permits > MOST_LOGGED {
        return Err(NotShared::LogTooLong(permits));
    }
    // Times are only added here: microseconds always do.
    let micros = window.as_micros();
    if micros * 1_000 != window.as_nanos() {
        return Err(NotShared::Ticks(window));
    }
    Ok(Numbers {
        kind: Kind::Log,
        a: within_most(micros).ok_or(NotShared::TooLarge)?,
        b: 0,
        tick: 1,
        most: permits,
        first: 0,
        y: 1,
    })
}

/// Entries have their times in microseconds, whatever the ticks are in which parts are counted.
fn parted(permits: u64, window: Duration, parts: u32) -> Result<Numbers, NotShared> {
    finest_of(window, |tick, window| {
        within_most(window * u128::from(parts))?;
        let is_fine_enough = u128::from(parts) <= window;
        is_fine_enough.then_some(Numbers {
            kind: Kind::Log,
            a: within_most(window)?,
            b: parts.into(),
            tick: 1,
            most: permits,
            first: 0,
            y: tick,
        })
    })
}

const fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests;
