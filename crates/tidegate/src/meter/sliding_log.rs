//! Sliding log: every admission is remembered, so that every window holds exactly.

use alloc::collections::VecDeque;
use core::time::Duration;

use super::{Meter, Plan, State, Taken, Used};
use crate::time::nanos;
use crate::{Ask, Decision, Quota, QuotaError, Retry, Timestamp, Verdict};

/// At most `permits` in **every** window of this length, whenever it starts. An admission leaves
/// at age exactly the window.
///
/// The price is memory: 16 bytes for each admission of a window (requests of one nanosecond
/// share an entry), at most 16 bytes * `permits` per key. Deciding costs O(log n), giving back
/// O(what came after).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SlidingLog {
    permits: u64,
    window: u64,
}

/// The state: the admissions of the last window in order of time.
///
/// Each entry carries the running total up to and with itself, so that what lies in a window is
/// a difference of two totals, found by bisection.
#[derive(Clone, Debug, Default)]
pub struct Log {
    entries: VecDeque<Entry>,
    /// The running total before the first entry.
    before: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: u64,
    total: u64,
}

/// What a log would change: how many entries have expired, and what comes to the end.
#[derive(Clone, Copy, Debug)]
pub struct Append {
    expired: usize,
    at: u64,
    permits: u64,
}

impl SlidingLog {
    /// The most permits of a log: 2^24, which is 256 MiB for one key.
    pub const MAX_PERMITS: u64 = 1 << 24;
    /// What one remembered admission takes.
    pub const BYTES_PER_ADMISSION: usize = size_of::<Entry>();

    /// `permits` in every window of this length.
    ///
    /// # Errors
    /// [`QuotaError`] where the numbers make no limit.
    pub fn new(permits: u64, window: Duration) -> Result<Self, QuotaError> {
        Quota::new(permits, window).rate()?;
        if permits > Self::MAX_PERMITS {
            return Err(QuotaError::LogTooLong(permits));
        }
        Ok(Self {
            permits,
            window: nanos(window),
        })
    }

    /// How many entries have left the window at `now`.
    fn expired(&self, log: &Log, now: u64) -> usize {
        log.entries
            .partition_point(|entry| now - entry.at.min(now) >= self.window)
    }

    /// Nanoseconds until so many permits (not 0, at most what is in use) have left.
    fn until_freed(&self, log: &Log, gone: u64, permits: u64, now: u64) -> u64 {
        let first = log
            .entries
            .partition_point(|entry| entry.total < gone + permits);
        let at = log.entries.get(first).map_or(now, |entry| entry.at);
        (at + self.window).saturating_sub(now)
    }
}

impl Log {
    /// The running total before the entry of this index.
    fn total_before(&self, index: usize) -> u64 {
        match index.checked_sub(1) {
            Some(last) => self
                .entries
                .get(last)
                .map_or(self.before, |entry| entry.total),
            None => self.before,
        }
    }

    fn total(&self) -> u64 {
        self.entries.back().map_or(self.before, |entry| entry.total)
    }

    /// A clock that stepped back counts as standing still.
    fn not_before_last(&self, now: Timestamp) -> u64 {
        self.entries
            .back()
            .map_or(0, |entry| entry.at)
            .max(now.as_nanos())
    }

    fn forget(&mut self, expired: usize) {
        self.before = self.total_before(expired);
        self.entries.drain(..expired);
        // A key that was busy once does not hold its memory for ever.
        if self.entries.capacity() > 64 && self.entries.len() < self.entries.capacity() / 4 {
            self.entries.shrink_to(2 * self.entries.len());
        }
    }
}

impl Meter for SlidingLog {
    type State = Log;
    type Change = Append;

    fn fresh(&self, _now: Timestamp) -> Log {
        Log::default()
    }

    fn plan(&self, log: &Log, now: Timestamp, ask: &Ask) -> Plan<Append> {
        let at = log.not_before_last(now);
        let expired = self.expired(log, at);
        let gone = log.total_before(expired);
        let mut used = log.total() - gone;
        let permits = ask.permits();
        let verdict = if permits == 0 || permits <= self.permits.saturating_sub(used) {
            used += permits;
            Verdict::Allowed {
                delay: Duration::ZERO,
            }
        } else if permits > self.permits {
            Verdict::Denied {
                retry: Retry::Never,
            }
        } else {
            let wait = self.until_freed(log, gone, used + permits - self.permits, at);
            Verdict::Denied {
                retry: Retry::After(Duration::from_nanos(wait)),
            }
        };
        let reset_after = match log.entries.back() {
            _ if verdict
                == (Verdict::Allowed {
                    delay: Duration::ZERO,
                })
                && permits > 0 =>
            {
                self.window
            }
            Some(last) if used > 0 => (last.at + self.window).saturating_sub(at),
            _ => 0,
        };
        let decision = Decision {
            verdict,
            limit: self.permits,
            remaining: self.permits.saturating_sub(used),
            reset_after: Duration::from_nanos(reset_after),
        };
        let change = (decision.is_allowed() && permits > 0).then_some(Append {
            expired,
            at,
            permits,
        });
        Plan { decision, change }
    }

    fn commit(&self, log: &mut Log, append: Append) -> Taken {
        let Append {
            expired,
            at,
            permits,
        } = append;
        log.forget(expired);
        let total = log.total() + permits;
        match log.entries.back_mut() {
            Some(last) if last.at == at => last.total = total,
            _ => log.entries.push_back(Entry { at, total }),
        }
        Taken {
            permits,
            at: Timestamp::from_nanos(at),
            detail: 0,
        }
    }

    fn undo(&self, log: &mut Log, taken: &Taken, _now: Timestamp) {
        let at = taken.at.as_nanos();
        let index = log.entries.partition_point(|entry| entry.at < at);
        let before = log.total_before(index);
        let Some(entry) = log.entries.get(index).filter(|entry| entry.at == at) else {
            return; // It has left the window, and come back that way.
        };
        let permits = taken.permits.min(entry.total - before);
        for entry in log.entries.range_mut(index..) {
            entry.total -= permits;
        }
        if log.total_before(index + 1) == before {
            log.entries.remove(index);
        }
    }

    fn used(&self, log: &Log, now: Timestamp) -> Used {
        let now = log.not_before_last(now);
        Used::permits(log.total() - log.total_before(self.expired(log, now)))
    }

    fn assume(&self, used: Used, now: Timestamp) -> Log {
        // When each was taken is not known; counted from now on none leaves too early.
        let total = used.permits_ceil().min(2 * Quota::MAX_PERMITS);
        let mut log = Log::default();
        if total > 0 {
            log.entries.push_back(Entry {
                at: now.as_nanos(),
                total,
            });
        }
        log
    }

    fn migrate(&self, _new: &Self, log: &mut Log, now: Timestamp) {
        // What is remembered stays as it is; only what this limit had let go stays gone.
        let now = log.not_before_last(now);
        log.forget(self.expired(log, now));
    }

    fn at_stake(&self, log: &Log, now: Timestamp) -> Option<u64> {
        Some(self.used(log, now).permits_ceil())
    }
}

impl State for Log {
    #[cfg(feature = "std")]
    type Cell = crate::store::MutexCell<Self>;
}
