//! One state that many threads share.
//!
//! A state of one word lives in an atomic and is changed by compare-and-swap. Where several
//! limits are decided as one, each must hold still meanwhile: the word is then swapped for
//! [`LOCKED`], a value that no state has, and put back when the decision is made. Nobody sleeps
//! or calls out between the two, so the others spin.

use core::fmt::Debug;

use crate::meter::{State, Taken, Tat, Word};
use crate::sync::{AtomicU64, Mutex, Ordering, lock, spin_loop, yield_now};
use crate::{Ask, Decision, Meter, Timestamp, gate::Inside};

/// Shared access to one state.
pub trait StateCell<S>: Debug + Send + Sync {
    /// A cell with this state in it.
    fn new(state: S) -> Self;

    /// Decides, and takes what is allowed, as one atomic step.
    fn check<M: Meter<State = S>>(
        &self,
        meter: &M,
        now: Timestamp,
        ask: &Ask,
    ) -> (Decision, Option<Taken>);

    /// Runs `change` on the state while nobody else can see it. `change` must be short, and must
    /// not come back to this cell.
    fn hold<R>(&self, change: impl FnOnce(&mut S) -> R) -> R;
}

/// A state that fits in one word and is never [`u64::MAX`].
pub trait AtomicState: State + Copy {
    /// The word for this state.
    fn to_word(self) -> u64;
    /// The state that a word stands for.
    fn from_word(word: u64) -> Self;
}

impl AtomicState for Tat<u64> {
    #[inline]
    fn to_word(self) -> u64 {
        debug_assert!(self.0 <= <u64 as Word>::LARGEST);
        self.0
    }
    #[inline]
    fn from_word(word: u64) -> Self {
        Self(word)
    }
}

impl AtomicState for Inside {
    #[inline]
    fn to_word(self) -> u64 {
        Self::to_word(self)
    }
    #[inline]
    fn from_word(word: u64) -> Self {
        Self::from_word(word)
    }
}

/// The word of a cell whose state somebody has taken out for a moment.
const LOCKED: u64 = u64::MAX;
/// Spins before the thread offers its time to others.
const SPINS: u32 = 64;

/// Spins after somebody else was faster: fewer do not help on two idle cores.
const BACK_OFF: u32 = 24;

/// A state of one word, changed by compare-and-swap.
#[derive(Debug)]
pub struct AtomicCell<S> {
    word: AtomicU64,
    state: core::marker::PhantomData<fn() -> S>,
}

impl<S: AtomicState> AtomicCell<S> {
    #[inline]
    fn load(&self) -> u64 {
        let word = self.word.load(Ordering::Acquire);
        if word == LOCKED {
            self.load_after_lock()
        } else {
            word
        }
    }

    #[cold]
    fn load_after_lock(&self) -> u64 {
        let mut spins = 0;
        loop {
            let word = self.word.load(Ordering::Acquire);
            if word != LOCKED {
                return word;
            }
            spins += 1;
            if spins % SPINS == 0 || cfg!(any(loom, shuttle)) {
                yield_now();
            } else {
                spin_loop();
            }
        }
    }
}

/// Puts a state back, also when the closure that had it panics: others are waiting for it.
struct PutBack<'a, S: AtomicState> {
    cell: &'a AtomicCell<S>,
    state: S,
}

impl<S: AtomicState> Drop for PutBack<'_, S> {
    fn drop(&mut self) {
        self.cell
            .word
            .store(self.state.to_word(), Ordering::Release);
    }
}

impl<S: AtomicState> StateCell<S> for AtomicCell<S> {
    fn new(state: S) -> Self {
        Self {
            word: AtomicU64::new(state.to_word()),
            state: core::marker::PhantomData,
        }
    }

    // Inlined whatever its size: only then is what a caller does not look at (two divisions for
    // `remaining` and `reset_after`) not computed; worth a third of the time of a check.
    #[expect(clippy::inline_always, reason = "measured: see above")]
    #[inline(always)]
    fn check<M: Meter<State = S>>(
        &self,
        meter: &M,
        now: Timestamp,
        ask: &Ask,
    ) -> (Decision, Option<Taken>) {
        loop {
            let word = self.load();
            let mut state = S::from_word(word);
            let plan = meter.plan(&state, now, ask);
            let Some(change) = plan.change else {
                return (plan.decision, None);
            };
            let taken = meter.commit(&mut state, change);
            let new = state.to_word();
            if self
                .word
                .compare_exchange_weak(word, new, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                return (plan.decision, Some(taken));
            }
            // Whoever has the word is likely to want it again: two cores that step back here for
            // a moment get more than a third more through than two that do not.
            if !cfg!(any(loom, shuttle)) {
                (0..BACK_OFF).for_each(|_| spin_loop());
            }
        }
    }

    fn hold<R>(&self, change: impl FnOnce(&mut S) -> R) -> R {
        let word = loop {
            let word = self.load();
            if self
                .word
                .compare_exchange_weak(word, LOCKED, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
            {
                break word;
            }
        };
        let mut out = PutBack {
            cell: self,
            state: S::from_word(word),
        };
        change(&mut out.state)
    }
}

/// A state of any size, behind a mutex.
#[derive(Debug)]
pub struct MutexCell<S>(Mutex<S>);

impl<S: State> StateCell<S> for MutexCell<S> {
    fn new(state: S) -> Self {
        Self(Mutex::new(state))
    }

    fn check<M: Meter<State = S>>(
        &self,
        meter: &M,
        now: Timestamp,
        ask: &Ask,
    ) -> (Decision, Option<Taken>) {
        let mut state = lock(&self.0);
        let plan = meter.plan(&state, now, ask);
        let taken = plan.change.map(|change| meter.commit(&mut state, change));
        (plan.decision, taken)
    }

    fn hold<R>(&self, change: impl FnOnce(&mut S) -> R) -> R {
        change(&mut lock(&self.0))
    }
}
