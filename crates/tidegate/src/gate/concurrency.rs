//! At most so many in flight.

use core::time::Duration;

use super::Gate;
use crate::meter::{Plan, State, Taken, Used};
use crate::{Ask, Decision, Meter, Quota, QuotaError, Retry, Timestamp, Verdict};

/// A counting gate of `max` places. Never more than `max` permits are out, but for those that are
/// [forced](Ask::forced): nobody else comes in until they are no more than that again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Concurrency {
    max: u64,
}

/// The state: permits that are out, and whether somebody waits in line for one to come back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inside(u64);

/// The bit of [`Inside`] that says so: above all that is counted.
const WAITED_FOR: u64 = 1 << 62;
/// The bit that says that somebody wants to know when nobody is inside.
const DRAINING: u64 = 1 << 61;

impl Inside {
    pub(crate) const fn permits(self) -> u64 {
        self.0 & !(WAITED_FOR | DRAINING)
    }

    #[cfg(feature = "std")]
    pub(crate) const fn is_draining(self) -> bool {
        self.0 & DRAINING != 0
    }

    #[cfg(feature = "std")]
    pub(crate) const fn set_draining(&mut self, draining: bool) {
        self.0 = self.0 & !DRAINING | if draining { DRAINING } else { 0 };
    }

    #[cfg(feature = "std")]
    pub(crate) const fn to_word(self) -> u64 {
        self.0
    }

    #[cfg(feature = "std")]
    pub(crate) const fn from_word(word: u64) -> Self {
        Self(word)
    }
}

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

    /// How many places there are.
    pub const fn max(&self) -> u64 {
        self.max
    }

    /// A gate of as many places as are said, and of the most there may be where that is fewer.
    #[cfg(feature = "std")]
    pub(crate) const fn of(max: u64) -> Self {
        if max > Quota::MAX_PERMITS {
            return Self {
                max: Quota::MAX_PERMITS,
            };
        }
        Self { max }
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
        // What is free while somebody waits is theirs.
        let free = if inside.is_waited_for() {
            0
        } else {
            self.max.saturating_sub(inside.permits())
        };
        let permits = ask.permits();
        let forced = ask
            .forced_onto(inside.permits())
            .filter(|_| ask.is_forced());
        let (verdict, remaining) = if permits <= free || forced.is_some() {
            (
                Verdict::Allowed {
                    delay: Duration::ZERO,
                },
                free.saturating_sub(permits),
            )
        } else if ask.is_forced() || permits > self.max {
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
        debug_assert!(
            inside.permits() >= taken.permits,
            "a permit came back twice"
        );
        inside.0 -= taken.permits.min(inside.permits());
    }

    fn used(&self, inside: &Inside, _now: Timestamp) -> Used {
        Used::permits(inside.permits())
    }

    fn assume(&self, used: Used, _now: Timestamp) -> Inside {
        Inside(used.permits_ceil().min(Quota::MAX_PERMITS))
    }

    fn migrate(&self, _new: &Self, _inside: &mut Inside, _now: Timestamp) {
        // Who is inside stays, and who waits goes on waiting.
    }

    fn at_stake(&self, inside: &Inside, _now: Timestamp) -> Option<u64> {
        (inside.permits() == 0).then_some(0)
    }
}

impl Gate for Concurrency {}

impl State for Inside {
    #[cfg(feature = "std")]
    type Cell = crate::store::AtomicCell<Self>;

    const HAS_LINES: bool = true;

    fn is_waited_for(&self) -> bool {
        self.0 & WAITED_FOR != 0
    }

    fn set_waited_for(&mut self, waited_for: bool) {
        self.0 = self.0 & !WAITED_FOR | if waited_for { WAITED_FOR } else { 0 };
    }
}
