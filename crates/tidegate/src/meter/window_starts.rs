//! Where the windows of a fixed window begin.

use crate::calendar::CalendarUnit;

/// One window follows the other; this says from when on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum WindowStarts {
    /// At the multiples of so many nanoseconds since the epoch.
    Aligned(u64),
    /// With the first request after the window before, of so many nanoseconds.
    FromFirst(u64),
    /// As the calendar has it.
    Calendar(CalendarUnit),
}

impl WindowStarts {
    /// The start of the window that `now` is in, if that is not known from a window before.
    pub(super) const fn start_at(&self, now: u64) -> u64 {
        match self {
            Self::Aligned(window) => now - now % *window,
            Self::FromFirst(_) => now,
            Self::Calendar(unit) => unit.start_of(unit.index_at(now)),
        }
    }

    /// How many windows after the one that began at `start` is that of `now`. None where time
    /// stepped back.
    pub(super) const fn between(&self, start: u64, now: u64) -> u64 {
        match self {
            Self::Aligned(window) | Self::FromFirst(window) => now.saturating_sub(start) / *window,
            Self::Calendar(unit) => unit.index_at(now).saturating_sub(unit.index_at(start)),
        }
    }

    /// The start of the window that comes so many after the one that began at `start`.
    pub(super) const fn after(&self, start: u64, windows: u64) -> u64 {
        match self {
            Self::Aligned(window) | Self::FromFirst(window) => {
                windows.saturating_mul(*window).saturating_add(start)
            }
            Self::Calendar(unit) => unit.start_of(unit.index_at(start).saturating_add(windows)),
        }
    }
}
