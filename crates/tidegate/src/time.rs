//! Points in time, as the engine takes them.

use core::time::Duration;

/// A point in time: Unix nanoseconds, from 1970 to the year 2116.
///
/// The engine never reads a clock; whoever calls it says what time it is. Times that go into
/// one limit should never decrease. A store of keys counts a step back as no time passed; a bare
/// [`Meter`](crate::Meter) may refuse more until that time has come again, and never grants more.
///
/// Values saturate at [`Timestamp::MAX`], so that no arithmetic on them can overflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// 1970-01-01T00:00:00Z.
    pub const EPOCH: Self = Self(0);
    /// 2^62 - 1 ns after the epoch (February 2116): the room above it is what lets scaled
    /// times of fast rates stay in 64 bits.
    pub const MAX: Self = Self((1 << 62) - 1);

    /// From nanoseconds since the Unix epoch; saturates at [`Timestamp::MAX`].
    pub const fn from_nanos(nanos: u64) -> Self {
        if nanos > Self::MAX.0 {
            Self::MAX
        } else {
            Self(nanos)
        }
    }

    /// From whole milliseconds since the Unix epoch; saturates at [`Timestamp::MAX`].
    pub const fn from_millis(millis: u64) -> Self {
        Self::from_nanos(millis.saturating_mul(1_000_000))
    }

    /// From whole seconds since the Unix epoch; saturates at [`Timestamp::MAX`].
    pub const fn from_secs(secs: u64) -> Self {
        Self::from_nanos(secs.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds since the Unix epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time `nanos` later, saturating.
    #[must_use]
    pub const fn after_nanos(self, nanos: u64) -> Self {
        Self::from_nanos(self.0.saturating_add(nanos))
    }

    /// The time `duration` later, saturating.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        self.after_nanos(nanos(duration))
    }

    /// Nanoseconds from `earlier` to here; 0 if `earlier` is later.
    pub const fn nanos_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The time from `earlier` to here; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.nanos_since(earlier))
    }
}

/// A duration's nanoseconds, saturating (2^64 ns are 584 years).
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saturates_at_both_ends() {
        assert_eq!(Timestamp::from_nanos(u64::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::MAX.after_nanos(1), Timestamp::MAX);
        assert_eq!(Timestamp::EPOCH.nanos_since(Timestamp::MAX), 0);
        assert_eq!(Timestamp::from_secs(u64::MAX), Timestamp::MAX);
    }
}
