//! What a limit is defined as, and what becomes of that.

use core::fmt;

use crate::enforce::{Enforcer, enforcers};
use crate::on_change::OnChange;
use crate::queue::DEFAULT_QUEUE_LENGTH;
use crate::{Algorithm, QuotaError};

/// How a limit counts, for how many keys, and what stays when it takes another's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    pub(super) algorithm: Algorithm,
    pub(super) max_keys: usize,
    pub(super) on_change: OnChange,
    pub(super) queue_length: u64,
}

/// What became of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defined {
    /// There was no limit of this name.
    New,
    /// It took the place of another one.
    Changed,
    /// The limit was as it says already, or was to be set once only and is there.
    Kept,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitsError {
    /// No limit has this name.
    Unknown(String),
    /// The numbers make no limit.
    Quota(QuotaError),
    /// As many limits as there may be.
    TooMany(usize),
    /// The permits of a concurrency limit have to come back: it hands out guards.
    HandsOutGuards(String),
    /// The permits of a rate come back with time: it hands out no guards.
    HandsOutNone(String),
}

impl fmt::Display for LimitsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(f, "no limit is named `{name}`: define it first"),
            Self::Quota(error) => error.fmt(f),
            Self::TooMany(most) => write!(f, "{most} limits are defined, which is the most"),
            Self::HandsOutGuards(name) => {
                write!(f, "`{name}` limits concurrency: acquire a permit of it")
            }
            Self::HandsOutNone(name) => write!(f, "`{name}` is a rate: check it"),
        }
    }
}

impl core::error::Error for LimitsError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Quota(error) => Some(error),
            _ => None,
        }
    }
}

impl Definition {
    /// A limit of this kind for at most 100,000 keys (8 KB before the first comes); when it takes
    /// another's place, what was used stays used.
    pub fn new(algorithm: impl Into<Algorithm>) -> Self {
        Self {
            algorithm: algorithm.into(),
            max_keys: 100_000,
            on_change: OnChange::KeepUsed,
            queue_length: DEFAULT_QUEUE_LENGTH,
        }
    }

    /// The same for so many keys.
    #[must_use]
    pub const fn max_keys(self, max_keys: usize) -> Self {
        Self { max_keys, ..self }
    }

    /// The same with another choice of what stays when it takes another's place.
    #[must_use]
    pub const fn on_change(self, on_change: OnChange) -> Self {
        Self { on_change, ..self }
    }

    /// The same with a line of at most so many permits for each key of a concurrency limit
    /// ([`DEFAULT_QUEUE_LENGTH`] unless this is said): callers that would wait beyond it are
    /// refused at once.
    #[must_use]
    pub const fn queue_length(self, permits: u64) -> Self {
        Self {
            queue_length: permits,
            ..self
        }
    }

    /// How it counts.
    pub const fn algorithm(&self) -> &Algorithm {
        &self.algorithm
    }

    /// Whether a limit that is so already need not change.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let on_change = self.on_change;
        *self
            == Self {
                on_change,
                ..*other
            }
    }

    pub(super) fn enforcer(&self) -> Result<Enforcer, QuotaError> {
        let mut limits = enforcers(&[self.algorithm], self.max_keys)?;
        limits.pop().ok_or(QuotaError::MixedAlgorithms)
    }
}
