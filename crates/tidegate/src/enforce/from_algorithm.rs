//! Which meter an algorithm is, and with which state.

use crate::gate::Concurrency;
use crate::meter::{
    FixedWindow, IntervalBucket, Nginx, SentinelWarmUp, SlidingCounter, SlidingLog, SlidingWindow,
    SmoothBursty, SmoothWarmUp, TokenBucket,
};
use crate::{Algorithm, Meter};

/// A meter that an [`Algorithm`] can name.
pub(crate) trait FromAlgorithm: Meter {
    /// Whether its permits have to come back.
    const IS_GATE: bool = false;
    /// The meter for this algorithm; `None` where it is another's, or needs a wider state.
    fn from_algorithm(algorithm: &Algorithm) -> Option<Self>;
}

macro_rules! from_algorithm {
    ($meter:ty, $pattern:pat $(if $guard:expr)? => $make:expr $(, $gate:literal)?) => {
        impl FromAlgorithm for $meter {
            $(const IS_GATE: bool = $gate;)?
            fn from_algorithm(algorithm: &Algorithm) -> Option<Self> {
                match *algorithm {
                    $pattern $(if $guard)? => $make.ok(),
                    _ => None,
                }
            }
        }
    };
}

from_algorithm!(TokenBucket<u64>, Algorithm::TokenBucket(q) if Self::fits(q) => Self::new(q));
from_algorithm!(TokenBucket<u128>, Algorithm::TokenBucket(q) => Self::new(q));
from_algorithm!(
    FixedWindow,
    Algorithm::FixedWindow { permits, window } => Self::new(permits, window)
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
    SmoothBursty,
    Algorithm::SmoothBursty { quota, max_debt } => Self::new(quota, max_debt)
);
from_algorithm!(
    SmoothWarmUp,
    Algorithm::SmoothWarmUp { quota, warm_up, cold_factor, max_debt }
        => Self::new(quota, warm_up, cold_factor, max_debt)
);
from_algorithm!(Concurrency, Algorithm::Concurrency { max } => Self::new(max), true);
