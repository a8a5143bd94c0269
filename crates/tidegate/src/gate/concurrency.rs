//! At most so many in flight.

use core::time::Duration;

use super::Gate;
use crate::meter::{Plan, State, Taken, Used};
use crate::{Ask, Decision, Meter, Quota, QuotaError, Retry, Timestamp, Verdict};

/// A counting gate of `max` places. Never more than `max` permits are out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Concurrency {
    max: u64,
}

/// The state: permits that are out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inside(pub(crate) u64);

impl Concurrency {
    /// A gate of `max` places; 0 lets nobody in.
    ///
    /// # Errors
    /// [`QuotaError::TooManyPermits`] above [`Quota::MAX_PERMITS`].
    pub const fn new(max: u64) -> Result<Self, QuotaError> {
        if max > Quota::MAX_PERMITS {
            return Err(QuotaError::TooManyPermits(max));
        }
        Ok(Self { max })
    }
}

impl Meter for Concurrency {
    type State = Inside;
    type Change = u64;

    fn fresh(&self, _now: Timestamp) -> Inside {
        Inside(0)
    }

    #[inline]
    fn plan(&self, inside: &Inside, _now: Timestamp, ask: &Ask) -> Plan<u64> {
        let free = self.max.saturating_sub(inside.0);
        let permits = ask.permits();
        let (verdict, remaining) = if permits <= free {
            (
                Verdict::Allowed {
                    delay: Duration::ZERO,
                },
                free - permits,
            )
        } else if permits > self.max {
            (
                Verdict::Denied {
                    retry: Retry::Never,
                },
                free,
            )
        } else {
            (
                Verdict::Denied {
                    retry: Retry::OnRelease,
                },
                free,
            )
        };
        let decision = Decision {
            verdict,
            limit: self.max,
            remaining,
            reset_after: Duration::ZERO,
        };
        Plan {
            decision,
            change: (decision.is_allowed() && permits > 0).then_some(permits),
        }
    }

    #[inline]
    fn commit(&self, inside: &mut Inside, permits: u64) -> Taken {
        inside.0 += permits;
        Taken {
            permits,
            at: Timestamp::EPOCH,
            detail: 0,
        }
    }

    #[inline]
    fn undo(&self, inside: &mut Inside, taken: &Taken, _now: Timestamp) {
        debug_assert!(inside.0 >= taken.permits, "a permit came back twice");
        inside.0 = inside.0.saturating_sub(taken.permits);
    }

    fn used(&self, inside: &Inside, _now: Timestamp) -> Used {
        Used::permits(inside.0)
    }

    fn assume(&self, used: Used, _now: Timestamp) -> Inside {
        Inside(used.permits_ceil().min(Quota::MAX_PERMITS))
    }

    fn at_stake(&self, inside: &Inside, _now: Timestamp) -> Option<u64> {
        (inside.0 == 0).then_some(0)
    }
}

impl Gate for Concurrency {}

impl State for Inside {
    #[cfg(feature = "std")]
    type Cell = crate::store::AtomicCell<Self>;
}
