//! Guava's smooth bursty: permits are stored while nobody comes, and callers pay later.
//!
//! `com.google.common.util.concurrent.SmoothRateLimiter.SmoothBursty`: how many permits a
//! request takes never changes its own wait, only that of the next one. Kept as a token bucket
//! whose level may go below zero; exact, where Guava truncates each wait to a microsecond.

use core::time::Duration;

use super::token_bucket::{Charge, Tat};
use super::word::{MOST_OWED, mul_div, rescaled};
use super::{Meter, Plan, Taken, Used};
use crate::time::nanos;
use crate::{Ask, Decision, Quota, QuotaError, Retry, Timestamp, Verdict};

/// The most debt of a limit that costs less, where nothing else is said: an hour.
pub(super) const DEFAULT_DEBT: Duration = Duration::from_hours(1);

/// A request is admitted as soon as no earlier one is still being paid for, whatever it takes
/// itself. The burst is the most permits that are stored; a new key has none.
///
/// In every interval of length *t* at most `burst + rate * (t + max_debt)` permits: `max_debt`
/// bounds how far ahead permits are granted. (After rest, `burst` permits pass at once and then
/// one more request of any size: that is paying later.)
///
/// Other numbers change it as Guava's `setRate` does: what is stored stays the same part of the
/// burst, and what is owed is paid for as long as before.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SmoothBursty {
    numerator: u64,
    cost: u64,
    burst: u64,
    // Scaled times, as a token bucket has them. The largest there is, but for what is forced, is
    // the end of time with all debt, below 2^106; what a request of 2^64 permits adds is below
    // 2^120.
    capacity: u128,
    max_debt: u128,
}

impl SmoothBursty {
    /// Stores up to the quota's burst; grants at most `max_debt` ahead.
    ///
    /// # Errors
    /// [`QuotaError`] where the numbers make no limit.
    pub fn new(quota: Quota, max_debt: Duration) -> Result<Self, QuotaError> {
        let rate = quota.rate()?;
        let burst = quota.burst_permits();
        Ok(Self {
            numerator: rate.permits().max(1),
            cost: rate.nanos(),
            burst,
            capacity: u128::from(rate.nanos()) * u128::from(burst),
            max_debt: u128::from(nanos(max_debt)) * u128::from(rate.permits()),
        })
    }

    /// The most debt where nothing else is said: an hour, or what a whole burst costs of which
    /// nothing is stored, if that is more. So whatever a rested limit grants at once, a new one
    /// grants, too, and is paid later.
    pub fn default_max_debt(quota: Quota) -> Duration {
        let permits = u128::from(quota.permits().max(1));
        let burst = u128::from(quota.burst_permits()) * quota.period().as_nanos();
        let nanos = u64::try_from(burst.div_ceil(permits)).unwrap_or(u64::MAX);
        DEFAULT_DEBT.max(Duration::from_nanos(nanos))
    }

    fn scaled(&self, now: Timestamp) -> u128 {
        u128::from(now.as_nanos()) * u128::from(self.numerator)
    }

    fn in_use(&self, state: Tat<u128>, now: Timestamp) -> u128 {
        state.0.saturating_sub(self.scaled(now))
    }

    /// How far the level is below zero.
    const fn debt(&self, in_use: u128) -> u128 {
        in_use.saturating_sub(self.capacity)
    }

    fn nanos_of(&self, scaled: u128) -> u64 {
        u64::try_from(scaled.div_ceil(u128::from(self.numerator))).unwrap_or(u64::MAX)
    }

    fn answer(&self, verdict: Verdict, in_use: u128) -> Decision {
        let stored = self.capacity.saturating_sub(in_use) / u128::from(self.cost);
        Decision {
            verdict,
            limit: self.burst,
            remaining: u64::try_from(stored).unwrap_or(u64::MAX),
            reset_after: Duration::from_nanos(self.nanos_of(in_use)),
        }
    }
}

impl Meter for SmoothBursty {
    type State = Tat<u128>;
    type Change = Charge<u128>;

    fn fresh(&self, now: Timestamp) -> Tat<u128> {
        Tat(self.scaled(now) + self.capacity)
    }

    fn plan(&self, state: &Tat<u128>, now: Timestamp, ask: &Ask) -> Plan<Charge<u128>> {
        let in_use = self.in_use(*state, now);
        let answer = |verdict, in_use, change| Plan {
            decision: self.answer(verdict, in_use),
            change,
        };
        let permits = ask.permits();
        if permits == 0 {
            let delay = Duration::ZERO;
            return answer(Verdict::Allowed { delay }, in_use, None);
        }
        let cost = u128::from(self.cost) * u128::from(permits);
        let tat = self.scaled(now) + in_use + cost;
        if ask.is_forced() && permits <= Quota::MAX_PERMITS && tat < MOST_OWED {
            let delay = Duration::ZERO;
            let at = now;
            let change = Charge { tat, permits, at };
            return answer(Verdict::Allowed { delay }, in_use + cost, Some(change));
        }
        if ask.is_forced() || self.burst == 0 || self.debt(cost) > self.max_debt {
            let retry = Retry::Never;
            return answer(Verdict::Denied { retry }, in_use, None);
        }
        let owed = self.nanos_of(self.debt(in_use));
        let too_far = self.debt(in_use + cost).saturating_sub(self.max_debt);
        let wait = owed
            .saturating_sub(ask.max_delay_nanos())
            .max(self.nanos_of(too_far));
        if wait > 0 {
            let retry = Retry::After(Duration::from_nanos(wait));
            return answer(Verdict::Denied { retry }, in_use, None);
        }
        let delay = Duration::from_nanos(owed);
        let at = now;
        let change = Charge { tat, permits, at };
        answer(Verdict::Allowed { delay }, in_use + cost, Some(change))
    }

    fn commit(&self, state: &mut Tat<u128>, change: Charge<u128>) -> Taken {
        state.0 = change.tat;
        Taken {
            permits: change.permits,
            at: change.at,
            detail: 0,
        }
    }

    fn undo(&self, state: &mut Tat<u128>, taken: &Taken, _now: Timestamp) {
        let cost = u128::from(self.cost) * u128::from(taken.permits);
        state.0 = state.0.saturating_sub(cost);
    }

    fn used(&self, state: &Tat<u128>, now: Timestamp) -> Used {
        Used::units(self.in_use(*state, now), self.cost)
    }

    fn assume(&self, used: Used, now: Timestamp) -> Tat<u128> {
        Tat(self.scaled(now) + used.to_units(self.cost))
    }

    fn migrate(&self, new: &Self, state: &mut Tat<u128>, now: Timestamp) {
        let in_use = self.in_use(*state, now);
        let stored = self.capacity.saturating_sub(in_use);
        let kept = mul_div(new.capacity, stored, self.capacity.max(1));
        let owed = rescaled(self.debt(in_use), self.numerator, new.numerator);
        state.0 = new.scaled(now) + (new.capacity - kept) + owed;
    }

    fn at_stake(&self, state: &Tat<u128>, now: Timestamp) -> Option<u64> {
        // A fresh key has no stored permits and no debt: only debt would be given away.
        let debt = self.debt(self.in_use(*state, now));
        Some(u64::try_from(debt.div_ceil(u128::from(self.cost))).unwrap_or(u64::MAX))
    }
}
