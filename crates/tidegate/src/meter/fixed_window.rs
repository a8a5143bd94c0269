//! Fixed window: so many permits in each window of the clock, of the calendar, or of a key's own.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use super::window_starts::WindowStarts;
use super::words::{count, tick};
use super::{Meter, Plan, State, Taken, Used};
use crate::time::nanos;
use crate::{Ask, CalendarUnit, Decision, Quota, QuotaError, Retry, Timestamp, Verdict};

/// At most `permits` in each window; windows are half-open. They are aligned to the Unix epoch,
/// or are the days, weeks, months or years of the calendar (UTC), or begin with the first request
/// of a key after its window before.
///
/// Across an edge up to twice the permits can pass in an instant (the end of one window and the
/// start of the next): that is what the algorithm is. A sliding log has no such edge. A caller
/// that offers to wait reserves in a window to come, in the order of the calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FixedWindow {
    permits: u64,
    windows: WindowStarts,
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
    /// When the current window began.
    start: u64,
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

    /// Goes on to a later window, which began at `start`.
    fn go_on(&mut self, over: u64, start: u64) {
        self.start = start;
        if over == 0 {
            return;
        }
        self.count = self.count_at(over);
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
        let windows = WindowStarts::Aligned(nanos(window));
        Ok(Self { permits, windows })
    }

    /// `permits` in each window of this length, which begins with the first request of a key
    /// after its window before: a key at rest has none.
    ///
    /// # Errors
    /// [`QuotaError`] where the numbers make no limit.
    pub fn from_first(permits: u64, window: Duration) -> Result<Self, QuotaError> {
        Quota::new(permits, window).rate()?;
        let windows = WindowStarts::FromFirst(nanos(window));
        Ok(Self { permits, windows })
    }

    /// `permits` in each day, week, month or year of the calendar.
    ///
    /// # Errors
    /// [`QuotaError::TooManyPermits`] above [`Quota::MAX_PERMITS`].
    pub fn calendar(permits: u64, unit: CalendarUnit) -> Result<Self, QuotaError> {
        Quota::new(permits, unit.longest()).rate()?;
        let windows = WindowStarts::Calendar(unit);
        Ok(Self { permits, windows })
    }

    /// How many windows are over since the one that was last asked. A clock that stepped back
    /// stays in the window it had reached.
    fn over(&self, state: &Window, now: Timestamp) -> u64 {
        self.windows.between(state.start, now.as_nanos())
    }

    /// The same, and when the current window began: now, where windows begin with a request and
    /// nothing is taken from the last one any more.
    fn current(&self, state: &Window, now: Timestamp) -> (u64, u64) {
        let over = self.over(state, now);
        let reserved = state.reserved();
        let is_at_rest = over > reserved || reserved == 0 && state.count == 0;
        if is_at_rest && matches!(self.windows, WindowStarts::FromFirst(_)) {
            return (over, now.as_nanos());
        }
        (over, self.windows.after(state.start, over))
    }

    fn answer(&self, verdict: Verdict, free: Option<u64>, reset_after: u64) -> Decision {
        Decision {
            verdict,
            limit: self.permits,
            // While somebody waits nothing is there for who comes now.
            remaining: free.unwrap_or(0),
            reset_after: Duration::from_nanos(reset_after),
        }
    }

    /// The plan of a forced ask: it counts in the current window, whoever waits for the next ones.
    fn force(&self, state: &Window, now: Timestamp, ask: &Ask) -> Plan<Reserve> {
        let (over, start) = self.current(state, now);
        let last = state.reserved().max(over);
        let used = state.count_at(over);
        let forced = ask.forced_onto(used);
        let verdict = match forced {
            Some(_) => Verdict::Allowed {
                delay: Duration::ZERO,
            },
            None => Verdict::Denied {
                retry: Retry::Never,
            },
        };
        let count = forced.unwrap_or(used);
        let until_all_over = if last == over && count == 0 {
            0
        } else {
            let ends = self.windows.after(start, last + 1 - over);
            ends.saturating_sub(now.as_nanos())
        };
        let free = (last == over).then(|| self.permits.saturating_sub(count));
        Plan {
            decision: self.answer(verdict, free, until_all_over),
            change: forced.map(|_| Reserve {
                start,
                over,
                place: 0,
                permits: ask.permits(),
            }),
        }
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
        let (over, start) = self.current(state, now);
        let until = |place| {
            let begins = self.windows.after(start, place - over);
            begins.saturating_sub(now.as_nanos())
        };
        let permits = ask.permits();
        // Never before one who came earlier.
        let mut last = state.reserved().max(over);
        let mut count = state.count_at(last);
        if ask.is_forced() && permits > 0 {
            return self.force(state, now, ask);
        }
        let fits = permits <= self.permits.saturating_sub(count);
        let place = if fits { last } else { last + 1 };
        let wait = match place - over {
            0 => 0,
            _ => until(place),
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
                start,
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
        let until_all_over = if last == over && count == 0 {
            0
        } else {
            until(last + 1)
        };
        let free = (last == over).then(|| self.permits.saturating_sub(count));
        let decision = self.answer(verdict, free, until_all_over);
        Plan { decision, change }
    }

    fn commit(&self, state: &mut Window, change: Reserve) -> Taken {
        state.go_on(change.over, change.start);
        let count = state.count_at(change.place) + change.permits;
        state.set_count_at(change.place, count);
        Taken {
            permits: change.permits,
            at: Timestamp::from_nanos(self.windows.after(state.start, change.place)),
            detail: 0,
        }
    }

    fn undo(&self, state: &mut Window, taken: &Taken, _now: Timestamp) {
        // Permits of a window that is over came back with the next one.
        let start = self.windows.start_at(taken.at.as_nanos());
        if start < state.start {
            return;
        }
        let place = self.windows.between(state.start, start);
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
            start: self.windows.start_at(now.as_nanos()),
            count,
            ahead: None,
        }
    }

    fn migrate(&self, new: &Self, state: &mut Window, now: Timestamp) {
        if new.windows == self.windows {
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

    fn write_words(&self, words: &mut Vec<u64>) {
        words.extend([self.start, self.count]);
        words.extend(self.ahead.iter().flat_map(|ahead| ahead.iter()));
    }

    fn from_words(words: &[u64]) -> Option<Self> {
        let [start, taken, ahead @ ..] = words else {
            return None;
        };
        let mut window = Self {
            start: tick(*start),
            count: count(*taken),
            ahead: None,
        };
        let reserved: VecDeque<u64> = ahead.iter().map(|&of_one| count(of_one)).collect();
        if reserved.back().is_some_and(|last| *last > 0) {
            window.ahead = Some(Box::new(reserved));
        }
        Some(window)
    }
}
