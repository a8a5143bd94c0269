//! Guava's smooth warm-up: after rest a limit is cold, and permits cost more until it is warm.
//!
//! `com.google.common.util.concurrent.SmoothRateLimiter.SmoothWarmingUp`. With `i` the warm
//! interval of one permit, `p` the warm-up and `c` the cold factor, stored permits above a
//! threshold `0.5 p/i` cost more than `i`, rising linearly to `c i` at the most that is stored,
//! `0.5 p/i + 2p/(i + c i)`; the area under that line is `p`. Idling fills from 0 to the most in
//! exactly `p`.
//!
//! Kept exactly: with units of 1/den permits (rate `num`/`den` per ns) and time scaled by
//! `num`, one permit costs `den` when warm, the threshold is half of `P = p * num`, and `x1 - x0`
//! units taken above it cost `(c² - 1)(x1 - x0)(x1 + x0) / 4P` more.

use alloc::vec::Vec;
use core::time::Duration;

use super::smooth_bursty::DEFAULT_DEBT;
use super::word::{MOST_OWED, rescaled};
use super::words::{halves, scaled};
use super::{Meter, Plan, State, Taken, Used};
use crate::time::nanos;
use crate::{Ask, Decision, Quota, QuotaError, Retry, Timestamp, Verdict};

/// A pay-later limit that is slow after rest and reaches its rate over `warm_up`.
///
/// In every interval of length *t* at most `rate * (t + max_debt)` permits: what is stored is paid
/// for like the rest, and while it is cold it costs more. [`Decision::limit`] is what is stored
/// after rest.
///
/// Other numbers change it as Guava's `setRate` does: what is stored stays the same part of the
/// most, and what is owed is paid for as long as before.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SmoothWarmUp {
    numerator: u64,
    cost: u64,
    cold_factor: u32,
    /// The warm-up in scaled nanoseconds.
    warm_up: u128,
    /// Stored units above which the limit is not warm.
    threshold: u128,
    max_stored: u128,
    max_debt: u128,
}

/// The state: stored units, and the scaled time at which all that was granted is paid for.
///
/// Both are kept relative to being cold and paid, so that the default is a key at rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Warmth {
    /// Units missing from the most that is stored.
    missing: u128,
    next_free: u128,
}

/// What a request would change.
#[derive(Clone, Copy, Debug)]
pub struct Spend {
    new: Warmth,
    permits: u64,
    at: Timestamp,
    stored: u128,
}

impl SmoothWarmUp {
    /// The largest cold factor.
    pub const MAX_COLD_FACTOR: u32 = 100;

    /// The quota's rate when warm, reached over `warm_up` from `cold_factor` times slower.
    ///
    /// # Errors
    /// [`QuotaError`] where the numbers make no limit.
    pub fn new(
        quota: Quota,
        warm_up: Duration,
        cold_factor: u32,
        max_debt: Duration,
    ) -> Result<Self, QuotaError> {
        let made = Self::without_debt(quota, warm_up, cold_factor)?;
        let made = Self {
            max_debt: u128::from(nanos(max_debt)) * u128::from(made.numerator.max(1)),
            ..made
        };
        if made.dearest() > made.max_debt {
            return Err(QuotaError::Debt(max_debt));
        }
        Ok(made)
    }

    /// The most debt where nothing else is said: an hour, or if that is more what all that is
    /// stored after rest costs (one and a half times the warm-up), or one permit after rest (at
    /// most `cold_factor` times what it takes when warm).
    pub fn default_max_debt(quota: Quota, warm_up: Duration, cold_factor: u32) -> Duration {
        let made = Self::without_debt(quota, warm_up, cold_factor);
        made.map_or(DEFAULT_DEBT, |made| {
            DEFAULT_DEBT.max(Duration::from_nanos(made.nanos_of(made.dearest())))
        })
    }

    /// The same without what it may grant ahead.
    fn without_debt(quota: Quota, warm_up: Duration, cold_factor: u32) -> Result<Self, QuotaError> {
        let rate = quota.rate()?;
        if !(2..=Self::MAX_COLD_FACTOR).contains(&cold_factor) {
            return Err(QuotaError::ColdFactor(cold_factor));
        }
        let scaled = u128::from(nanos(warm_up)) * u128::from(rate.permits().max(1));
        // The dearest product of `extra` below, and taken units in a receipt, must fit.
        if scaled == 0 || scaled > 1 << 56 {
            return Err(QuotaError::WarmUp(warm_up));
        }
        let cold = u128::from(cold_factor);
        Ok(Self {
            numerator: rate.permits(),
            cost: rate.nanos(),
            cold_factor,
            warm_up: scaled,
            threshold: scaled / 2,
            // p/2 + 2p/(1 + c), rounded once. A rate of 0 stores nothing.
            max_stored: match rate.permits() {
                0 => 0,
                _ => scaled * (5 + cold) / (2 * (1 + cold)),
            },
            max_debt: 0,
        })
    }

    /// The least debt that makes sense: what is stored can be taken at once, and a new key, which
    /// is cold, can take one permit.
    fn dearest(&self) -> u128 {
        if self.numerator == 0 {
            return 0;
        }
        let all = self.max_stored + self.extra(self.max_stored, self.max_stored);
        all.max(self.price(1, self.max_stored))
    }

    fn scaled(&self, now: Timestamp) -> u128 {
        u128::from(now.as_nanos()) * u128::from(self.numerator)
    }

    /// The state at `now`: idling stores permits.
    fn rested(&self, state: Warmth, scaled_now: u128) -> Warmth {
        let idle = scaled_now.saturating_sub(state.next_free);
        let cold = u128::from(self.cold_factor);
        // From 0 to the most in exactly the warm-up; longer changes nothing.
        let gained = idle.min(self.warm_up) * (5 + cold) / (2 * (1 + cold));
        let missing = if idle >= self.warm_up {
            0
        } else {
            // Of a state from elsewhere no more is missing than there can be.
            state.missing.min(self.max_stored).saturating_sub(gained)
        };
        Warmth {
            missing,
            next_free: state.next_free.max(scaled_now),
        }
    }

    /// What `taken` units out of `stored` cost beyond their warm price, rounded up.
    fn extra(&self, stored: u128, taken: u128) -> u128 {
        let above = stored.saturating_sub(self.threshold);
        let dear = taken.min(above);
        let slope = u128::from(self.cold_factor) * u128::from(self.cold_factor) - 1;
        (slope * dear * (2 * above - dear)).div_ceil(4 * self.warm_up)
    }

    fn units(&self, permits: u64) -> u128 {
        u128::from(self.cost) * u128::from(permits)
    }

    /// What so many permits cost where `stored` units are.
    fn price(&self, permits: u64, stored: u128) -> u128 {
        let units = self.units(permits);
        units + self.extra(stored, units.min(stored))
    }

    fn nanos_of(&self, scaled: u128) -> u64 {
        u64::try_from(scaled.div_ceil(u128::from(self.numerator.max(1)))).unwrap_or(u64::MAX)
    }

    fn answer(&self, verdict: Verdict, state: Warmth, scaled_now: u128) -> Decision {
        let debt = state.next_free.saturating_sub(scaled_now);
        let stored = if debt > 0 {
            0
        } else {
            self.max_stored - state.missing
        };
        let cold = u128::from(self.cold_factor);
        let to_store = (state.missing * 2 * (1 + cold)).div_ceil(5 + cold);
        let whole = |units: u128| u64::try_from(units / u128::from(self.cost)).unwrap_or(u64::MAX);
        Decision {
            verdict,
            limit: whole(self.max_stored),
            remaining: whole(stored),
            reset_after: Duration::from_nanos(self.nanos_of(debt + to_store)),
        }
    }
}

impl Meter for SmoothWarmUp {
    type State = Warmth;
    type Change = Spend;

    fn fresh(&self, now: Timestamp) -> Warmth {
        Warmth {
            missing: 0,
            next_free: self.scaled(now),
        }
    }

    fn plan(&self, state: &Warmth, now: Timestamp, ask: &Ask) -> Plan<Spend> {
        let scaled_now = self.scaled(now);
        let state = self.rested(*state, scaled_now);
        let permits = ask.permits();
        let refuse = |retry| Plan {
            decision: self.answer(Verdict::Denied { retry }, state, scaled_now),
            change: None,
        };
        if permits == 0 {
            let verdict = Verdict::Allowed {
                delay: Duration::ZERO,
            };
            return Plan {
                decision: self.answer(verdict, state, scaled_now),
                change: None,
            };
        }
        let available = self.max_stored - state.missing;
        let stored = self.units(permits).min(available);
        let price = self.price(permits, available);
        let debt = state.next_free - scaled_now;
        let owed = self.nanos_of(debt);
        let too_far = self.nanos_of((debt + price).saturating_sub(self.max_debt));
        if ask.is_forced() {
            if permits > Quota::MAX_PERMITS || state.next_free + price >= MOST_OWED {
                return refuse(Retry::Never);
            }
        } else if self.numerator == 0 || price > self.max_debt {
            // No debt allows it at all; and who waits finds it no warmer.
            return refuse(Retry::Never);
        }
        let wait = owed.saturating_sub(ask.max_delay_nanos()).max(too_far);
        if wait > 0 && !ask.is_forced() {
            return refuse(Retry::After(Duration::from_nanos(wait)));
        }
        let delay = if ask.is_forced() { 0 } else { owed };
        let new = Warmth {
            missing: state.missing + stored,
            next_free: state.next_free + price,
        };
        let verdict = Verdict::Allowed {
            delay: Duration::from_nanos(delay),
        };
        let decision = self.answer(verdict, new, scaled_now);
        Plan {
            decision,
            change: Some(Spend {
                new,
                permits,
                at: now,
                stored,
            }),
        }
    }

    fn commit(&self, state: &mut Warmth, spend: Spend) -> Taken {
        *state = spend.new;
        // Stored units are below 2^57 (see `new`).
        let detail = u64::try_from(spend.stored).unwrap_or(u64::MAX);
        Taken {
            permits: spend.permits,
            at: spend.at,
            detail,
        }
    }

    fn undo(&self, state: &mut Warmth, taken: &Taken, now: Timestamp) {
        let mut rested = self.rested(*state, self.scaled(now));
        let stored = u128::from(taken.detail);
        rested.missing = rested.missing.saturating_sub(stored);
        // The price is what the same units cost from where they are put back to.
        let price =
            self.units(taken.permits) + self.extra(self.max_stored - rested.missing, stored);
        rested.next_free = rested.next_free.saturating_sub(price).max(self.scaled(now));
        *state = rested;
    }

    fn used(&self, state: &Warmth, now: Timestamp) -> Used {
        let scaled_now = self.scaled(now);
        let state = self.rested(*state, scaled_now);
        Used::units(state.missing + (state.next_free - scaled_now), self.cost)
    }

    fn assume(&self, used: Used, now: Timestamp) -> Warmth {
        let units = used.to_units(self.cost);
        let missing = units.min(self.max_stored);
        Warmth {
            missing,
            next_free: self.scaled(now).saturating_add(units - missing),
        }
    }

    fn migrate(&self, new: &Self, state: &mut Warmth, now: Timestamp) {
        let rested = self.rested(*state, self.scaled(now));
        let stored = self.max_stored - rested.missing;
        // A rate of 0 had stored nothing: cold, as Guava has it.
        let kept = match self.max_stored {
            0 => new.max_stored,
            most => new.max_stored * stored / most,
        };
        let debt = rested.next_free - self.scaled(now);
        let owed = rescaled(debt, self.numerator.max(1), new.numerator.max(1));
        *state = Warmth {
            missing: new.max_stored - kept,
            next_free: new.scaled(now) + owed,
        };
    }

    fn at_stake(&self, state: &Warmth, now: Timestamp) -> Option<u64> {
        // A fresh key is cold and owes nothing: only debt would be given away.
        let debt = state.next_free.saturating_sub(self.scaled(now));
        Some(u64::try_from(debt.div_ceil(u128::from(self.cost))).unwrap_or(u64::MAX))
    }
}

impl State for Warmth {
    #[cfg(feature = "std")]
    type Cell = crate::store::MutexCell<Self>;

    fn write_words(&self, words: &mut Vec<u64>) {
        words.extend(halves(self.missing));
        words.extend(halves(self.next_free));
    }

    fn from_words(words: &[u64]) -> Option<Self> {
        match *words {
            [upper, lower, next_upper, next_lower] => Some(Self {
                missing: scaled(upper, lower),
                next_free: scaled(next_upper, next_lower),
            }),
            _ => None,
        }
    }
}
