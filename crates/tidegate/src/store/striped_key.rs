//! The store of one key that many cores ask for at once.
//!
//! Cores that change one word have to hand it to each other for every check. Here each has a
//! [`Stripe`] of its own with a [`Lease`] of the bucket, and goes to the bucket once for many
//! checks. Before anybody is refused all leases are called back, so that nothing is refused while
//! a permit lies about; and a refusal is kept in the stripe, which repeats it until it ends.

use core::sync::atomic::{AtomicUsize, Ordering};

use super::SingleStore;
use super::one_key::{hold, peek};
use super::stripe::{LONGEST, Stripe, Striped};
use crate::meter::{Lease, Meter, State, Taken, Tat, TokenBucket};
use crate::sync::{Mutex, lock};
use crate::{Ask, Clock, Decision, Timestamp, Verdict};

/// The most permits of a lease: the way to the bucket costs about ten checks.
const LARGEST_LEASE: u64 = 1024;
/// Leases below this are not worth it.
const SMALLEST_LEASE: u64 = 8;
/// All leases together hold no more than one part in so many of the burst.
const PART_LEASED: u64 = 4;
/// The most stripes: one bit each says who has a lease.
const MAX_STRIPES: usize = u64::BITS as usize;

/// A token bucket and its one state, leased in part to stripes.
#[derive(Debug)]
pub(crate) struct StripedKey<W: Striped, C> {
    meter: TokenBucket<W>,
    /// The most permits of a lease.
    lease: u64,
    bucket: Mutex<Bucket<W>>,
    /// A power of two of them.
    stripes: Box<[Stripe<W>]>,
    clock: C,
}

#[derive(Debug)]
struct Bucket<W> {
    tat: Tat<W>,
    /// The latest time that was given to it.
    latest: Timestamp,
    /// Which stripes have a lease.
    lent: u64,
}

impl<W: Striped, C: Clock> StripedKey<W, C>
where
    Tat<W>: State,
{
    /// A fresh bucket for so many stripes, or the next power of two. `None` where its burst is too
    /// small to be leased to so many. The clock must be the one that
    /// [checks on a stripe](Self::check_on) have their time from.
    pub(crate) fn new(meter: TokenBucket<W>, stripes: usize, clock: C) -> Option<Self> {
        let stripes = stripes.clamp(1, MAX_STRIPES).next_power_of_two();
        let lease = (meter.burst() / PART_LEASED / stripes as u64)
            .min(LARGEST_LEASE)
            .min(meter.permits_of(LONGEST));
        (lease >= SMALLEST_LEASE).then(|| Self::with_leases(meter, stripes, lease, clock))
    }

    fn with_leases(meter: TokenBucket<W>, stripes: usize, lease: u64, clock: C) -> Self {
        let latest = clock.now();
        let bucket = Bucket {
            tat: meter.fresh(latest),
            latest,
            lent: 0,
        };
        Self {
            meter,
            lease,
            bucket: Mutex::new(bucket),
            stripes: (0..stripes).map(|_| Stripe::new()).collect(),
            clock,
        }
    }

    /// Takes what is asked if it is allowed, on behalf of the core of this stripe (any number).
    /// `now` must be what the store's clock says.
    ///
    /// Allowed from a lease, `remaining` and `reset_after` are those of the lease: both at most
    /// what the bucket's are.
    #[expect(clippy::inline_always, reason = "measured: see `AtomicCell::check`")]
    #[inline(always)]
    pub(crate) fn check_on(
        &self,
        stripe: usize,
        now: Timestamp,
        ask: &Ask,
    ) -> (Decision, Option<Taken>) {
        let stripe = stripe & (self.stripes.len() - 1);
        let permits = ask.permits();
        if *ask == Ask::ONE
            && let Some(refusal) = self.stripes[stripe].refusal(self.meter.burst(), now)
        {
            return (refusal, None);
        }
        if permits > 0
            && let Some(decision) = self.stripes[stripe].spend(&self.meter, now, permits)
        {
            let taken = Taken {
                permits,
                at: now,
                detail: 0,
            };
            return (decision, Some(taken));
        }
        self.check_bucket(Some(stripe), now, ask)
    }

    /// The same on behalf of the core that this thread is likely to be on.
    #[expect(clippy::inline_always, reason = "measured: see `AtomicCell::check`")]
    #[inline(always)]
    pub(crate) fn check_here(&self, now: Timestamp, ask: &Ask) -> (Decision, Option<Taken>) {
        self.check_on(my_stripe(), now, ask)
    }

    /// Asks the bucket.
    #[expect(clippy::inline_always, reason = "measured: see `AtomicCell::check`")]
    #[inline(always)]
    fn check_bucket(
        &self,
        stripe: Option<usize>,
        now: Timestamp,
        ask: &Ask,
    ) -> (Decision, Option<Taken>) {
        let (mut tat, now) = self.change_bucket(stripe, now, ask);
        // The same answer again, but from here a caller need not compute what it does not look at.
        let plan = self.meter.plan(&tat, now, ask);
        let taken = plan
            .change
            .map(|change| self.meter.commit(&mut tat, change));
        (plan.decision, taken)
    }

    /// Takes what is asked from the bucket if it is allowed, and gives the stripe a new lease if
    /// there is enough. Returns the bucket, and the time, that this was planned on.
    #[cold]
    #[inline(never)]
    fn change_bucket(
        &self,
        stripe: Option<usize>,
        now: Timestamp,
        ask: &Ask,
    ) -> (Tat<W>, Timestamp) {
        let mut bucket = lock(&self.bucket);
        let mut now = now;
        let mut plan = self.meter.plan(&bucket.tat, now, ask);
        // Debt is due at once: no lease is worth anything beside it.
        let is_there = plan.change.is_some()
            && !ask.is_forced()
            && matches!(plan.decision.verdict, Verdict::Allowed { delay } if delay.is_zero());
        if is_there {
            bucket.latest = bucket.latest.max(now);
        } else {
            now = self.call_back(&mut bucket, now);
            plan = self.meter.plan(&bucket.tat, now, ask);
        }
        let planned_on = bucket.tat;
        if let Some(change) = plan.change {
            let _ = self.meter.commit(&mut bucket.tat, change);
            if let Some(stripe) = stripe {
                self.lend(&mut bucket, stripe, now);
            }
        } else if let Some(stripe) = stripe
            && *ask == Ask::ONE
        {
            self.stripes[stripe].refuse(&plan.decision, now);
        }
        (planned_on, now)
    }

    /// Gives a stripe a lease, if the bucket has one to give and the last one is used up. What of
    /// that is less than a permit is wasted.
    fn lend(&self, bucket: &mut Bucket<W>, stripe: usize, now: Timestamp) {
        let share = self.meter.available(bucket.tat, now) / self.stripes.len() as u64;
        let permits = share.min(self.lease);
        if permits == 0 {
            return;
        }
        let old = self.stripes[stripe].call_back();
        let lease = if self.meter.spend(&old, now, 1).is_some() {
            old
        } else {
            self.meter.lease(&mut bucket.tat, now, permits)
        };
        self.stripes[stripe].lend(&lease, bucket.latest);
        bucket.lent |= 1 << stripe;
    }

    /// Puts all leases back into the bucket. Returns the time at which: no lease was used later.
    fn call_back(&self, bucket: &mut Bucket<W>, now: Timestamp) -> Timestamp {
        let mut leases = [Lease::default(); MAX_STRIPES];
        let mut count = 0;
        while bucket.lent != 0 {
            leases[count] = self.stripes[bucket.lent.trailing_zeros() as usize].call_back();
            bucket.lent &= bucket.lent - 1;
            count += 1;
        }
        // Only now: who used a lease had looked at the clock before.
        bucket.latest = bucket.latest.max(now).max(self.clock.now());
        for lease in &leases[..count] {
            self.meter.put_back(&mut bucket.tat, lease, bucket.latest);
        }
        bucket.latest
    }

    /// Runs `change` on the whole bucket, while no check is answered but by refusals that were
    /// made before.
    fn whole<R>(&self, now: Timestamp, change: impl FnOnce(&mut Tat<W>, Timestamp) -> R) -> R {
        let mut bucket = lock(&self.bucket);
        let now = self.call_back(&mut bucket, now);
        change(&mut bucket.tat, now)
    }

    /// The same for a change after which there may be more: earlier refusals hold no longer.
    fn refilled(&self, now: Timestamp, change: impl FnOnce(&mut Tat<W>, Timestamp)) {
        self.whole(now, |tat, now| {
            change(tat, now);
            self.stripes.iter().for_each(Stripe::forget_refusal);
        });
    }
}

impl<W: Striped, C: Clock> SingleStore for StripedKey<W, C>
where
    Tat<W>: State,
{
    /// Asks the bucket: the time may be another clock's.
    fn check(&self, now: Timestamp, ask: &Ask) -> (Decision, Option<Taken>) {
        self.check_bucket(None, now, ask)
    }

    fn peek(&self, now: Timestamp, ask: &Ask) -> Decision {
        self.whole(now, |tat, now| peek(&self.meter, tat, now, ask))
    }

    fn reset(&self, now: Timestamp) -> bool {
        self.refilled(now, |tat, now| *tat = self.meter.fresh(now));
        true
    }

    fn undo(&self, taken: &Taken, now: Timestamp) {
        self.refilled(now, |tat, now| self.meter.undo(tat, taken, now));
    }

    fn hold(
        &self,
        now: Timestamp,
        ask: &Ask,
        rest: &mut dyn FnMut(Decision) -> bool,
    ) -> Option<Taken> {
        self.whole(now, |tat, now| hold(&self.meter, tat, now, ask, rest))
    }
}

/// The number of this thread: threads take stripes in turn.
#[inline]
fn my_stripe() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MINE: usize = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    MINE.with(|mine| *mine)
}

#[cfg(all(test, loom))]
mod loom_stripes;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
