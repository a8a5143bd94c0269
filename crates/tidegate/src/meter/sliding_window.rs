//! Sliding window of n parts: what each part of the window admitted is counted.

use core::num::NonZeroU32;
use core::time::Duration;

use super::log::{Append, Log};
use super::{Meter, Plan, Taken, Used};
use crate::time::nanos;
use crate::{Ask, Quota, QuotaError, Timestamp};

/// At most `permits` in every window of this length, whenever it starts: the current part and
/// the `parts` before it are counted, and together they cover any window.
///
/// A caller that offers to wait reserves, in the order of the calls.
///
/// The price: a limit that is always asked for more lets `permits` pass in a window and a part,
/// not in a window. Memory is at most 16 bytes * (`parts` + 1) per key. Parts are aligned to the
/// epoch and no shorter than a nanosecond, but need not be whole ones: the part at time *t* is
/// `t * parts / window`, rounded down.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SlidingWindow {
    permits: u64,
    window: u64,
    parts: u32,
}

impl SlidingWindow {
    /// The most parts of a window.
    pub const MAX_PARTS: u32 = 1_000;

    /// `permits` in every window of this length, counted in so many parts.
    ///
    /// # Errors
    /// [`QuotaError`] where the numbers make no limit.
    pub fn new(permits: u64, window: Duration, parts: NonZeroU32) -> Result<Self, QuotaError> {
        Quota::new(permits, window).rate()?;
        let most = nanos(window).min(Self::MAX_PARTS.into());
        if u64::from(parts.get()) > most {
            return Err(QuotaError::TooManyParts(parts.get()));
        }
        Ok(Self {
            permits,
            window: nanos(window),
            parts: parts.get(),
        })
    }

    /// The part at `now`; a clock that stepped back stays in the part that it had reached.
    fn part(&self, log: &Log, now: Timestamp) -> u64 {
        log.advance(self.part_at(now.as_nanos()))
    }

    fn part_at(&self, nanos: u64) -> u64 {
        // A part is no shorter than a nanosecond: no more parts than there are of those.
        narrow(u128::from(nanos) * u128::from(self.parts) / u128::from(self.window))
    }

    /// The first nanosecond of a part.
    fn start_of(&self, part: u64) -> u64 {
        narrow((u128::from(part) * u128::from(self.window)).div_ceil(u128::from(self.parts)))
    }

    /// Parts that a permit counts for: its own, and all that a window has.
    fn span(&self) -> u64 {
        u64::from(self.parts) + 1
    }
}

fn narrow(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

impl Meter for SlidingWindow {
    type State = Log;
    type Change = Append;

    fn fresh(&self, _now: Timestamp) -> Log {
        Log::default()
    }

    fn plan(&self, log: &Log, now: Timestamp, ask: &Ask) -> Plan<Append> {
        let tick = self.part(log, now);
        let patience = ask.patience_at(now);
        let until = |part: u64| self.start_of(part).saturating_sub(now.as_nanos());
        log.plan(self.permits, self.span(), tick, ask, patience, until)
    }

    fn commit(&self, log: &mut Log, append: Append) -> Taken {
        log.append(append);
        // The part itself, so that undoing needs no time that a changed window would misplace.
        Taken {
            permits: append.permits,
            at: Timestamp::EPOCH,
            detail: append.tick,
        }
    }

    fn undo(&self, log: &mut Log, taken: &Taken, _now: Timestamp) {
        log.take_out(taken.detail, taken.permits);
    }

    fn used(&self, log: &Log, now: Timestamp) -> Used {
        let left = log.left(self.span(), self.part(log, now));
        Used::permits(log.total() - log.total_before(left))
    }

    fn assume(&self, used: Used, now: Timestamp) -> Log {
        // When each was taken is not known; counted from now on none leaves too early.
        let permits = used.permits_ceil().min(2 * Quota::MAX_PERMITS);
        Log::of(self.part_at(now.as_nanos()), permits)
    }

    fn migrate(&self, new: &Self, log: &mut Log, now: Timestamp) {
        let tick = self.part(log, now);
        log.forget(log.left(self.span(), tick));
        let asked = new.part_at(now.as_nanos());
        let mut moved = Log::of(asked, 0);
        for (part, permits) in log.permits() {
            // As late as they can have been taken: none leaves too early.
            let latest = self.start_of(part + 1).saturating_sub(1);
            // What is reserved comes when it was told to.
            let latest = latest.min(now.as_nanos().max(self.start_of(part)));
            moved.append(Append {
                left: 0,
                asked,
                tick: new.part_at(latest),
                permits,
            });
        }
        *log = moved;
    }

    fn at_stake(&self, log: &Log, now: Timestamp) -> Option<u64> {
        Some(self.used(log, now).permits_ceil())
    }
}
