//! What is asked of a limit.

use core::time::Duration;

use crate::time::nanos;
use crate::{Quota, Timestamp};

/// The most permits that forced asks add up to in a state: far above all limits, and so far below
/// the end of 64 bits that nothing which is added to them gets there.
const MOST_COUNTED: u64 = 1 << 60;

/// One request, as a limit sees it: how many permits, and how long the caller would wait.
///
/// ```
/// use std::time::Duration;
/// use tidegate::Ask;
///
/// let ask = Ask::new(3).within(Duration::from_millis(200));
/// assert_eq!(ask.permits(), 3);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    permits: u64,
    max_delay_nanos: u64,
    priority: u8,
    forced: bool,
}

impl Ask {
    /// One permit, now.
    pub const ONE: Self = Self::new(1);

    /// `permits` of them, now. Zero permits ask for nothing and are always allowed.
    pub const fn new(permits: u64) -> Self {
        Self {
            permits,
            max_delay_nanos: 0,
            priority: 0,
            forced: false,
        }
    }

    /// The same, by a caller that would wait up to `max_delay`.
    ///
    /// A rate that can reserve then answers [`Verdict::Allowed`](crate::Verdict) with a delay up
    /// to `max_delay`: all but the two-window counter and Sentinel's warm-up, which answer as if
    /// nothing had been offered, and concurrency limits, which have no time to give.
    #[must_use]
    pub fn within(self, max_delay: Duration) -> Self {
        Self {
            max_delay_nanos: nanos(max_delay),
            ..self
        }
    }

    /// The same, by a caller that goes before all of a lower priority (0 unless it is said) where
    /// callers wait in line. Among equals, who came first goes first.
    #[must_use]
    pub const fn priority(self, priority: u8) -> Self {
        Self { priority, ..self }
    }

    /// The same, whatever the limit says: the permits are taken at once, those that are not there
    /// as a debt, which later callers wait off. For work that has to be done, or was done already.
    ///
    /// The answer is [`Verdict::Allowed`](crate::Verdict) without a delay, with nothing remaining
    /// while the limit is overdrawn; a bound of debt does not count. Windows count the permits in
    /// the current one. A place in a gate is taken above their number and ahead of a line, and has
    /// to come back like any other. Of several limits asked as one, a forced one takes nothing
    /// either where another refuses.
    ///
    /// More than [`Quota::MAX_PERMITS`](crate::Quota::MAX_PERMITS), or more debt than a state has
    /// room for (a token bucket's: for decades), is denied as never possible, and nothing is taken.
    #[must_use]
    pub const fn forced(self) -> Self {
        Self {
            forced: true,
            ..self
        }
    }

    /// How many permits are asked for.
    pub const fn permits(&self) -> u64 {
        self.permits
    }

    /// Whether they are taken whatever the limit says.
    pub const fn is_forced(&self) -> bool {
        self.forced
    }

    /// How long the caller would wait.
    pub const fn max_delay(&self) -> Duration {
        Duration::from_nanos(self.max_delay_nanos)
    }

    /// The permits of a forced ask on top of a count; `None` where no state holds so many.
    pub(crate) fn forced_onto(&self, count: u64) -> Option<u64> {
        let after = count.checked_add(self.permits)?;
        (self.permits <= Quota::MAX_PERMITS && after <= MOST_COUNTED).then_some(after)
    }

    /// Where in a line the caller stands.
    #[cfg(feature = "std")]
    pub(crate) const fn place(&self) -> u8 {
        self.priority
    }

    /// How long the caller would wait, in nanoseconds.
    pub(crate) const fn max_delay_nanos(&self) -> u64 {
        self.max_delay_nanos
    }

    /// The same from `now` on, and not beyond the end of time: a state has no room for a grant
    /// after it.
    pub(crate) fn patience_at(&self, now: Timestamp) -> u64 {
        self.max_delay_nanos.min(Timestamp::MAX.nanos_since(now))
    }
}

impl From<u64> for Ask {
    /// So many permits, now.
    fn from(permits: u64) -> Self {
        Self::new(permits)
    }
}

impl From<&Self> for Ask {
    fn from(ask: &Self) -> Self {
        *ask
    }
}

impl Default for Ask {
    fn default() -> Self {
        Self::ONE
    }
}
