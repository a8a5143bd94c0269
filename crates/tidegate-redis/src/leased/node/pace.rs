//! How long a lease lasts, and when it is refreshed. All times are in nanoseconds.

use tidegate::Timestamp;

use super::nanos;
use crate::leased::terms::{LeaseTerms, surely_within};
use crate::leased::wire::LeaseReply;

/// After a refresh of a window that brought all that was wanted another is made so soon.
const SOONEST: u64 = 5_000_000;

/// For how long after the call there is what this answer brings: less than by Redis's clock.
pub(super) fn lease(terms: &LeaseTerms, reply: &LeaseReply) -> u64 {
    surely_within(match terms.window_micros {
        // The time that Redis has is cut to whole ones.
        Some(_) => reply.ends_micros.saturating_sub(1) * 1000,
        None => nanos(terms.lease()),
    })
}

/// How soon after a call that brought all that was wanted the next one may be made.
pub(super) fn soonest(terms: &LeaseTerms) -> u64 {
    let soonest = nanos(terms.refresh()) / 4;
    match terms.window_micros {
        // What a bucket is asked for too early comes by itself a little later; a window has it.
        Some(_) => soonest.min(SOONEST),
        None => soonest,
    }
}

/// When to call after this answer to what was called at `sent`, which would be `after` that.
pub(super) fn next(
    terms: &LeaseTerms,
    (sent, after): (u64, u64),
    now: Timestamp,
    reply: &LeaseReply,
) -> u64 {
    if terms.window_micros.is_none() {
        return sent + after;
    }
    let ends = reply.ends_micros * 1000;
    let after = if reply.remaining == 0 {
        // Only what others give back can be had: less often, but still as one of them.
        after.max((ends / 8).min(nanos(terms.membership()) / 2))
    } else {
        after
    };
    // By then the next window has begun for Redis, too.
    (sent + after).min(now.as_nanos() + ends)
}

/// A random part of `nanos`.
pub(super) fn part(nanos: u64, chance: u64) -> u64 {
    ((u128::from(nanos) * u128::from(chance)) >> 64) as u64
}
