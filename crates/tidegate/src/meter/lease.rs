//! Permits that are taken out of a token bucket ahead of use, so that who holds them can hand them
//! out without asking the bucket.
//!
//! The bucket's `tat` is the end of a line of bookings: each permit taken has booked the stretch
//! of (scaled) time in which it comes back. A lease is such a stretch that is not used yet. It is
//! used from its front, and it wastes away as time reaches it: by then the bucket would have been
//! full without it, and a full bucket grows no further. So what is in the bucket and all leases
//! together never hold more than the burst, and whoever hands out permits of a lease hands out
//! what the bucket itself could have: stretches of different leases do not overlap.

use core::time::Duration;

use super::{Tat, TokenBucket, Word};
use crate::{Decision, Timestamp, Verdict};

/// A stretch of a bucket's (scaled) time. The default is none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lease<W> {
    /// Where it begins.
    pub(crate) start: W,
    /// How much of it, from its front, is used or wasted.
    pub(crate) used: u64,
    /// How long it is.
    pub(crate) length: u64,
}

impl<W: Word> TokenBucket<W> {
    /// How many permits there are at `now`.
    pub(crate) fn available(&self, state: Tat<W>, now: Timestamp) -> u64 {
        let in_use = state.0.minus(W::scaled(now, self.numerator));
        self.capacity.minus(in_use).div_floor(self.cost)
    }

    /// How many permits fit into a lease of this length.
    pub(crate) const fn permits_of(&self, length: u64) -> u64 {
        length / self.cost
    }

    /// Takes `permits` ahead of use: they must be [there](Self::available).
    pub(crate) fn lease(&self, state: &mut Tat<W>, now: Timestamp, permits: u64) -> Lease<W> {
        debug_assert!(permits <= self.available(*state, now), "no debt is lent");
        let start = state.0.max(W::scaled(now, self.numerator));
        let length = self.cost.saturating_mul(permits);
        state.0 = start.plus(W::of(length));
        Lease {
            start,
            used: 0,
            length,
        }
    }

    /// How much of a lease is used after `permits` more of it are, and the answer to who takes
    /// them; `None` where it does not have them.
    #[expect(clippy::inline_always, reason = "measured: see `AtomicCell::check`")]
    #[inline(always)]
    pub(crate) fn spend(
        &self,
        lease: &Lease<W>,
        now: Timestamp,
        permits: u64,
    ) -> Option<(u64, Decision)> {
        let used = self
            .gone(lease, now)
            .saturating_add(self.cost.saturating_mul(permits));
        let rest = lease.length.checked_sub(used)?;
        let decision = Decision {
            verdict: Verdict::Allowed {
                delay: Duration::ZERO,
            },
            limit: self.burst,
            remaining: self.permits_of(rest),
            reset_after: Duration::from_nanos(
                lease
                    .start
                    .plus(W::of(lease.length))
                    .minus(W::scaled(now, self.numerator))
                    .div_ceil(self.numerator),
            ),
        };
        Some((used, decision))
    }

    /// Puts what is left of a lease back. All leases of the bucket have to be put back, at one
    /// time that is none before any at which one of them was used: the bucket's line of bookings
    /// closes up, and a lease that stayed out would reach past its end.
    pub(crate) fn put_back(&self, state: &mut Tat<W>, lease: &Lease<W>, now: Timestamp) {
        let rest = lease.length.saturating_sub(self.gone(lease, now));
        state.0 = state.0.minus(W::of(rest));
    }

    /// How much of a lease is used or wasted at `now`.
    #[inline]
    fn gone(&self, lease: &Lease<W>, now: Timestamp) -> u64 {
        let passed = W::scaled(now, self.numerator).minus(lease.start);
        lease.used.max(passed.div_floor(1))
    }
}
