//! Fixed window: so many permits in each window of the clock.

use core::time::Duration;

use super::{Meter, Plan, State, Taken, Used};
use crate::time::nanos;
use crate::{Ask, Decision, Quota, QuotaError, Retry, Timestamp, Verdict};

/// At most `permits` in each window; windows are aligned to the Unix epoch and half-open.
///
/// Across an edge up to twice the permits can pass in an instant (the end of one window and the
/// start of the next): that is what the algorithm is. A sliding log has no such edge.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FixedWindow {
    permits: u64,
    window: u64,
}

/// The state: the window that was last taken from, and how much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    start: u64,
    count: u64,
}

impl FixedWindow {
    /// `permits` in each window of this length.
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

    /// The window at `now` with what was taken from it. A clock that stepped back stays in the
    /// window it had reached.
    fn current(&self, state: Window, now: Timestamp) -> Window {
        let start = self.start_of(now);
        if state.start >= start {
            state
        } else {
            Window { start, count: 0 }
        }
    }

    fn start_of(&self, now: Timestamp) -> u64 {
        now.as_nanos() - now.as_nanos() % self.window
    }
}

impl Meter for FixedWindow {
    type State = Window;
    type Change = (Window, u64);

    fn fresh(&self, _now: Timestamp) -> Window {
        Window::default()
    }

    fn plan(&self, state: &Window, now: Timestamp, ask: &Ask) -> Plan<(Window, u64)> {
        let mut current = self.current(*state, now);
        let until_next = (current.start + self.window).saturating_sub(now.as_nanos());
        let permits = ask.permits();
        let fits = permits <= self.permits.saturating_sub(current.count);
        let verdict = if fits || permits == 0 {
            current.count += permits;
            Verdict::Allowed {
                delay: Duration::ZERO,
            }
        } else if permits > self.permits {
            Verdict::Denied {
                retry: Retry::Never,
            }
        } else {
            Verdict::Denied {
                retry: Retry::After(Duration::from_nanos(until_next)),
            }
        };
        let decision = Decision {
            verdict,
            limit: self.permits,
            remaining: self.permits.saturating_sub(current.count),
            reset_after: Duration::from_nanos(if current.count == 0 { 0 } else { until_next }),
        };
        let change = (decision.is_allowed() && permits > 0).then_some((current, permits));
        Plan { decision, change }
    }

    fn commit(&self, state: &mut Window, (window, permits): (Window, u64)) -> Taken {
        *state = window;
        Taken {
            permits,
            at: Timestamp::from_nanos(window.start),
            detail: 0,
        }
    }

    fn undo(&self, state: &mut Window, taken: &Taken, _now: Timestamp) {
        // Permits of a window that is over came back with the next one.
        if state.start == self.start_of(taken.at) {
            state.count = state.count.saturating_sub(taken.permits);
        }
    }

    fn used(&self, state: &Window, now: Timestamp) -> Used {
        Used::permits(self.current(*state, now).count)
    }

    fn assume(&self, used: Used, now: Timestamp) -> Window {
        // More than 2^41 is as good as any debt: it is gone with the window.
        let count = used.permits_ceil().min(2 * Quota::MAX_PERMITS);
        Window {
            start: self.start_of(now),
            count,
        }
    }

    fn at_stake(&self, state: &Window, now: Timestamp) -> Option<u64> {
        Some(self.current(*state, now).count)
    }
}

impl State for Window {
    #[cfg(feature = "std")]
    type Cell = crate::store::MutexCell<Self>;
}
