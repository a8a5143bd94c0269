//! Sliding log: every admission is remembered, so that every window holds exactly.

use core::time::Duration;

use super::log::{Append, ENTRY_BYTES, Log};
use super::{Meter, Plan, Taken, Used};
use crate::time::nanos;
use crate::{Ask, Quota, QuotaError, Timestamp};

/// At most `permits` in **every** window of this length, whenever it starts. An admission leaves
/// at age exactly the window.
///
/// A caller that offers to wait reserves, in the order of the calls.
///
/// The price is memory: 16 bytes for each admission of a window (requests of one nanosecond
/// share an entry), at most 16 bytes * `permits` per key, and as much for what is reserved ahead;
/// and up to a quarter more, so that not every admission needs new room.
/// Deciding costs O(log n), giving back O(what came after).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SlidingLog {
    permits: u64,
    window: u64,
}

impl SlidingLog {
    /// The most permits of a log: 2^24, which is 256 MiB for one key.
    pub const MAX_PERMITS: u64 = 1 << 24;
    /// What one remembered admission takes.
    pub const BYTES_PER_ADMISSION: usize = ENTRY_BYTES;

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
}

impl Meter for SlidingLog {
    type State = Log;
    type Change = Append;

    fn fresh(&self, _now: Timestamp) -> Log {
        Log::default()
    }

    fn plan(&self, log: &Log, now: Timestamp, ask: &Ask) -> Plan<Append> {
        let patience = ask.patience_at(now);
        let now = log.advance(now.as_nanos());
        let until = |at: u64| at.saturating_sub(now);
        log.plan(self.permits, self.window, now, ask, patience, until)
    }

    fn commit(&self, log: &mut Log, append: Append) -> Taken {
        log.append(append);
        Taken {
            permits: append.permits,
            at: Timestamp::from_nanos(append.tick),
            detail: 0,
        }
    }

    fn undo(&self, log: &mut Log, taken: &Taken, _now: Timestamp) {
        log.take_out(taken.at.as_nanos(), taken.permits);
    }

    fn used(&self, log: &Log, now: Timestamp) -> Used {
        let left = log.left(self.window, log.advance(now.as_nanos()));
        Used::permits(log.total() - log.total_before(left))
    }

    fn assume(&self, used: Used, now: Timestamp) -> Log {
        // When each was taken is not known; counted from now on none leaves too early.
        Log::of(
            now.as_nanos(),
            used.permits_ceil().min(2 * Quota::MAX_PERMITS),
        )
    }

    fn migrate(&self, _new: &Self, log: &mut Log, now: Timestamp) {
        // What is remembered stays as it is; only what this limit had let go stays gone.
        let left = log.left(self.window, log.advance(now.as_nanos()));
        log.forget(left);
    }

    fn at_stake(&self, log: &Log, now: Timestamp) -> Option<u64> {
        Some(self.used(log, now).permits_ceil())
    }
}
