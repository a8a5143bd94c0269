//! nginx's `limit_req`, number by number.
//!
//! `ngx_http_limit_req_module`: a leaky bucket in thousandths of a request and whole
//! milliseconds. For configurations that come from nginx and must behave as they did; a token
//! bucket is exact. What differs from it, and is kept: a rate is cut to thousandths of a request
//! per second (1r/m is 0.96 r/m), the first request of a key, and the first after it has long
//! been idle, costs nothing.

use alloc::vec::Vec;
use core::time::Duration;

use super::words::{count, tick};
use super::{Meter, Plan, State, Taken, Used};
use crate::{Ask, Decision, Quota, QuotaError, Retry, Timestamp, Verdict};

/// One request.
const REQUEST: u64 = 1_000;
const NANOS_PER_MILLI: u64 = 1_000_000;

/// `limit_req_zone ... rate=`, with `limit_req`'s `burst=`, `delay=` and `nodelay`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Nginx {
    /// Thousandths of a request per second.
    rate: u64,
    /// Thousandths of a request beyond the rate.
    burst: u64,
    /// Excess up to which nothing is delayed; `None` is `nodelay`.
    delay: Option<u64>,
}

/// The state: the excess that one more request would have led to at once, and the millisecond in
/// which a request was last let through. A level of 0 is nginx's node that is not there: the next
/// request is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Excess {
    level: u64,
    last: u64,
}

impl Nginx {
    /// `requests` per second, or per minute; nginx's own `burst` (which does not include the
    /// first request); and how many of it are not delayed, `None` for `nodelay`.
    ///
    /// # Errors
    /// [`QuotaError`] where the rate is cut to 0, or a number is too large.
    pub fn new(
        requests: u64,
        per_minute: bool,
        burst: u64,
        delay: Option<u64>,
    ) -> Result<Self, QuotaError> {
        let most = requests.max(burst).max(delay.unwrap_or(0));
        if most > Quota::MAX_PERMITS {
            return Err(QuotaError::TooManyPermits(most));
        }
        let rate = requests * REQUEST / if per_minute { 60 } else { 1 };
        if rate == 0 {
            return Err(QuotaError::RateCutToNothing);
        }
        Ok(Self {
            rate,
            burst: burst * REQUEST,
            delay: delay.map(|delay| delay * REQUEST),
        })
    }

    /// The excess that one more request leads to.
    fn level(&self, state: Excess, millis: u64) -> u64 {
        // Where this saturates, it is still far more than any level.
        let drained = self.rate.saturating_mul(millis.saturating_sub(state.last)) / 1_000;
        state.level.saturating_sub(drained)
    }

    /// The largest excess at which the requests of a caller that waits so long go ahead.
    fn most(&self, patience: u64) -> u64 {
        let Some(delay) = self.delay else {
            return self.burst;
        };
        // What is over is delayed by over * 1000 / rate whole milliseconds: the most for which
        // they are no more than the whole milliseconds of patience.
        let millis = u128::from(patience / NANOS_PER_MILLI);
        let over = ((millis + 1) * u128::from(self.rate) - 1) / 1_000;
        let most = u128::from(delay) + over;
        u64::try_from(most).map_or(self.burst, |most| most.min(self.burst))
    }

    /// For how long requests that lead to this excess (at most the burst) are delayed.
    fn delay(&self, excess: u64) -> Duration {
        let over = self.delay.map_or(0, |delay| excess.saturating_sub(delay));
        Duration::from_millis(over * 1_000 / self.rate)
    }

    /// The time until the level is no more than `target`.
    fn until(&self, state: Excess, target: u64, now: Timestamp) -> Duration {
        let drain = state.level.saturating_sub(target);
        if drain == 0 {
            return Duration::ZERO;
        }
        let millis = (u128::from(drain) * 1_000).div_ceil(u128::from(self.rate));
        let at = (millis + u128::from(state.last)) * u128::from(NANOS_PER_MILLI);
        let wait = at.saturating_sub(now.as_nanos().into());
        Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX))
    }

    /// Above any burst, and without delay.
    fn forced(&self, state: Excess, millis: u64, ask: &Ask) -> Verdict {
        // Of thousandths no state counts more than of permits.
        match ask.forced_onto(self.level(state, millis)) {
            Some(_) => Verdict::Allowed {
                delay: Duration::ZERO,
            },
            None => Verdict::Denied {
                retry: Retry::Never,
            },
        }
    }

    fn verdict(&self, state: Excess, millis: u64, now: Timestamp, ask: &Ask) -> Verdict {
        // The first of them finds the level, each other a request more.
        let Some(others) = ask.permits().checked_sub(1) else {
            return Verdict::Allowed {
                delay: Duration::ZERO,
            };
        };
        if ask.is_forced() {
            return self.forced(state, millis, ask);
        }
        let others = others.saturating_mul(REQUEST);
        let Some(target) = self.most(ask.max_delay_nanos()).checked_sub(others) else {
            return Verdict::Denied {
                retry: Retry::Never,
            };
        };
        let level = self.level(state, millis);
        if level <= target {
            let delay = self.delay(level + others);
            return Verdict::Allowed { delay };
        }
        let wait = self.until(state, target, now);
        Verdict::Denied {
            retry: Retry::After(wait),
        }
    }
}

impl Meter for Nginx {
    type State = Excess;
    type Change = (Excess, u64);

    fn fresh(&self, _now: Timestamp) -> Excess {
        Excess::default()
    }

    fn plan(&self, state: &Excess, now: Timestamp, ask: &Ask) -> Plan<(Excess, u64)> {
        // A clock that stepped back stands still.
        let millis = (now.as_nanos() / NANOS_PER_MILLI).max(state.last);
        let permits = ask.permits();
        let verdict = self.verdict(*state, millis, now, ask);
        let mut new = *state;
        if permits > 0 && matches!(verdict, Verdict::Allowed { .. }) {
            let level = self.level(*state, millis) + permits * REQUEST;
            new = Excess {
                level,
                last: millis,
            };
        }
        let at_once = self.most(0);
        let room = at_once.checked_sub(self.level(new, millis));
        let decision = Decision {
            verdict,
            limit: at_once / REQUEST + 1,
            remaining: room.map_or(0, |room| room / REQUEST + 1),
            reset_after: self.until(new, at_once % REQUEST, now),
        };
        let allowed = decision.is_allowed();
        Plan {
            decision,
            change: (allowed && permits > 0).then_some((new, permits)),
        }
    }

    fn commit(&self, state: &mut Excess, (new, permits): (Excess, u64)) -> Taken {
        *state = new;
        Taken {
            permits,
            at: Timestamp::EPOCH,
            detail: 0,
        }
    }

    fn undo(&self, state: &mut Excess, taken: &Taken, _now: Timestamp) {
        let given_back = taken.permits.saturating_mul(REQUEST);
        state.level = state.level.saturating_sub(given_back);
    }

    fn used(&self, state: &Excess, now: Timestamp) -> Used {
        let level = self.level(*state, now.as_nanos() / NANOS_PER_MILLI);
        Used::units(level.into(), REQUEST)
    }

    fn assume(&self, used: Used, now: Timestamp) -> Excess {
        let most = 2 * Quota::MAX_PERMITS * REQUEST;
        let level = u64::try_from(used.to_units(REQUEST)).unwrap_or(u64::MAX);
        Excess {
            level: level.min(most),
            last: now.as_nanos() / NANOS_PER_MILLI,
        }
    }

    fn at_stake(&self, state: &Excess, now: Timestamp) -> Option<u64> {
        Some(self.used(state, now).permits_ceil())
    }
}

impl State for Excess {
    #[cfg(feature = "std")]
    type Cell = crate::store::MutexCell<Self>;

    fn write_words(&self, words: &mut Vec<u64>) {
        words.extend([self.level, self.last]);
    }

    fn from_words(words: &[u64]) -> Option<Self> {
        match *words {
            [level, last] => Some(Self {
                level: count(level),
                last: tick(last),
            }),
            _ => None,
        }
    }
}
