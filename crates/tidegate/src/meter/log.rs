//! Admissions in order of time, with running totals: the state of the sliding log, and, at a
//! coarser tick, of the sliding window of parts.

use alloc::collections::VecDeque;
use core::time::Duration;

use super::{Plan, State};
use crate::{Decision, Retry, Verdict};

/// The admissions of the last window.
///
/// Each entry carries the running total up to and with itself, so that what lies in a window is
/// a difference of two totals, found by bisection. A tick is a nanosecond, or a part of a window:
/// the meter knows.
#[derive(Clone, Debug, Default)]
pub struct Log {
    entries: VecDeque<Entry>,
    /// The running total before the first entry.
    before: u64,
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
    pub(super) tick: u64,
    pub(super) permits: u64,
}

impl Log {
    /// A log of so many permits, all at one tick.
    pub(super) fn of(tick: u64, permits: u64) -> Self {
        let mut log = Self::default();
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

    /// What a limit of `most` permits in `window` ticks answers at `tick`, and would change.
    /// `leaves` says how long it takes until what came at a tick has left.
    pub(super) fn plan(
        &self,
        most: u64,
        window: u64,
        tick: u64,
        permits: u64,
        leaves: impl Fn(u64) -> Duration,
    ) -> Plan<Append> {
        let left = self.left(window, tick);
        let gone = self.total_before(left);
        let used = self.total() - gone;
        let verdict = if permits <= most.saturating_sub(used) || permits == 0 {
            Verdict::Allowed {
                delay: Duration::ZERO,
            }
        } else if permits > most {
            Verdict::Denied {
                retry: Retry::Never,
            }
        } else {
            // When so many have left that these fit.
            let enough = self.tick_of(gone + used + permits - most);
            Verdict::Denied {
                retry: Retry::After(leaves(enough.unwrap_or(tick))),
            }
        };
        let allowed = matches!(verdict, Verdict::Allowed { .. });
        let change = (allowed && permits > 0).then_some(Append {
            left,
            tick,
            permits,
        });
        let last = if change.is_some() {
            Some(tick)
        } else {
            self.last_tick()
        };
        let used = used + change.map_or(0, |append| append.permits);
        let decision = Decision {
            verdict,
            limit: most,
            remaining: most.saturating_sub(used),
            reset_after: last.filter(|_| used > 0).map_or(Duration::ZERO, leaves),
        };
        Plan { decision, change }
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
            tick,
            permits,
        }: Append,
    ) {
        self.forget(left);
        let total = self.total() + permits;
        match self.entries.back_mut() {
            Some(last) if last.tick == tick => last.total = total,
            _ => self.entries.push_back(Entry { tick, total }),
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
}

/// What one remembered tick takes.
pub(super) const ENTRY_BYTES: usize = size_of::<Entry>();
