//! Which meter an algorithm is, and with which state: the one list of all meters.

use crate::gate::Concurrency;
use crate::meter::{
    FixedWindow, IntervalBucket, Nginx, SentinelWarmUp, SentinelWarmUpQueue, SlidingCounter,
    SlidingLog, SlidingWindow, SmoothBursty, SmoothWarmUp, TokenBucket,
};
use crate::{Algorithm, Meter, Quota, QuotaError};

/// `first_meter!(f(a, b))` is `f::<M>(a, b)` for the first meter `M` for which that is `Some`:
/// narrow states before wide ones. `None` where there is none.
macro_rules! first_meter {
    ($f:ident $args:tt) => {
        first_meter!($f $args:
            meter::TokenBucket<u64>,
            meter::TokenBucket<u128>,
            meter::FixedWindow,
            meter::SlidingLog,
            meter::IntervalBucket,
            meter::SlidingWindow,
            meter::SlidingCounter,
            meter::Nginx,
            meter::SentinelWarmUp,
            meter::SentinelWarmUpQueue,
            meter::SmoothBursty,
            meter::SmoothWarmUp,
            gate::Concurrency,
        )
    };
    ($f:ident $args:tt: $($kind:ident::$meter:ident $(<$word:ty>)?,)*) => {
        None$(.or_else(|| $f::<$crate::$kind::$meter $(<$word>)?> $args))*
    };
}
#[cfg(feature = "std")]
pub(crate) use first_meter;

/// A meter that an [`Algorithm`] can name.
#[cfg_attr(
    not(feature = "std"),
    expect(dead_code, reason = "what stores and limiters use")
)]
pub(crate) trait FromAlgorithm: Meter {
    /// Whether its permits have to come back.
    const IS_GATE: bool = false;

    /// The meter for this algorithm, or why its numbers make none; `None` where the algorithm is
    /// another's, or needs a wider state.
    fn try_from_algorithm(algorithm: &Algorithm) -> Option<Result<Self, QuotaError>>;

    /// The meter for this algorithm; `None` where it is none of these.
    fn from_algorithm(algorithm: &Algorithm) -> Option<Self> {
        Self::try_from_algorithm(algorithm)?.ok()
    }
}

/// Whether the numbers of an algorithm make a meter.
pub(super) fn validate(algorithm: &Algorithm) -> Result<(), QuotaError> {
    fn made<M: FromAlgorithm>(algorithm: &Algorithm) -> Option<Result<(), QuotaError>> {
        Some(M::try_from_algorithm(algorithm)?.map(drop))
    }
    // Each algorithm is some meter's.
    first_meter!(made(algorithm)).unwrap_or(Err(QuotaError::MixedAlgorithms))
}

macro_rules! from_algorithm {
    ($meter:ty, $($pattern:pat => $make:expr),+ $(; $gate:literal)?) => {
        impl FromAlgorithm for $meter {
            $(const IS_GATE: bool = $gate;)?
            fn try_from_algorithm(algorithm: &Algorithm) -> Option<Result<Self, QuotaError>> {
                match *algorithm {
                    $($pattern => Some($make),)+
                    _ => None,
                }
            }
        }
    };
}

impl FromAlgorithm for TokenBucket<u64> {
    fn try_from_algorithm(algorithm: &Algorithm) -> Option<Result<Self, QuotaError>> {
        let quota = bucket(algorithm)?.ok()?;
        Self::fits(quota).then(|| Self::new(quota))
    }
}

impl FromAlgorithm for TokenBucket<u128> {
    fn try_from_algorithm(algorithm: &Algorithm) -> Option<Result<Self, QuotaError>> {
        Some(bucket(algorithm)?.and_then(Self::new))
    }
}

/// The quota of the algorithms that are a token bucket.
fn bucket(algorithm: &Algorithm) -> Option<Result<Quota, QuotaError>> {
    match *algorithm {
        Algorithm::TokenBucket(quota) => Some(Ok(quota)),
        Algorithm::RedisCell {
            max_burst,
            count,
            period_seconds,
        } => Some(Quota::redis_cell(max_burst, count, period_seconds)),
        _ => None,
    }
}

from_algorithm!(
    FixedWindow,
    Algorithm::FixedWindow { permits, window } => Self::new(permits, window),
    Algorithm::WindowFromFirst { permits, window } => Self::from_first(permits, window),
    Algorithm::CalendarWindow { permits, unit } => Self::calendar(permits, unit)
);
from_algorithm!(
    SlidingLog,
    Algorithm::SlidingLog { permits, window } => Self::new(permits, window)
);
from_algorithm!(
    IntervalBucket,
    Algorithm::IntervalBucket { quota, aligned } => Self::new(quota, aligned)
);
from_algorithm!(
    SlidingWindow,
    Algorithm::SlidingWindow { permits, window, parts } => Self::new(permits, window, parts)
);
from_algorithm!(
    SlidingCounter,
    Algorithm::SlidingCounter { permits, window } => Self::new(permits, window)
);
from_algorithm!(
    Nginx,
    Algorithm::Nginx { requests, per_minute, burst, delay }
        => Self::new(requests, per_minute, burst, delay)
);
from_algorithm!(
    SentinelWarmUp,
    Algorithm::SentinelWarmUp { count, warm_up_seconds, cold_factor }
        => Self::new(count, warm_up_seconds, cold_factor)
);
from_algorithm!(
    SentinelWarmUpQueue,
    Algorithm::SentinelWarmUpQueue { count, warm_up_seconds, cold_factor }
        => Self::new(count, warm_up_seconds, cold_factor)
);
from_algorithm!(
    SmoothBursty,
    Algorithm::SmoothBursty { quota, max_debt } => Self::new(quota, max_debt)
);
from_algorithm!(
    SmoothWarmUp,
    Algorithm::SmoothWarmUp { quota, warm_up, cold_factor, max_debt }
        => Self::new(quota, warm_up, cold_factor, max_debt)
);
from_algorithm!(Concurrency, Algorithm::Concurrency { max } => Self::new(max); true);
