//! Token bucket, greedy refill, pay now.
//!
//! The same thing as the generic cell rate algorithm (ITU-T I.371: virtual scheduling) and as a
//! leaky bucket that meters. The state is one number, the theoretical arrival time `tat`: the
//! time at which the bucket is full again. With `b` the burst and `i` the emission interval,
//! permits in use at `now` are `max(tat - now, 0) / i`, and `n` more fit if that + n <= b.
//!
//! No rate is rounded: time is scaled by the numerator of the reduced rate (`num` permits each
//! `den` ns), so that one permit costs exactly `den` units.

use alloc::vec::Vec;
use core::time::Duration;

use super::words::{halves, scaled};
use super::{Meter, Plan, State, Taken, Used, Word};
use crate::{Ask, Decision, Quota, QuotaError, Rate, Retry, Timestamp, Verdict};

/// In every interval of length *t* at most `burst + rate * t` permits.
///
/// `W` is the width of the state: `u64` for the rates that [`fits`](Self::fits) it, `u128` for
/// all. A caller that offers to wait reserves: permits that are not there yet are taken now and
/// the answer is a delay, in the order of the calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TokenBucket<W: Word = u128> {
    pub(super) numerator: u64,
    /// What one permit costs, in scaled nanoseconds.
    pub(super) cost: u64,
    pub(super) burst: u64,
    pub(super) capacity: W,
    /// What a new key has in use: the burst less its initial permits.
    initially_used: W,
}

/// The state: the scaled time at which the bucket is full again. 0 is a bucket at rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tat<W>(pub(crate) W);

/// What a token bucket would change: the new `tat`, and what for.
#[derive(Clone, Copy, Debug)]
pub struct Charge<W> {
    pub(super) tat: W,
    pub(super) permits: u64,
    pub(super) at: Timestamp,
}

impl<W: Word> TokenBucket<W> {
    /// A bucket of this quota.
    ///
    /// # Errors
    /// [`QuotaError`] where the numbers make no limit, or need a wider state.
    pub fn new(quota: Quota) -> Result<Self, QuotaError> {
        let rate = quota.rate()?;
        let burst = quota.burst_permits();
        if largest_tat(rate, burst) >= W::LARGEST.into() {
            return Err(QuotaError::NarrowState);
        }
        Ok(Self {
            // A rate of 0 has a burst of 0, so that no time ever matters.
            numerator: rate.permits().max(1),
            cost: rate.nanos(),
            burst,
            capacity: W::of(rate.nanos()).times(burst),
            initially_used: W::of(rate.nanos()).times(burst - quota.initial_permits()),
        })
    }
}

impl<W: Word> TokenBucket<W> {
    /// The most permits at once.
    #[cfg(feature = "std")]
    pub(crate) const fn burst(&self) -> u64 {
        self.burst
    }
}

impl TokenBucket<u64> {
    /// Whether 64 bits hold every state of this quota exactly.
    pub fn fits(quota: Quota) -> bool {
        Self::new(quota).is_ok()
    }
}

/// The scaled end of time, a full bucket of use, and as much again for what callers that wait have
/// reserved.
fn largest_tat(rate: Rate, burst: u64) -> u128 {
    u128::from(Timestamp::MAX.as_nanos()) * u128::from(rate.permits())
        + 2 * u128::from(rate.nanos()) * u128::from(burst)
}

impl<W: Word> Meter for TokenBucket<W>
where
    Tat<W>: State,
{
    type State = Tat<W>;
    type Change = Charge<W>;

    fn fresh(&self, now: Timestamp) -> Tat<W> {
        if self.initially_used == W::default() {
            return Tat::default();
        }
        Tat(W::scaled(now, self.numerator).plus(self.initially_used))
    }

    #[inline]
    fn plan(&self, state: &Tat<W>, now: Timestamp, ask: &Ask) -> Plan<Charge<W>> {
        let scaled_now = W::scaled(now, self.numerator);
        let full_at = state.0.max(scaled_now);
        let permits = ask.permits();
        let new = full_at.plus(W::of(self.cost).times(permits));
        // A caller that offers to wait takes permits that are yet to come. The last word of the
        // range is never reached: time saturates before it.
        let over = new.minus(scaled_now).minus(self.capacity);
        let patience = W::of(ask.max_delay_nanos()).times(self.numerator);
        let is_forced = ask.is_forced();
        let fits = if is_forced {
            // What comes after it has to fit into the range too.
            permits <= Quota::MAX_PERMITS && new.plus(self.capacity) < W::LARGEST
        } else {
            permits <= self.burst && over <= patience && new < W::LARGEST
        };
        let wait = if is_forced {
            0
        } else {
            over.div_ceil(self.numerator)
        };
        let verdict = if permits == 0 {
            Verdict::Allowed {
                delay: Duration::ZERO,
            }
        } else if fits {
            Verdict::Allowed {
                delay: Duration::from_nanos(wait),
            }
        } else if is_forced || permits > self.burst {
            Verdict::Denied {
                retry: Retry::Never,
            }
        } else {
            let wait = over.minus(patience).div_ceil(self.numerator).max(1);
            Verdict::Denied {
                retry: Retry::After(Duration::from_nanos(wait)),
            }
        };
        let taken = permits > 0 && fits;
        let in_use = if taken { new } else { full_at }.minus(scaled_now);
        let decision = Decision {
            verdict,
            limit: self.burst,
            remaining: self.capacity.minus(in_use).div_floor(self.cost),
            reset_after: Duration::from_nanos(in_use.div_ceil(self.numerator)),
        };
        Plan {
            decision,
            change: taken.then_some(Charge {
                tat: new,
                permits,
                at: now,
            }),
        }
    }

    #[inline]
    fn commit(&self, state: &mut Tat<W>, change: Charge<W>) -> Taken {
        state.0 = change.tat;
        Taken {
            permits: change.permits,
            at: change.at,
            detail: 0,
        }
    }

    fn undo(&self, state: &mut Tat<W>, taken: &Taken, _now: Timestamp) {
        // Where the bucket has refilled since, `tat` lies in the past and stays there.
        state.0 = state.0.minus(W::of(self.cost).times(taken.permits));
    }

    fn used(&self, state: &Tat<W>, now: Timestamp) -> Used {
        let in_use = state.0.minus(W::scaled(now, self.numerator));
        Used::units(in_use.into(), self.cost)
    }

    fn assume(&self, used: Used, now: Timestamp) -> Tat<W> {
        if used == Used::NOTHING {
            return Tat::default();
        }
        let in_use = W::of_wide(used.to_units(self.cost));
        Tat(W::scaled(now, self.numerator).plus(in_use))
    }

    fn at_stake(&self, state: &Tat<W>, now: Timestamp) -> Option<u64> {
        Some(
            state
                .0
                .minus(W::scaled(now, self.numerator))
                .minus(self.initially_used)
                .div_ceil(self.cost),
        )
    }
}

impl State for Tat<u64> {
    #[cfg(feature = "std")]
    type Cell = crate::store::AtomicCell<Self>;

    fn write_words(&self, words: &mut Vec<u64>) {
        words.push(self.0);
    }

    fn from_words(words: &[u64]) -> Option<Self> {
        match *words {
            [tat] => Some(Self(u64::of(tat))),
            _ => None,
        }
    }
}

impl State for Tat<u128> {
    #[cfg(feature = "std")]
    type Cell = crate::store::MutexCell<Self>;

    fn write_words(&self, words: &mut Vec<u64>) {
        words.extend(halves(self.0));
    }

    fn from_words(words: &[u64]) -> Option<Self> {
        match *words {
            [upper, lower] => Some(Self(scaled(upper, lower))),
            _ => None,
        }
    }
}
