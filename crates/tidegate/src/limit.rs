//! A limit: a name, and what it holds requests to.

use alloc::string::String;
use core::time::Duration;

use crate::gate::Concurrency;
use crate::meter::{FixedWindow, SlidingLog, SmoothBursty, SmoothWarmUp, TokenBucket};
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
    /// At most `permits` in every window of this length, exactly. See
    /// [`SlidingLog`](crate::meter::SlidingLog).
    SlidingLog {
        /// Permits of any window.
        permits: u64,
        /// Length of the window.
        window: Duration,
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

/// How far ahead a pay-later limit grants by default: an hour.
pub const DEFAULT_MAX_DEBT: Duration = Duration::from_hours(1);

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
    /// Whether the numbers make a limit.
    ///
    /// # Errors
    /// [`QuotaError`] where they do not.
    pub fn validate(&self) -> Result<(), QuotaError> {
        match *self {
            Self::TokenBucket(quota) => TokenBucket::<u128>::new(quota).map(drop),
            Self::FixedWindow { permits, window } => FixedWindow::new(permits, window).map(drop),
            Self::SlidingLog { permits, window } => SlidingLog::new(permits, window).map(drop),
            Self::SmoothBursty { quota, max_debt } => SmoothBursty::new(quota, max_debt).map(drop),
            Self::SmoothWarmUp {
                quota,
                warm_up,
                cold_factor,
                max_debt,
            } => SmoothWarmUp::new(quota, warm_up, cold_factor, max_debt).map(drop),
            Self::Concurrency { max } => Concurrency::new(max).map(drop),
        }
    }

    /// Whether this algorithm answers with delays by itself: callers pay later.
    pub const fn delays(&self) -> bool {
        matches!(self, Self::SmoothBursty { .. } | Self::SmoothWarmUp { .. })
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
