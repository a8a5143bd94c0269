//! Two-window weighted counter: an estimate of a sliding window from two fixed ones.
//!
//! What the last window admitted counts by the part of it that a sliding window still covers,
//! rounded up: `current + ceil(previous * left / window)`. Cloudflare described it in 2017.

use alloc::vec::Vec;
use core::time::Duration;

use super::words::{count, tick};
use super::{Meter, Plan, State, Taken, Used};
use crate::time::nanos;
use crate::{Ask, Decision, Quota, QuotaError, Retry, Timestamp, Verdict};

/// About `permits` in any window of this length, for 24 bytes a key.
///
/// It is an estimate: it takes what the last window admitted to have come evenly. At worst (all
/// of it at its very end) just under twice the permits pass within one length of the window; it
/// is never more than that, and where requests come evenly it is `permits`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SlidingCounter {
    permits: u64,
    window: u64,
}

/// The state: a window, what it admitted, and what the one before it did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Windows {
    /// Which window, counted from the epoch.
    index: u64,
    current: u64,
    previous: u64,
}

impl SlidingCounter {
    /// About `permits` in any window of this length.
    ///
    /// # Errors
    /// [`QuotaError`] where the numbers make no limit.
    pub fn new(permits: u64, window: Duration) -> Result<Self, QuotaError> {
        Quota::new(permits, window).rate()?;
        Ok(Self {
            permits,
            window: nanos(window),
        })
    }

    /// The state at `now`. A clock that stepped back stays in the window it had reached.
    fn at(&self, state: Windows, now: Timestamp) -> Windows {
        let index = now.as_nanos() / self.window;
        match index.checked_sub(state.index) {
            None | Some(0) => state,
            Some(1) => Windows {
                index,
                current: 0,
                previous: state.current,
            },
            Some(_) => Windows {
                index,
                current: 0,
                previous: 0,
            },
        }
    }

    fn start_of(&self, index: u64) -> u64 {
        index.saturating_mul(self.window)
    }

    /// Nanoseconds of the current window that are still to come.
    fn left(&self, state: Windows, now: Timestamp) -> u64 {
        let end = self.start_of(state.index + 1);
        end.saturating_sub(now.as_nanos()).min(self.window)
    }

    fn weighted(&self, previous: u64, left: u64) -> u64 {
        let weighted = (u128::from(previous) * u128::from(left)).div_ceil(u128::from(self.window));
        u64::try_from(weighted).unwrap_or(u64::MAX)
    }

    fn estimate(&self, state: Windows, now: Timestamp) -> u64 {
        state.current + self.weighted(state.previous, self.left(state, now))
    }

    /// The first time at which no more than `most` of `previous` counts within the window that
    /// begins at `start`; within that window, or its end.
    fn falls_to(&self, start: u64, previous: u64, most: u64) -> u64 {
        if previous <= most {
            return start;
        }
        // ceil(previous * left / window) <= most: as much as may be left.
        let left = u128::from(most) * u128::from(self.window) / u128::from(previous);
        let until = self.window - u64::try_from(left).unwrap_or(self.window);
        start.saturating_add(until)
    }

    /// When `permits` (at most all) fit, if nothing else comes.
    fn fits_at(&self, state: Windows, permits: u64) -> u64 {
        let start = self.start_of(state.index);
        if let Some(room) = self.permits.checked_sub(state.current + permits) {
            return self.falls_to(start, state.previous, room);
        }
        // Not in this window: in the next one this one is the previous.
        let next = start.saturating_add(self.window);
        self.falls_to(next, state.current, self.permits - permits)
    }
}

impl Meter for SlidingCounter {
    type State = Windows;
    type Change = (Windows, u64);

    fn fresh(&self, _now: Timestamp) -> Windows {
        Windows::default()
    }

    fn plan(&self, state: &Windows, now: Timestamp, ask: &Ask) -> Plan<(Windows, u64)> {
        let mut state = self.at(*state, now);
        let permits = ask.permits();
        let free = self.permits.saturating_sub(self.estimate(state, now));
        let is_forced = ask.is_forced() && ask.forced_onto(state.current).is_some();
        let fits = !ask.is_forced() && permits <= free;
        let verdict = if fits || is_forced || permits == 0 {
            state.current += permits;
            Verdict::Allowed {
                delay: Duration::ZERO,
            }
        } else if ask.is_forced() || permits > self.permits {
            Verdict::Denied {
                retry: Retry::Never,
            }
        } else {
            let wait = self.fits_at(state, permits).saturating_sub(now.as_nanos());
            Verdict::Denied {
                retry: Retry::After(Duration::from_nanos(wait)),
            }
        };
        let end = match (state.current, state.previous) {
            (0, 0) => now.as_nanos(),
            (0, _) => self.start_of(state.index + 1),
            _ => self.start_of(state.index + 2),
        };
        let decision = Decision {
            verdict,
            limit: self.permits,
            remaining: self.permits.saturating_sub(self.estimate(state, now)),
            reset_after: Duration::from_nanos(end.saturating_sub(now.as_nanos())),
        };
        let allowed = decision.is_allowed();
        Plan {
            decision,
            change: (allowed && permits > 0).then_some((state, permits)),
        }
    }

    fn commit(&self, state: &mut Windows, (new, permits): (Windows, u64)) -> Taken {
        *state = new;
        Taken {
            permits,
            at: Timestamp::EPOCH,
            detail: new.index,
        }
    }

    fn undo(&self, state: &mut Windows, taken: &Taken, _now: Timestamp) {
        if taken.detail == state.index {
            state.current = state.current.saturating_sub(taken.permits);
        } else if taken.detail + 1 == state.index {
            state.previous = state.previous.saturating_sub(taken.permits);
        }
    }

    fn used(&self, state: &Windows, now: Timestamp) -> Used {
        Used::permits(self.estimate(self.at(*state, now), now))
    }

    fn assume(&self, used: Used, now: Timestamp) -> Windows {
        let current = used.permits_ceil().min(2 * Quota::MAX_PERMITS);
        Windows {
            index: now.as_nanos() / self.window,
            current,
            previous: 0,
        }
    }

    fn migrate(&self, new: &Self, state: &mut Windows, now: Timestamp) {
        if new.window != self.window {
            *state = new.assume(self.used(state, now), now);
        }
    }

    fn at_stake(&self, state: &Windows, now: Timestamp) -> Option<u64> {
        Some(self.estimate(self.at(*state, now), now))
    }
}

impl State for Windows {
    #[cfg(feature = "std")]
    type Cell = crate::store::MutexCell<Self>;

    fn write_words(&self, words: &mut Vec<u64>) {
        words.extend([self.index, self.current, self.previous]);
    }

    fn from_words(words: &[u64]) -> Option<Self> {
        match *words {
            [index, current, previous] => Some(Self {
                index: tick(index),
                current: count(current),
                previous: count(previous),
            }),
            _ => None,
        }
    }
}
