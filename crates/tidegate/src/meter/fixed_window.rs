//! Fixed window: so many permits in each window of the clock.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::time::Duration;

use super::{Meter, Plan, State, Taken, Used};
use crate::time::nanos;
use crate::{Ask, Decision, Quota, QuotaError, Retry, Timestamp, Verdict};

/// At most `permits` in each window; windows are aligned to the Unix epoch and half-open.
///
/// Across an edge up to twice the permits can pass in an instant (the end of one window and the
/// start of the next): that is what the algorithm is. A sliding log has no such edge. A caller
/// that offers to wait reserves in a window to come, in the order of the calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FixedWindow {
    permits: u64,
    window: u64,
}

/// The state: the window that was last asked, how much was taken from it, and what is reserved of
/// those after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    start: u64,
    count: u64,
    /// Of each window after it, as far as anything is reserved.
    #[expect(
        clippy::box_collection,
        reason = "one word where nothing is reserved, which is nearly always"
    )]
    ahead: Option<Box<VecDeque<u64>>>,
}

/// What a request would change.
#[derive(Clone, Copy, Debug)]
pub struct Reserve {
    /// Windows that are over.
    over: u64,
    /// The window that is taken from, counted from the current one.
    place: u64,
    permits: u64,
}

impl Window {
    /// How many windows have something reserved, after the one that was last asked.
    fn reserved(&self) -> u64 {
        self.ahead.as_ref().map_or(0, |ahead| ahead.len() as u64)
    }

    /// What was taken from the window of this place, counted from the one that was last asked.
    fn count_at(&self, place: u64) -> u64 {
        let Some(ahead) = place.checked_sub(1) else {
            return self.count;
        };
        let counts = self.ahead.as_deref().zip(usize::try_from(ahead).ok());
        let count = counts.and_then(|(counts, ahead)| counts.get(ahead));
        count.copied().unwrap_or(0)
    }

    fn set_count_at(&mut self, place: u64, count: u64) {
        let Some(at) = place.checked_sub(1) else {
            self.count = count;
            return;
        };
        let ahead = self.ahead.get_or_insert_default();
        // Reservations follow each other: it is there, or comes next.
        if at >= ahead.len() as u64 {
            ahead.push_back(count);
        } else if let Some(known) = usize::try_from(at).ok().and_then(|at| ahead.get_mut(at)) {
            *known = count;
        }
        while ahead.back() == Some(&0) {
            ahead.pop_back();
        }
        if ahead.is_empty() {
            self.ahead = None;
        }
    }

    /// Goes on to a later window.
    fn go_on(&mut self, over: u64, window: u64) {
        if over == 0 {
            return;
        }
        self.count = self.count_at(over);
        self.start += over * window;
        if let Some(ahead) = &mut self.ahead {
            let over = usize::try_from(over).unwrap_or(usize::MAX);
            ahead.drain(..over.min(ahead.len()));
            if ahead.is_empty() {
                self.ahead = None;
            }
        }
    }
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

    /// How many windows are over since the one that was last asked. A clock that stepped back
    /// stays in the window it had reached.
    fn over(&self, state: &Window, now: Timestamp) -> u64 {
        self.start_of(now).saturating_sub(state.start) / self.window
    }

    fn start_of(&self, now: Timestamp) -> u64 {
        now.as_nanos() - now.as_nanos() % self.window
    }

    /// Nanoseconds until a window begins, counted from the one that was last asked.
    fn until(&self, state: &Window, place: u64, now: Timestamp) -> u64 {
        let start = place
            .saturating_mul(self.window)
            .saturating_add(state.start);
        start.saturating_sub(now.as_nanos())
    }

    /// What is taken from the current window and reserved of those to come.
    fn taken(&self, state: &Window, now: Timestamp) -> u64 {
        let over = self.over(state, now);
        let reserved = (over..=state.reserved().max(over)).map(|place| state.count_at(place));
        reserved.fold(0, u64::saturating_add)
    }
}

impl Meter for FixedWindow {
    type State = Window;
    type Change = Reserve;

    fn fresh(&self, _now: Timestamp) -> Window {
        Window::default()
    }

    fn plan(&self, state: &Window, now: Timestamp, ask: &Ask) -> Plan<Reserve> {
        let over = self.over(state, now);
        let permits = ask.permits();
        // Never before one who came earlier.
        let mut last = state.reserved().max(over);
        let mut count = state.count_at(last);
        let fits = permits <= self.permits.saturating_sub(count);
        let place = if fits { last } else { last + 1 };
        let wait = match place - over {
            0 => 0,
            _ => self.until(state, place, now),
        };
        let patience = ask.patience_at(now);
        let mut change = None;
        let verdict = if permits == 0 {
            Verdict::Allowed {
                delay: Duration::ZERO,
            }
        } else if permits > self.permits {
            Verdict::Denied {
                retry: Retry::Never,
            }
        } else if wait <= patience {
            count = permits + if fits { count } else { 0 };
            last = place;
            change = Some(Reserve {
                over,
                place: place - over,
                permits,
            });
            Verdict::Allowed {
                delay: Duration::from_nanos(wait),
            }
        } else {
            Verdict::Denied {
                retry: Retry::After(Duration::from_nanos(wait - patience)),
            }
        };
        let is_unused = last == over && count == 0;
        let remaining = if last == over {
            self.permits.saturating_sub(count)
        } else {
            0
        };
        let until_unused = self.until(state, last + 1, now);
        let decision = Decision {
            verdict,
            limit: self.permits,
            remaining,
            reset_after: Duration::from_nanos(if is_unused { 0 } else { until_unused }),
        };
        Plan { decision, change }
    }

    fn commit(&self, state: &mut Window, change: Reserve) -> Taken {
        state.go_on(change.over, self.window);
        let count = state.count_at(change.place) + change.permits;
        state.set_count_at(change.place, count);
        Taken {
            permits: change.permits,
            at: Timestamp::from_nanos(state.start + change.place * self.window),
            detail: 0,
        }
    }

    fn undo(&self, state: &mut Window, taken: &Taken, _now: Timestamp) {
        // Permits of a window that is over came back with the next one.
        let Some(ahead) = self.start_of(taken.at).checked_sub(state.start) else {
            return;
        };
        let place = ahead / self.window;
        if place <= state.reserved() {
            let count = state.count_at(place).saturating_sub(taken.permits);
            state.set_count_at(place, count);
        }
    }

    fn used(&self, state: &Window, now: Timestamp) -> Used {
        Used::permits(self.taken(state, now))
    }

    fn assume(&self, used: Used, now: Timestamp) -> Window {
        // More than 2^41 is as good as any debt: it is gone with the window.
        let count = used.permits_ceil().min(2 * Quota::MAX_PERMITS);
        Window {
            start: self.start_of(now),
            count,
            ahead: None,
        }
    }

    fn migrate(&self, new: &Self, state: &mut Window, now: Timestamp) {
        if new.window == self.window {
            // What is reserved stays where it is.
            return;
        }
        *state = new.assume(self.used(state, now), now);
    }

    fn at_stake(&self, state: &Window, now: Timestamp) -> Option<u64> {
        Some(self.taken(state, now))
    }
}

impl State for Window {
    #[cfg(feature = "std")]
    type Cell = crate::store::MutexCell<Self>;
}
