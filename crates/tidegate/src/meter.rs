//! The algorithms that meter: state + time + permits -> verdict, nothing to return later.
//!
//! Each is a pure state machine behind the one trait [`Meter`]. Deciding is two steps, so that
//! several limits can be planned before any of them is charged.

mod fixed_window;
mod interval_bucket;
#[cfg(feature = "std")]
mod lease;
mod log;
mod nginx;
mod sentinel_tokens;
mod sentinel_warm_up;
mod sentinel_warm_up_queue;
mod sliding_counter;
mod sliding_log;
mod sliding_window;
mod smooth_bursty;
mod smooth_warm_up;
mod token_bucket;
mod window_starts;
mod word;
mod words;

use alloc::vec::Vec;
use core::fmt::Debug;
use core::hash::Hash;

pub use self::fixed_window::{FixedWindow, Window};
pub use self::interval_bucket::{IntervalBucket, Refilled};
#[cfg(feature = "std")]
pub(crate) use self::lease::Lease;
pub use self::log::Log;
pub use self::nginx::{Excess, Nginx};
pub use self::sentinel_warm_up::{SentinelWarmUp, Stored};
pub use self::sentinel_warm_up_queue::{Line, SentinelWarmUpQueue};
pub use self::sliding_counter::{SlidingCounter, Windows};
pub use self::sliding_log::SlidingLog;
pub use self::sliding_window::SlidingWindow;
pub use self::smooth_bursty::SmoothBursty;
pub use self::smooth_warm_up::{SmoothWarmUp, Warmth};
pub use self::token_bucket::{Tat, TokenBucket};
pub use self::word::Word;

use crate::{Ask, Decision, Timestamp};

/// An algorithm with its numbers. States are apart from it, one for each key.
///
/// Everything here is pure: the same state, time and ask give the same plan. A time before one
/// that a state has seen grants nothing; a state of one number does not know how late it was, and
/// may refuse more until that time has come again. A [`Keyed`](crate::store::Keyed) store keeps
/// the latest time beside its states, and counts a step back as no time passed.
pub trait Meter: Clone + Eq + Hash + Debug + Send + Sync + 'static {
    /// What is remembered of one key. Its default stands for "nothing stored here" and is never
    /// planned on; [`fresh`](Self::fresh) is what a new key starts with.
    type State: State;
    /// What a plan would change.
    type Change: Debug;

    /// The state of a key that is seen for the first time.
    fn fresh(&self, now: Timestamp) -> Self::State;

    /// What the answer to `ask` is, and what it would change. Takes nothing.
    fn plan(&self, state: &Self::State, now: Timestamp, ask: &Ask) -> Plan<Self::Change>;

    /// Takes what was planned. The state must be the one that was planned on.
    fn commit(&self, state: &mut Self::State, change: Self::Change) -> Taken;

    /// Gives back what was taken, as far as time has not done so already. For each [`Taken`] at
    /// most once: the callers' receipts and guards see to that.
    fn undo(&self, state: &mut Self::State, taken: &Taken, now: Timestamp);

    /// How much of this limit is in use at `now`.
    fn used(&self, state: &Self::State, now: Timestamp) -> Used;

    /// A state in which `used` is in use at `now`: how a key's usage enters this limit from
    /// another one. Usage above what this limit holds stays as debt.
    fn assume(&self, used: Used, now: Timestamp) -> Self::State;

    /// Turns a state of this limit into one of `new`: what was used stays used, and the new
    /// numbers hold at once.
    fn migrate(&self, new: &Self, state: &mut Self::State, now: Timestamp) {
        *state = new.assume(self.used(state, now), now);
    }

    /// The permits that would be given away if this state were forgotten at `now`: 0 where a
    /// fresh state permits no more than this one, `None` where it must not be forgotten (a guard
    /// is alive).
    fn at_stake(&self, state: &Self::State, now: Timestamp) -> Option<u64>;
}

/// What a store can keep for a key.
pub trait State: Clone + Debug + Default + Send + 'static {
    /// Where a state that many threads share is kept: one atomic word where it fits, a mutex
    /// where it does not.
    #[cfg(feature = "std")]
    type Cell: crate::store::StateCell<Self>;

    /// Whether callers may wait in line for a key. Only [gates](crate::Gate) have lines, and their
    /// states are the same whatever their numbers are.
    const HAS_LINES: bool = false;

    /// Whether somebody waits in line for this key: newcomers are then refused whatever is free.
    fn is_waited_for(&self) -> bool {
        false
    }

    /// Notes whether somebody waits in line for this key.
    fn set_waited_for(&mut self, _waited_for: bool) {}

    /// Appends the state as words that [`from_words`](Self::from_words) makes the same state of,
    /// in another process too: nothing in it may be relative to this one. Nothing for what is of
    /// no use to another process, such as who is inside a gate.
    fn write_words(&self, _words: &mut Vec<u64>) {}

    /// The state that was written as these words; `None` where none was. Whatever the words are,
    /// no meter may panic on what they make.
    fn from_words(_words: &[u64]) -> Option<Self> {
        None
    }
}

/// An answer, and what it would change.
#[derive(Clone, Copy, Debug)]
pub struct Plan<C> {
    /// The answer, as it stands once the change is committed.
    pub decision: Decision,
    /// What to commit; `None` where there is nothing to take.
    pub change: Option<C>,
}

/// What one commit took: enough to give it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Permits.
    pub permits: u64,
    /// When (as the meter counted it).
    pub at: Timestamp,
    /// What else the meter needs to undo it.
    pub detail: u64,
}

/// How much of a limit is in use, in permits and parts of a permit (2^-64).
///
/// The common currency of all limits: through it any limit's usage can enter any other. What is
/// lost on the way is rounded up, against the caller, by less than 2^-64 permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Used(u128);

impl Used {
    /// Nothing.
    pub const NOTHING: Self = Self(0);

    /// Whole permits.
    pub const fn permits(permits: u64) -> Self {
        Self((permits as u128) << 64)
    }

    /// `units`, where `per_permit` (not 0, below 2^64) of them make one permit; rounded up.
    pub(crate) const fn units(units: u128, per_permit: u64) -> Self {
        let per_permit = per_permit as u128;
        let (whole, rest) = (units / per_permit, units % per_permit);
        if whole >= 1 << 64 {
            return Self(u128::MAX);
        }
        Self((whole << 64).saturating_add((rest << 64).div_ceil(per_permit)))
    }

    /// In units of which `per_permit` make one permit; rounded up, and exactly what
    /// [`units`](Self::units) was given where that was of the same `per_permit`.
    pub(crate) const fn to_units(self, per_permit: u64) -> u128 {
        let (whole, rest) = (self.0 >> 64, self.0 & ((1 << 64) - 1));
        // `rest` was rounded up by less than 1: what is surely there is what counts.
        let surely = rest.saturating_sub(1) * per_permit as u128;
        whole * per_permit as u128 + surely.div_ceil(1 << 64)
    }

    /// `numerator / denominator` of it, rounded up; all of it where the denominator is 0.
    /// Saturates.
    #[cfg(feature = "std")]
    pub(crate) const fn times(self, numerator: u64, denominator: u64) -> Self {
        if denominator == 0 {
            return self;
        }
        let (numerator, denominator) = (numerator as u128, denominator as u128);
        let whole = (self.0 / denominator).saturating_mul(numerator);
        // The rest is less than the denominator: both factors are below 2^64.
        let rest = (self.0 % denominator * numerator).div_ceil(denominator);
        Self(whole.saturating_add(rest))
    }

    /// So many permits more; saturates.
    #[cfg(feature = "std")]
    pub(crate) const fn plus(self, permits: u64) -> Self {
        Self(self.0.saturating_add(Self::permits(permits).0))
    }

    /// So many permits less, or nothing.
    #[cfg(feature = "std")]
    pub(crate) const fn minus(self, permits: u64) -> Self {
        Self(self.0.saturating_sub(Self::permits(permits).0))
    }

    /// Whole permits, rounded up; saturates.
    pub const fn permits_ceil(self) -> u64 {
        let whole = self.0.div_ceil(1 << 64);
        if whole > u64::MAX as u128 {
            u64::MAX
        } else {
            whole as u64
        }
    }
}

#[cfg(test)]
mod tests;
