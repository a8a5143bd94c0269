//! Token bucket that is refilled by whole periods.

use alloc::vec::Vec;
use core::time::Duration;

use super::words::{count, tick};
use super::{Meter, Plan, State, Taken, Used};
use crate::time::nanos;
use crate::{Ask, Decision, Quota, QuotaError, Retry, Timestamp, Verdict};

/// A bucket of `burst` permits to which `permits` come at once at the end of each period.
///
/// Periods begin with the first permit that is taken from a full bucket, or, aligned, at the
/// multiples of the period since the epoch. In every interval of length *t* at most `burst +
/// permits * (floor(t / period) + 1)` permits. A caller that offers to wait reserves.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IntervalBucket {
    permits: u64,
    period: u64,
    burst: u64,
    initial: u64,
    aligned: bool,
}

/// The state: permits in use (more than the burst, where some are reserved), and since when the
/// current period runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refilled {
    used: u64,
    since: u64,
}

impl IntervalBucket {
    /// A bucket of this quota.
    ///
    /// # Errors
    /// [`QuotaError`] where the numbers make no limit.
    pub fn new(quota: Quota, aligned: bool) -> Result<Self, QuotaError> {
        quota.rate()?;
        let (burst, initial) = (quota.burst_permits(), quota.initial_permits());
        let (permits, period) = (quota.permits(), nanos(quota.period()));
        Ok(Self {
            permits,
            period,
            burst,
            initial,
            aligned,
        })
    }

    fn start_of(&self, now: Timestamp) -> u64 {
        let now = now.as_nanos();
        if self.aligned {
            now - now % self.period
        } else {
            now
        }
    }

    /// The state at `now`, with the periods that are over refilled.
    fn at(&self, state: Refilled, now: Timestamp) -> Refilled {
        let periods = now.as_nanos().saturating_sub(state.since) / self.period;
        let used = state
            .used
            .saturating_sub(self.permits.saturating_mul(periods));
        if used == 0 {
            return Refilled {
                used,
                since: self.start_of(now).max(state.since),
            };
        }
        Refilled {
            used,
            since: state.since + periods * self.period,
        }
    }

    /// Nanoseconds until `permits` of those in use have come back.
    fn until_back(&self, state: Refilled, permits: u64, now: Timestamp) -> u128 {
        if permits == 0 {
            return 0;
        }
        let periods = permits.div_ceil(self.permits.max(1));
        let at = u128::from(state.since) + u128::from(periods) * u128::from(self.period);
        at.saturating_sub(now.as_nanos().into())
    }
}

/// As long as 64 bits of nanoseconds can say.
fn duration(nanos: u128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

impl Meter for IntervalBucket {
    type State = Refilled;
    type Change = (Refilled, u64);

    fn fresh(&self, now: Timestamp) -> Refilled {
        Refilled {
            used: self.burst - self.initial,
            since: self.start_of(now),
        }
    }

    fn plan(&self, state: &Refilled, now: Timestamp, ask: &Ask) -> Plan<(Refilled, u64)> {
        let mut state = self.at(*state, now);
        let permits = ask.permits();
        let used = state.used.saturating_add(permits);
        let wait = if ask.is_forced() {
            0
        } else {
            self.until_back(state, used.saturating_sub(self.burst), now)
        };
        let is_possible = if ask.is_forced() {
            ask.forced_onto(state.used).is_some()
        } else {
            permits <= self.burst
        };
        let patience = u128::from(ask.max_delay_nanos());
        let verdict = if permits == 0 {
            Verdict::Allowed {
                delay: Duration::ZERO,
            }
        } else if !is_possible {
            Verdict::Denied {
                retry: Retry::Never,
            }
        } else if wait <= patience && used < u64::MAX {
            state.used = used;
            Verdict::Allowed {
                delay: duration(wait),
            }
        } else {
            let wait = wait.saturating_sub(patience).max(1);
            Verdict::Denied {
                retry: Retry::After(duration(wait)),
            }
        };
        let decision = Decision {
            verdict,
            limit: self.burst,
            remaining: self.burst.saturating_sub(state.used),
            reset_after: duration(self.until_back(state, state.used, now)),
        };
        let allowed = decision.is_allowed();
        Plan {
            decision,
            change: (allowed && permits > 0).then_some((state, permits)),
        }
    }

    fn commit(&self, state: &mut Refilled, (new, permits): (Refilled, u64)) -> Taken {
        *state = new;
        Taken {
            permits,
            at: Timestamp::EPOCH,
            detail: 0,
        }
    }

    fn undo(&self, state: &mut Refilled, taken: &Taken, now: Timestamp) {
        *state = self.at(*state, now);
        state.used = state.used.saturating_sub(taken.permits);
    }

    fn used(&self, state: &Refilled, now: Timestamp) -> Used {
        Used::permits(self.at(*state, now).used)
    }

    fn assume(&self, used: Used, now: Timestamp) -> Refilled {
        let used = used.permits_ceil().min(2 * Quota::MAX_PERMITS);
        Refilled {
            used,
            since: self.start_of(now),
        }
    }

    fn migrate(&self, new: &Self, state: &mut Refilled, now: Timestamp) {
        let mut at = self.at(*state, now);
        if new.aligned || now.nanos_since(Timestamp::from_nanos(at.since)) >= new.period {
            // Nor does what has passed of a long period become refills of a short one.
            at.since = new.start_of(now);
        }
        *state = at;
    }

    fn at_stake(&self, state: &Refilled, now: Timestamp) -> Option<u64> {
        let fresh = self.burst - self.initial;
        Some(self.at(*state, now).used.saturating_sub(fresh))
    }
}

impl State for Refilled {
    #[cfg(feature = "std")]
    type Cell = crate::store::MutexCell<Self>;

    fn write_words(&self, words: &mut Vec<u64>) {
        words.extend([self.used, self.since]);
    }

    fn from_words(words: &[u64]) -> Option<Self> {
        match *words {
            [used, since] => Some(Self {
                used: count(used),
                since: tick(since),
            }),
            _ => None,
        }
    }
}
