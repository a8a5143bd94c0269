//! The tokens of Sentinel's two warm-ups: stored while little passes, taken out by what does. The
//! more of them lie above a warning line, the colder is the limit.
//!
//! `com.alibaba.csp.sentinel...WarmUpController`, `syncToken` and `coolDownTokens`.

use core::time::Duration;

use crate::{Quota, QuotaError};

/// So many a second when warm, reached over `warm_up` from `cold_factor` times fewer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Tokens {
    pub(super) count: u64,
    warm_up_seconds: u32,
    cold_factor: u32,
}

impl Tokens {
    pub(super) fn new(
        count: u64,
        warm_up_seconds: u32,
        cold_factor: u32,
    ) -> Result<Self, QuotaError> {
        if count > Quota::MAX_PERMITS >> 8 {
            return Err(QuotaError::TooManyPermits(count));
        }
        if !(2..=super::SmoothWarmUp::MAX_COLD_FACTOR).contains(&cold_factor) {
            return Err(QuotaError::ColdFactor(cold_factor));
        }
        if warm_up_seconds == 0 || u64::from(warm_up_seconds) > Quota::MAX_PERIOD.as_secs() {
            let warm_up = Duration::from_secs(u64::from(warm_up_seconds));
            return Err(QuotaError::WarmUp(warm_up));
        }
        Ok(Self {
            count,
            warm_up_seconds,
            cold_factor,
        })
    }

    /// Tokens above which the limit is not warm.
    pub(super) fn warning(&self) -> u64 {
        self.count * u64::from(self.warm_up_seconds) / u64::from(self.cold_factor - 1)
    }

    pub(super) fn most(&self) -> u64 {
        let whole = 2 * self.count * u64::from(self.warm_up_seconds);
        self.warning() + whole / (1 + u64::from(self.cold_factor))
    }

    /// What is stored after a second in which so many passed, of `stored` when it was last filled,
    /// so many seconds before (`None`: never).
    pub(super) fn filled(&self, stored: u64, seconds: Option<u64>, passed: u64) -> u64 {
        let gained = self.count.saturating_mul(seconds.unwrap_or(u64::MAX));
        let cold = self.count / u64::from(self.cold_factor);
        let warning = self.warning();
        let fills = seconds.is_none() || stored < warning || (stored > warning && passed < cold);
        let filled = if fills {
            stored.saturating_add(gained).min(self.most())
        } else {
            stored
        };
        filled.saturating_sub(passed)
    }

    /// How far the limit is from being warm: tokens above the line, and all that there may be.
    pub(super) fn above(&self, stored: u64) -> (u64, u64) {
        let (warning, most) = (self.warning(), self.most());
        (stored.min(most).saturating_sub(warning), most - warning)
    }

    /// How many times slower than warm a limit is that is as cold as it gets, less one.
    pub(super) const fn slowness(&self) -> u32 {
        self.cold_factor - 1
    }
}
