//! Guava's smooth bursty: permits are stored while nobody comes, and callers pay later.
//!
//! `com.google.common.util.concurrent.SmoothRateLimiter.SmoothBursty`: how many permits a
//! request takes never changes its own wait, only that of the next one. Kept as a token bucket
//! whose level may go below zero; exact, where Guava truncates each wait to a microsecond.

use core::time::Duration;

use super::token_bucket::{Charge, Tat};
use super::{Meter, Plan, State, Taken, Used, Word};
use crate::time::nanos;
use crate::{Ask, Decision, Quota, QuotaError, Rate, Retry, Timestamp, Verdict};

/// A request is admitted as soon as no earlier one is still being paid for, whatever it takes
/// itself. The burst is the most permits that are stored; a new key has none.
///
/// In every interval of length *t* at most `burst + rate * (t + max_debt)` permits: `max_debt`
/// bounds how far ahead permits are granted. (After rest, `burst` permits pass at once and then
/// one more request of any size: that is paying later.)
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SmoothBursty<W: Word = u128> {
    numerator: u64,
    cost: u64,
    burst: u64,
    capacity: W,
    max_debt: W,
}

impl<W: Word> SmoothBursty<W> {
    /// Stores up to the quota's burst; grants at most `max_debt` ahead.
    ///
    /// # Errors
    /// [`QuotaError`] where the numbers make no limit, or need a wider state.
    pub fn new(quota: Quota, max_debt: Duration) -> Result<Self, QuotaError> {
        let rate = quota.rate()?;
        if largest_tat(rate, quota.burst_permits(), max_debt) >= W::LARGEST.into() {
            return Err(QuotaError::NarrowState);
        }
        Ok(Self {
            numerator: rate.permits().max(1),
            cost: rate.nanos(),
            burst: quota.burst_permits(),
            capacity: W::of(rate.nanos()).times(quota.burst_permits()),
            max_debt: W::of(nanos(max_debt)).times(rate.permits()),
        })
    }

    /// The debt in a state: how far its level is below zero.
    fn debt(&self, state: Tat<W>, scaled_now: W) -> W {
        state.0.minus(scaled_now).minus(self.capacity)
    }

    fn answer(&self, verdict: Verdict, in_use: W, change: Option<Charge<W>>) -> Plan<Charge<W>> {
        let decision = Decision {
            verdict,
            limit: self.burst,
            remaining: self.capacity.minus(in_use).div_floor(self.cost),
            reset_after: Duration::from_nanos(in_use.div_ceil(self.numerator)),
        };
        Plan { decision, change }
    }
}

impl SmoothBursty<u64> {
    /// Whether 64 bits hold every state exactly.
    pub fn fits(quota: Quota, max_debt: Duration) -> bool {
        Self::new(quota, max_debt).is_ok()
    }
}

/// The scaled end of time, all debt there may be, and what a plan adds to see that it is too much.
fn largest_tat(rate: Rate, burst: u64, max_debt: Duration) -> u128 {
    let time = u128::from(Timestamp::MAX.as_nanos()) + 2 * u128::from(nanos(max_debt));
    time * u128::from(rate.permits()) + 2 * u128::from(rate.nanos()) * u128::from(burst)
}

impl<W: Word> Meter for SmoothBursty<W>
where
    Tat<W>: State,
{
    type State = Tat<W>;
    type Change = Charge<W>;

    fn fresh(&self, now: Timestamp) -> Tat<W> {
        Tat(W::scaled(now, self.numerator).plus(self.capacity))
    }

    fn plan(&self, state: &Tat<W>, now: Timestamp, ask: &Ask) -> Plan<Charge<W>> {
        let scaled_now = W::scaled(now, self.numerator);
        let full_at = state.0.max(scaled_now);
        let in_use = full_at.minus(scaled_now);
        let permits = ask.permits();
        if permits == 0 {
            return self.answer(
                Verdict::Allowed {
                    delay: Duration::ZERO,
                },
                in_use,
                None,
            );
        }
        let cost = W::of(self.cost).times(permits);
        if self.burst == 0 || cost.minus(self.capacity) > self.max_debt {
            return self.answer(
                Verdict::Denied {
                    retry: Retry::Never,
                },
                in_use,
                None,
            );
        }
        let new = full_at.plus(cost);
        let owed = self.debt(*state, scaled_now).div_ceil(self.numerator);
        let too_far = self.debt(Tat(new), scaled_now).minus(self.max_debt);
        let wait = owed
            .saturating_sub(ask.max_delay_nanos())
            .max(too_far.div_ceil(self.numerator));
        if wait > 0 || new >= W::LARGEST {
            let retry = Retry::After(Duration::from_nanos(wait.max(1)));
            return self.answer(Verdict::Denied { retry }, in_use, None);
        }
        let verdict = Verdict::Allowed {
            delay: Duration::from_nanos(owed),
        };
        let change = Charge {
            tat: new,
            permits,
            at: now,
        };
        self.answer(verdict, new.minus(scaled_now), Some(change))
    }

    fn commit(&self, state: &mut Tat<W>, change: Charge<W>) -> Taken {
        state.0 = change.tat;
        Taken {
            permits: change.permits,
            at: change.at,
            detail: 0,
        }
    }

    fn undo(&self, state: &mut Tat<W>, taken: &Taken, _now: Timestamp) {
        state.0 = state.0.minus(W::of(self.cost).times(taken.permits));
    }

    fn used(&self, state: &Tat<W>, now: Timestamp) -> Used {
        Used::units(
            state.0.minus(W::scaled(now, self.numerator)).into(),
            self.cost,
        )
    }

    fn assume(&self, used: Used, now: Timestamp) -> Tat<W> {
        Tat(W::scaled(now, self.numerator).plus(W::of_wide(used.to_units(self.cost))))
    }

    fn at_stake(&self, state: &Tat<W>, now: Timestamp) -> Option<u64> {
        // A fresh key has no stored permits and no debt: only debt would be given away.
        Some(
            self.debt(*state, W::scaled(now, self.numerator))
                .div_ceil(self.cost),
        )
    }
}
