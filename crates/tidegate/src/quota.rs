//! What may pass: permits per period, and a burst.

use core::fmt;
use core::time::Duration;

use crate::time::nanos;

/// An exact rate and a burst: `permits` each `period`, and at most `burst` at once after rest.
///
/// The burst **includes** the first request: `burst(1)` saves nothing up. By default it is the
/// permits of one period. In every interval of length *t* a limit of this quota lets at most
/// `burst + permits * t / period` pass.
///
/// ```
/// use tidegate::Quota;
///
/// // In any minute at most 20 + 100.
/// let quota = Quota::per_minute(100).burst(20);
/// assert_eq!(quota.permits(), 100);
/// assert_eq!(quota.period().as_secs(), 60);
/// ```
///
/// A quota of 0 permits is valid and refuses everything. It is never "no limit".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quota {
    permits: u64,
    period: Duration,
    burst: u64,
    initial: Option<u64>,
}

impl Quota {
    /// `permits` each `period`, with a burst of `permits`.
    pub const fn new(permits: u64, period: Duration) -> Self {
        Self {
            permits,
            period,
            burst: permits,
            initial: None,
        }
    }

    /// `permits` each second.
    pub const fn per_second(permits: u64) -> Self {
        Self::new(permits, Duration::from_secs(1))
    }

    /// `permits` each minute.
    pub const fn per_minute(permits: u64) -> Self {
        Self::new(permits, Duration::from_mins(1))
    }

    /// `permits` each hour.
    pub const fn per_hour(permits: u64) -> Self {
        Self::new(permits, Duration::from_hours(1))
    }

    /// `permits` each day of 24 hours.
    pub const fn per_day(permits: u64) -> Self {
        Self::new(permits, Duration::from_hours(24))
    }

    /// `permits` each month of 30 days.
    pub const fn per_month(permits: u64) -> Self {
        Self::new(permits, Duration::from_hours(30 * 24))
    }

    /// One permit each `period`.
    pub const fn one_per(period: Duration) -> Self {
        Self::new(1, period)
    }

    /// The quota of redis-cell's `CL.THROTTLE key max_burst count period_seconds`: a burst of
    /// `max_burst + 1`, and one permit each `period / count`, cut to whole nanoseconds as
    /// redis-cell does (a quotient of two doubles, truncated). All other quotas are exact.
    ///
    /// # Errors
    /// [`QuotaError::NoInterval`] where count or period is 0, or a permit would take less than a
    /// nanosecond; [`QuotaError::TooManyPermits`] and [`QuotaError::PeriodTooLong`] as
    /// [`rate`](Self::rate) has it.
    pub fn redis_cell(max_burst: u64, count: u64, period_seconds: u64) -> Result<Self, QuotaError> {
        if max_burst >= Self::MAX_PERMITS {
            return Err(QuotaError::TooManyPermits(max_burst.saturating_add(1)));
        }
        if count == 0 {
            return Err(QuotaError::NoInterval);
        }
        let period = u128::from(period_seconds) * 1_000_000_000;
        #[expect(clippy::cast_sign_loss, reason = "neither is below 0")]
        let interval = (period as f64 / count as f64) as u64;
        if interval == 0 {
            return Err(QuotaError::NoInterval);
        }
        let quota = Self::one_per(Duration::from_nanos(interval)).burst(max_burst + 1);
        quota.rate()?;
        Ok(quota)
    }

    /// The same rate with another burst (which includes the first request).
    #[must_use]
    pub const fn burst(self, burst: u64) -> Self {
        Self { burst, ..self }
    }

    /// The same, with so many permits for a key that is seen for the first time, instead of the
    /// whole burst. Only token buckets know it.
    #[must_use]
    pub const fn initial(self, initial: u64) -> Self {
        Self {
            initial: Some(initial),
            ..self
        }
    }

    /// Permits of a key that is seen for the first time.
    pub const fn initial_permits(&self) -> u64 {
        match self.initial {
            Some(initial) => initial,
            None => self.burst,
        }
    }

    /// Permits granted each period.
    pub const fn permits(&self) -> u64 {
        self.permits
    }

    /// The time over which [`permits`](Self::permits) are granted.
    pub const fn period(&self) -> Duration {
        self.period
    }

    /// Most permits that are there at once after rest.
    pub const fn burst_permits(&self) -> u64 {
        self.burst
    }

    /// The rate as a reduced fraction of permits per nanosecond.
    ///
    /// # Errors
    /// [`QuotaError`] where the period is 0 or longer than [`Quota::MAX_PERIOD`], where the
    /// burst is 0 beside a rate (nothing could ever pass) or above 0 beside a rate of 0, and
    /// where permits or burst are above [`Quota::MAX_PERMITS`].
    pub fn rate(&self) -> Result<Rate, QuotaError> {
        if self.period.is_zero() {
            return Err(QuotaError::ZeroPeriod);
        }
        if self.period > Self::MAX_PERIOD {
            return Err(QuotaError::PeriodTooLong(self.period));
        }
        let most = self.permits.max(self.burst);
        if most > Self::MAX_PERMITS {
            return Err(QuotaError::TooManyPermits(most));
        }
        if (self.permits == 0) != (self.burst == 0) {
            return Err(QuotaError::BurstAgainstRate {
                permits: self.permits,
                burst: self.burst,
            });
        }
        let (initial, burst) = (self.initial_permits(), self.burst);
        if initial > burst {
            return Err(QuotaError::InitialAboveBurst { initial, burst });
        }
        let period = nanos(self.period);
        let divisor = gcd(self.permits, period);
        Ok(Rate {
            permits: self.permits / divisor,
            nanos: period / divisor,
        })
    }

    /// The longest period: 400 days.
    pub const MAX_PERIOD: Duration = Duration::from_hours(400 * 24);
    /// The most permits and the largest burst: 2^40 (about 10^12; a terabyte for bandwidth).
    pub const MAX_PERMITS: u64 = 1 << 40;
}

/// A rate in lowest terms: `permits` each `nanos` nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    permits: u64,
    nanos: u64,
}

impl Rate {
    /// The numerator; 0 for a rate that grants nothing.
    pub const fn permits(self) -> u64 {
        self.permits
    }

    /// The denominator, in nanoseconds; never 0.
    pub const fn nanos(self) -> u64 {
        self.nanos
    }
}

const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Why numbers make no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuotaError {
    /// The period, or a window, is 0.
    ZeroPeriod,
    /// The period is longer than [`Quota::MAX_PERIOD`].
    PeriodTooLong(Duration),
    /// Permits or burst above [`Quota::MAX_PERMITS`].
    TooManyPermits(u64),
    /// One of rate and burst is 0 and the other is not.
    BurstAgainstRate {
        /// Permits of a period.
        permits: u64,
        /// The burst beside it.
        burst: u64,
    },
    /// A sliding log would have to remember more than [`crate::meter::SlidingLog::MAX_PERMITS`].
    LogTooLong(u64),
    /// A sliding window of more than [`crate::meter::SlidingWindow::MAX_PARTS`] parts, or of more
    /// than it has nanoseconds.
    TooManyParts(u32),
    /// A new key would have more than the burst.
    InitialAboveBurst {
        /// What a new key would have.
        initial: u64,
        /// The most that there is.
        burst: u64,
    },
    /// redis-cell has no rate of 0, and none at which a permit takes less than a nanosecond.
    NoInterval,
    /// nginx cuts rates to thousandths of a request per second, and this one to none.
    RateCutToNothing,
    /// A cold factor outside 2 to [`crate::meter::SmoothWarmUp::MAX_COLD_FACTOR`].
    ColdFactor(u32),
    /// A concurrency limit where a rate was wanted: its permits have to come back, so it hands out
    /// guards.
    NotARate,
    /// A state of 64 bits does not hold this rate exactly: one of 128 bits does.
    NarrowState,
    /// Limits that should share their keys (one, and what overrides it) are of different kinds.
    MixedAlgorithms,
    /// The most debt is less than what all that a warm-up stores costs (one and a half times the
    /// warm-up), or than one permit of a cold limit.
    Debt(Duration),
    /// The warm-up is 0, or its product with the rate is beyond exact arithmetic.
    WarmUp(Duration),
}

impl fmt::Display for QuotaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZeroPeriod => f.write_str("the period is 0"),
            Self::PeriodTooLong(period) => write!(
                f,
                "the period of {period:?} is longer than {} days",
                Quota::MAX_PERIOD.as_secs() / 86_400
            ),
            Self::TooManyPermits(n) => {
                write!(f, "{n} permits are more than {} (2^40)", Quota::MAX_PERMITS)
            }
            Self::BurstAgainstRate { permits: 0, burst } => write!(
                f,
                "a burst of {burst} with a rate of 0: a limit of 0 refuses everything, \
                 so its burst is 0 too"
            ),
            Self::BurstAgainstRate { .. } => {
                f.write_str("a burst of 0 never admits anything: the smallest burst is 1")
            }
            Self::LogTooLong(n) => write!(
                f,
                "a sliding log of {n} permits would remember each of them: at most {}",
                crate::meter::SlidingLog::MAX_PERMITS
            ),
            Self::TooManyParts(n) => write!(
                f,
                "a window of {n} parts: it has at most {}, and no part is shorter than 1 ns",
                crate::meter::SlidingWindow::MAX_PARTS
            ),
            Self::InitialAboveBurst { initial, burst } => {
                write!(
                    f,
                    "{initial} initial permits are more than the burst of {burst}"
                )
            }
            Self::NoInterval => f.write_str(
                "redis-cell has no such rate: count and period are above 0, and a permit takes at \
                 least a nanosecond",
            ),
            Self::RateCutToNothing => f.write_str(
                "nginx counts in thousandths of a request per second: this rate is none",
            ),
            Self::ColdFactor(n) => write!(
                f,
                "a cold factor of {n}: it is from 2 to {}",
                crate::meter::SmoothWarmUp::MAX_COLD_FACTOR
            ),
            Self::NotARate => f.write_str("a concurrency limit is no rate: it hands out guards"),
            Self::NarrowState => {
                f.write_str("64 bits do not hold this rate exactly: take the limit with u128")
            }
            Self::MixedAlgorithms => {
                f.write_str("a limit and its overrides are of one algorithm, and these are not")
            }
            Self::Debt(d) => write!(
                f,
                "a debt of at most {d:?} is less than a cold limit needs: what it stores costs one \
                 and a half times the warm-up, and one permit up to the cold factor times the usual"
            ),
            Self::WarmUp(d) => {
                write!(
                    f,
                    "a warm-up of {d:?} is 0, or too long for exact arithmetic at this rate"
                )
            }
        }
    }
}

impl core::error::Error for QuotaError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_in_lowest_terms() {
        let rate = |q: Quota| q.rate().map(|r| (r.permits(), r.nanos())).unwrap();
        assert_eq!(rate(Quota::per_minute(10)), (1, 6_000_000_000));
        assert_eq!(rate(Quota::per_second(3)), (3, 1_000_000_000));
        assert_eq!(rate(Quota::per_second(80_000)), (1, 12_500));
        assert_eq!(rate(Quota::per_second(3_000_000)), (3, 1_000));
        assert_eq!(rate(Quota::per_month(1)), (1, 2_592_000_000_000_000));
        assert_eq!(rate(Quota::per_second(0)), (0, 1));
    }

    #[test]
    fn redis_cells_interval_is_cut_to_whole_nanoseconds() {
        let of = |max_burst, count, period| {
            let quota = Quota::redis_cell(max_burst, count, period)?;
            Ok((quota.period().as_nanos(), quota.burst_permits()))
        };
        assert_eq!(of(15, 30, 60), Ok((2_000_000_000, 16)));
        assert_eq!(of(0, 3, 1), Ok((333_333_333, 1)));
        assert_eq!(of(5_999, 6_000, 1), Ok((166_666, 6_000)));
        assert_eq!(of(0, 1_000_000_000, 1), Ok((1, 1)));
        assert_eq!(of(0, 2_000_000_000, 3), Ok((1, 1)));
        // A double has 53 bits: 11 per 145 days are one each 1,138,909,090,909,090.9 ns.
        assert_eq!(of(0, 11, 12_528_000), Ok((1_138_909_090_909_091, 1)));
        // Longer than any period of ours, and yet a permit each four days.
        assert_eq!(of(0, 1_000, 345_600_000), Ok((345_600_000_000_000, 1)));
        for (count, period) in [(0, 1), (1, 0), (0, 0), (1_000_000_001, 1), (u64::MAX, 18)] {
            assert_eq!(of(0, count, period), Err(QuotaError::NoInterval));
        }
        let most = Quota::MAX_PERMITS;
        assert_eq!(of(most - 1, 1, 1), Ok((1_000_000_000, most)));
        for max_burst in [most, u64::MAX] {
            assert!(matches!(
                of(max_burst, 1, 1),
                Err(QuotaError::TooManyPermits(_))
            ));
        }
        for period in [34_560_001, u64::MAX] {
            assert!(matches!(
                of(0, 1, period),
                Err(QuotaError::PeriodTooLong(_))
            ));
        }
    }

    #[test]
    fn what_can_never_admit_is_refused_and_zero_is_not_unlimited() {
        assert!(matches!(
            Quota::per_second(1).burst(0).rate(),
            Err(QuotaError::BurstAgainstRate {
                permits: 1,
                burst: 0
            })
        ));
        assert!(matches!(
            Quota::per_second(0).burst(5).rate(),
            Err(QuotaError::BurstAgainstRate {
                permits: 0,
                burst: 5
            })
        ));
        assert_eq!(
            Quota::new(1, Duration::ZERO).rate(),
            Err(QuotaError::ZeroPeriod)
        );
        assert!(Quota::per_second(u64::MAX).rate().is_err());
    }
}
