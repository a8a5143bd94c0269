//! Admissions in order of time, with running totals: the state of the sliding log, at a coarser
//! tick of the sliding window of parts, and of the seconds of a line.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use super::words::{count, tick};
use super::{Plan, State};
use crate::{Ask, Decision, Retry, Verdict};

/// The admissions of the last window.
///
/// Each entry carries the running total up to and with itself, so that what lies in a window is
/// a difference of two totals, found by bisection. A tick is a nanosecond, or a part of a window:
/// the meter knows. Entries may lie ahead of the time: callers that wait have reserved.
#[derive(Clone, Debug, Default)]
pub struct Log {
    entries: VecDeque<Entry>,
    /// The running total before the first entry.
    before: u64,
    /// The latest tick in which anything was taken, whenever it was taken for.
    asked: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) tick: u64,
    total: u64,
}

/// What a request would change: how many entries have left, and what comes to the end.
#[derive(Clone, Copy, Debug)]
pub struct Append {
    pub(super) left: usize,
    pub(super) asked: u64,
    pub(super) tick: u64,
    pub(super) permits: u64,
}

impl Log {
    /// A log of so many permits, all at one tick.
    pub(super) fn of(tick: u64, permits: u64) -> Self {
        let mut log = Self {
            asked: tick,
            ..Self::default()
        };
        if permits > 0 {
            log.entries.push_back(Entry {
                tick,
                total: permits,
            });
        }
        log
    }

    /// The running total before the entry of this index.
    pub(super) fn total_before(&self, index: usize) -> u64 {
        match index.checked_sub(1) {
            Some(last) => self
                .entries
                .get(last)
                .map_or(self.before, |entry| entry.total),
            None => self.before,
        }
    }

    pub(super) fn total(&self) -> u64 {
        self.entries.back().map_or(self.before, |entry| entry.total)
    }

    pub(super) fn last_tick(&self) -> Option<u64> {
        self.entries.back().map(|entry| entry.tick)
    }

    /// The tick as it counts: a clock that stepped back stays where it had been.
    pub(super) const fn advance(&self, tick: u64) -> u64 {
        if tick > self.asked { tick } else { self.asked }
    }

    /// How many entries are `window` ticks old, or older, at `now`.
    pub(super) fn left(&self, window: u64, now: u64) -> usize {
        self.entries
            .partition_point(|entry| now - entry.tick.min(now) >= window)
    }

    /// The tick of the entry with which the running total reaches `total`.
    pub(super) fn tick_of(&self, total: u64) -> Option<u64> {
        let first = self.entries.partition_point(|entry| entry.total < total);
        self.entries.get(first).map(|entry| entry.tick)
    }

    /// What a limit of `most` permits in `window` ticks answers at `now` (a tick that has been
    /// [advanced](Self::advance)), and would change. `until` says how many nanoseconds it takes
    /// until a tick begins, and `patience` for how many the caller would wait.
    ///
    /// Who waits is let in at the first tick at which it fits, and never before one who came
    /// earlier. The running total of forced permits has an end, which no key lives to see.
    pub(super) fn plan(
        &self,
        most: u64,
        window: u64,
        now: u64,
        ask: &Ask,
        patience: u64,
        until: impl Fn(u64) -> u64,
    ) -> Plan<Append> {
        let permits = ask.permits();
        let last = self.last_tick();
        let next = last.unwrap_or(0).max(now);
        let (tick, wait) = if ask.is_forced() {
            // At once, and counted after those who wait: entries are in order.
            let forced = ask.forced_onto(self.total()).map(|_| next);
            (forced, forced.map(|_| 0))
        } else {
            let tick = self.first_fit(most, window, next, permits);
            (tick, tick.map(&until))
        };
        let verdict = match wait {
            _ if permits == 0 => Verdict::Allowed {
                delay: Duration::ZERO,
            },
            None => Verdict::Denied {
                retry: Retry::Never,
            },
            Some(wait) => match wait.checked_sub(patience) {
                None | Some(0) => Verdict::Allowed {
                    delay: Duration::from_nanos(wait),
                },
                Some(longer) => Verdict::Denied {
                    retry: Retry::After(Duration::from_nanos(longer)),
                },
            },
        };
        let left = self.left(window, now);
        let change = tick
            .filter(|_| permits > 0 && matches!(verdict, Verdict::Allowed { .. }))
            .map(|tick| Append {
                left,
                asked: now,
                tick,
                permits,
            });
        let (last, taken) = change.map_or((last, 0), |append| (Some(append.tick), permits));
        let used = self.total() - self.total_before(left) + taken;
        // While somebody waits nothing is there for who comes now.
        let is_ahead = last.is_some_and(|last| last > now);
        let reset = last.filter(|_| used > 0);
        let decision = Decision {
            verdict,
            limit: most,
            remaining: if is_ahead {
                0
            } else {
                most.saturating_sub(used)
            },
            reset_after: Duration::from_nanos(
                reset.map_or(0, |last| until(last.saturating_add(window))),
            ),
        };
        Plan { decision, change }
    }

    /// The first tick from `next` on at which so many permits fit; `None` where they never do.
    fn first_fit(&self, most: u64, window: u64, next: u64, permits: u64) -> Option<u64> {
        if permits > most {
            return None;
        }
        let gone = self.total_before(self.left(window, next));
        let used = self.total() - gone;
        if permits <= most.saturating_sub(used) {
            return Some(next);
        }
        // When so many have left that these fit.
        let enough = self.tick_of(gone + used + permits - most);
        enough.map(|tick| tick.saturating_add(window))
    }

    /// The entry of this index, with its permits.
    pub(super) fn entry(&self, index: usize) -> Option<(u64, u64)> {
        let entry = self.entries.get(index)?;
        Some((entry.tick, entry.total - self.total_before(index)))
    }

    /// The entries, with the permits of each.
    pub(super) fn permits(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut before = self.before;
        self.entries.iter().map(move |entry| {
            let permits = entry.total - before;
            before = entry.total;
            (entry.tick, permits)
        })
    }

    /// Drops the first entries.
    pub(super) fn forget(&mut self, left: usize) {
        self.before = self.total_before(left);
        self.entries.drain(..left);
        // A key that was busy once does not hold its memory for ever.
        if self.entries.capacity() > 64 && self.entries.len() < self.entries.capacity() / 4 {
            self.entries.shrink_to(2 * self.entries.len());
        }
    }

    pub(super) fn append(
        &mut self,
        Append {
            left,
            asked,
            tick,
            permits,
        }: Append,
    ) {
        self.forget(left);
        self.asked = self.advance(asked);
        let total = self.total() + permits;
        match self.entries.back_mut() {
            Some(last) if last.tick == tick => last.total = total,
            _ => {
                self.grow();
                self.entries.push_back(Entry { tick, total });
            }
        }
    }

    /// Has room for one more. Grows by a quarter, so that no more than that is held for nothing.
    fn grow(&mut self) {
        let entries = self.entries.len();
        if entries == self.entries.capacity() {
            self.entries.reserve_exact((entries / 4).max(4));
        }
    }

    /// Takes permits out again, as far as the entry of their tick still has them.
    pub(super) fn take_out(&mut self, tick: u64, permits: u64) {
        let index = self.entries.partition_point(|entry| entry.tick < tick);
        let before = self.total_before(index);
        let Some(entry) = self.entries.get(index).filter(|entry| entry.tick == tick) else {
            return; // It has left the window, and come back that way.
        };
        let permits = permits.min(entry.total - before);
        for entry in self.entries.range_mut(index..) {
            entry.total -= permits;
        }
        if self.total_before(index + 1) == before {
            self.entries.remove(index);
        }
    }
}

impl State for Log {
    #[cfg(feature = "std")]
    type Cell = crate::store::MutexCell<Self>;

    fn write_words(&self, words: &mut Vec<u64>) {
        words.push(self.asked);
        words.extend(self.permits().flat_map(|(tick, permits)| [tick, permits]));
    }

    fn from_words(words: &[u64]) -> Option<Self> {
        let (asked, entries) = words.split_first()?;
        let (entries, []) = entries.as_chunks() else {
            return None;
        };
        let mut log = Self::of(tick(*asked), 0);
        log.entries.reserve_exact(entries.len());
        for &[at, permits] in entries {
            let is_after = log.last_tick().is_none_or(|last| last < at);
            // So that no total of what is forced on top of it overflows.
            let total = log.total().checked_add(count(permits))?;
            if !is_after || permits == 0 || at != tick(at) || total != count(total) {
                return None;
            }
            log.entries.push_back(Entry { tick: at, total });
        }
        Some(log)
    }
}

/// What one remembered tick takes.
pub(super) const ENTRY_BYTES: usize = size_of::<Entry>();

#[cfg(test)]
mod tests;
