//! nginx's `limit_req`, number by number.
//!
//! `ngx_http_limit_req_module`: a leaky bucket in thousandths of a request and whole
//! milliseconds. For configurations that come from nginx and must behave as they did; a token
//! bucket is exact. What differs from it, and is kept: a rate is cut to thousandths of a request
//! per second (1r/m is 0.96 r/m), the first request of a key, and the first after it has long
//! been idle, costs nothing.

use core::time::Duration;

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

/// The state: the excess when a request was last let through, and the millisecond of that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Excess {
    thousandths: u64,
    last: u64,
    /// Whether there was a request at all.
    known: bool,
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

    /// The excess that `permits` (not 0) more lead to.
    fn excess(&self, state: Excess, millis: u64, permits: u64) -> u64 {
        let others = (permits - 1).saturating_mul(REQUEST);
        if !state.known {
            return others;
        }
        let passed = millis.saturating_sub(state.last);
        let drained = self.rate.saturating_mul(passed) / 1_000;
        (state.thousandths + REQUEST)
            .saturating_sub(drained)
            .saturating_add(others)
    }

    /// Nanoseconds until the excess that `permits` lead to is no more than the burst.
    fn until_fits(&self, state: Excess, permits: u64, now: Timestamp) -> u64 {
        let excess = state.thousandths + permits.saturating_mul(REQUEST);
        let drain = excess.saturating_sub(self.burst);
        let millis = (u128::from(drain) * 1_000).div_ceil(u128::from(self.rate));
        let millis = u64::try_from(millis)
            .unwrap_or(u64::MAX)
            .saturating_add(state.last);
        millis
            .saturating_mul(NANOS_PER_MILLI)
            .saturating_sub(now.as_nanos())
    }

    fn fits_ever(&self, permits: u64) -> bool {
        (permits - 1).saturating_mul(REQUEST) <= self.burst
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
        let mut new = *state;
        let verdict = if permits == 0 {
            Verdict::Allowed {
                delay: Duration::ZERO,
            }
        } else if !self.fits_ever(permits) {
            Verdict::Denied {
                retry: Retry::Never,
            }
        } else {
            let excess = self.excess(*state, millis, permits);
            let delayed = excess.saturating_sub(self.delay.unwrap_or(u64::MAX));
            let delay = (delayed * 1_000 / self.rate).saturating_mul(NANOS_PER_MILLI);
            if excess > self.burst {
                let wait = Duration::from_nanos(self.until_fits(*state, permits, now).max(1));
                Verdict::Denied {
                    retry: Retry::After(wait),
                }
            } else if delay > ask.max_delay_nanos() {
                let wait = Duration::from_nanos(delay - ask.max_delay_nanos());
                Verdict::Denied {
                    retry: Retry::After(wait),
                }
            } else {
                new = Excess {
                    thousandths: excess,
                    last: millis,
                    known: true,
                };
                Verdict::Allowed {
                    delay: Duration::from_nanos(delay),
                }
            }
        };
        let next = self.excess(new, millis, 1);
        let room = self
            .burst
            .checked_sub(next)
            .map_or(0, |room| room / REQUEST + 1);
        let to_drain = if new.known { new.thousandths } else { 0 };
        let reset = (u128::from(to_drain) * 1_000).div_ceil(u128::from(self.rate));
        let reset = u64::try_from(reset)
            .unwrap_or(u64::MAX)
            .saturating_add(new.last);
        let reset = reset
            .saturating_mul(NANOS_PER_MILLI)
            .saturating_sub(now.as_nanos());
        let decision = Decision {
            verdict,
            limit: self.burst / REQUEST + 1,
            remaining: room,
            reset_after: Duration::from_nanos(if to_drain == 0 { 0 } else { reset }),
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
        state.thousandths = state
            .thousandths
            .saturating_sub(taken.permits.saturating_mul(REQUEST));
    }

    fn used(&self, state: &Excess, now: Timestamp) -> Used {
        let millis = now.as_nanos() / NANOS_PER_MILLI;
        let drained = self.rate.saturating_mul(millis.saturating_sub(state.last)) / 1_000;
        Used::units(
            u128::from(state.thousandths.saturating_sub(drained)),
            REQUEST,
        )
    }

    fn assume(&self, used: Used, now: Timestamp) -> Excess {
        let excess = u64::try_from(used.to_units(REQUEST)).unwrap_or(u64::MAX / 2);
        let last = now.as_nanos() / NANOS_PER_MILLI;
        Excess {
            thousandths: excess.min(u64::MAX / 2),
            last,
            known: used != Used::NOTHING,
        }
    }

    fn at_stake(&self, state: &Excess, now: Timestamp) -> Option<u64> {
        Some(self.used(state, now).permits_ceil())
    }
}

impl State for Excess {
    #[cfg(feature = "std")]
    type Cell = crate::store::MutexCell<Self>;
}
