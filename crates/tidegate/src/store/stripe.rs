//! What one core has of a key for itself: a lease of the bucket, and the bucket's last refusal.
//!
//! How much of the lease is used is one atomic word, so that a check changes nothing else. Who
//! lends and calls back holds the bucket; the word then gets another generation, and a check that
//! began under an earlier one begins again. (A check would have to sleep between its two
//! instructions while exactly a multiple of 2^24 leases come and go, to take one for the other.)

use core::fmt::Debug;
use core::time::Duration;

use crate::meter::{Lease, TokenBucket, Word};
use crate::sync::{AtomicU64, Ordering};
use crate::{Decision, Retry, Timestamp, Verdict};

/// The bits of the word that say how much of the lease is used; above them its generation.
const USED: u64 = (1 << 40) - 1;
/// The longest lease. The word of a stripe without a lease says that more is used.
pub(super) const LONGEST: u64 = USED - 1;

/// On cache lines that it shares with no other (processors fetch them in pairs).
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Stripe<W: Striped> {
    word: AtomicU64,
    /// Of the lease, for whom the word says that there is one.
    start: W::Kept,
    length: AtomicU64,
    lent_at: AtomicU64,
    /// Before this time the bucket has no permit, whatever is called back.
    refused_until: AtomicU64,
    /// When the bucket that refused is full again.
    full_at: AtomicU64,
}

/// A word that a stripe can keep.
pub(crate) trait Striped: Word {
    /// Where it is kept. Its loads and stores need no order of their own.
    type Kept: Debug + Send + Sync;
    /// A place for it, with 0 in it.
    fn kept() -> Self::Kept;
    /// Reads it.
    fn get(kept: &Self::Kept) -> Self;
    /// Writes it.
    fn set(kept: &Self::Kept, word: Self);
}

impl Striped for u64 {
    type Kept = AtomicU64;
    fn kept() -> AtomicU64 {
        AtomicU64::new(0)
    }
    #[inline]
    fn get(kept: &AtomicU64) -> Self {
        kept.load(Ordering::Relaxed)
    }
    fn set(kept: &AtomicU64, word: Self) {
        kept.store(word, Ordering::Relaxed);
    }
}

impl Striped for u128 {
    type Kept = [AtomicU64; 2];
    fn kept() -> [AtomicU64; 2] {
        [u64::kept(), u64::kept()]
    }
    #[inline]
    fn get([high, low]: &[AtomicU64; 2]) -> Self {
        Self::from(u64::get(high)) << 64 | Self::from(u64::get(low))
    }
    fn set([high, low]: &[AtomicU64; 2], word: Self) {
        u64::set(high, (word >> 64) as u64);
        u64::set(low, word as u64);
    }
}

impl<W: Striped> Stripe<W> {
    pub(super) fn new() -> Self {
        Self {
            word: AtomicU64::new(USED),
            start: W::kept(),
            length: AtomicU64::new(0),
            lent_at: AtomicU64::new(0),
            refused_until: AtomicU64::new(0),
            full_at: AtomicU64::new(0),
        }
    }

    /// Takes `permits` of the lease, if it has them.
    #[expect(clippy::inline_always, reason = "measured: see `AtomicCell::check`")]
    #[inline(always)]
    pub(super) fn spend(
        &self,
        meter: &TokenBucket<W>,
        now: Timestamp,
        permits: u64,
    ) -> Option<Decision> {
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            // Where these are of a later lease than the word, the word has changed meanwhile. Who
            // looked at the clock before the lease was made asks the bucket.
            if now.as_nanos() < u64::get(&self.lent_at) {
                return None;
            }
            let (used, decision) = meter.spend(&self.lease(word), now, permits)?;
            match self.word.compare_exchange_weak(
                word,
                word & !USED | used,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return Some(decision),
                Err(is) => word = is,
            }
        }
    }

    #[inline]
    fn lease(&self, word: u64) -> Lease<W> {
        Lease {
            start: W::get(&self.start),
            used: word & USED,
            length: u64::get(&self.length),
        }
    }

    /// Gives the stripe a lease; only who holds the bucket may, and only where
    /// [`call_back`](Self::call_back) left none.
    pub(super) fn lend(&self, lease: &Lease<W>, now: Timestamp) {
        debug_assert!(lease.length <= LONGEST, "more than the word can say");
        W::set(&self.start, lease.start);
        u64::set(&self.length, lease.length);
        u64::set(&self.lent_at, now.as_nanos());
        let generation = self.word.load(Ordering::Relaxed) & !USED;
        self.word.store(generation | lease.used, Ordering::Release);
    }

    /// Takes the lease away, whatever is left of it; only who holds the bucket may.
    pub(super) fn call_back(&self) -> Lease<W> {
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            let next = (word | USED).wrapping_add(1 << 40);
            match self
                .word
                .compare_exchange(word, next, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return self.lease(word),
                Err(is) => word = is,
            }
        }
    }

    /// What the bucket last said to who asks for one permit, where it still holds: a bucket that
    /// has refused with all leases in it only fills with time.
    #[inline]
    pub(super) fn refusal(&self, burst: u64, now: Timestamp) -> Option<Decision> {
        let rest = |until: &AtomicU64| u64::get(until).saturating_sub(now.as_nanos());
        let wait = rest(&self.refused_until);
        (wait > 0).then(|| Decision {
            verdict: Verdict::Denied {
                retry: Retry::After(Duration::from_nanos(wait)),
            },
            limit: burst,
            remaining: 0,
            reset_after: Duration::from_nanos(rest(&self.full_at)),
        })
    }

    /// Notes that one permit was refused.
    pub(super) fn refuse(&self, decision: &Decision, now: Timestamp) {
        if let Verdict::Denied {
            retry: Retry::After(wait),
        } = decision.verdict
        {
            u64::set(&self.full_at, now.after(decision.reset_after).as_nanos());
            u64::set(&self.refused_until, now.after(wait).as_nanos());
        }
    }

    /// Forgets the refusal: the bucket was filled by other means than time.
    pub(super) fn forget_refusal(&self) {
        u64::set(&self.refused_until, 0);
    }
}
