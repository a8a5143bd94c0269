//! What many answers say alike, written once and then copied: `RateLimit-Policy`, and the body
//! of a refusal.
//!
//! Both follow from the limits that a request met. A limit is told by where its numbers stand,
//! which is the same as long as a version of the policy lives; so phrases belong to one version.

use std::cell::RefCell;
use std::ptr;

use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use smallvec::SmallVec;
use tidegate::Retry;
use tidegate_http::{Problem, headers};
use tidegate_node::Applied;

/// The phrases of one version of the policy.
#[derive(Debug, Default)]
pub(crate) struct Phrases {
    policies: Slots<Limits, Option<HeaderValue>>,
    refusals: Slots<Refused, Refusal>,
}

/// Limits, by where their numbers stand.
type Limits = SmallVec<[usize; 4]>;

fn address(applied: &Applied<'_>) -> usize {
    ptr::from_ref(applied.algorithm).addr()
}

/// All that the body of a refusal says.
#[derive(Debug, PartialEq, Eq)]
struct Refused {
    by: Limits,
    told: usize,
    seconds: Option<u64>,
    on_release: bool,
}

/// A refusal, as it goes out.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) body: Bytes,
    pub(crate) retry_after: Option<HeaderValue>,
}

impl Phrases {
    /// The status of a refusal.
    pub(crate) const REFUSED: StatusCode = StatusCode::TOO_MANY_REQUESTS;

    /// `RateLimit-Policy` of a request that met these limits.
    pub(crate) fn policy(&self, applied: &[Applied<'_>]) -> Option<HeaderValue> {
        let limits: Limits = applied.iter().map(address).collect();
        let slot = *limits.first()?;
        self.policies.get(slot, limits, || {
            headers::rate_limit_policy(applied.iter().map(|one| (one.limit.name(), one.algorithm)))
        })
    }

    /// The refusal of a request that met these limits, `told` among them.
    pub(crate) fn refusal(&self, applied: &[Applied<'_>], told: &Applied<'_>) -> Refusal {
        let denied = || applied.iter().filter(|one| one.decision.is_denied());
        let seconds = headers::retry_after_seconds(&told.decision);
        let refused = Refused {
            by: denied().map(address).collect(),
            told: address(told),
            seconds,
            on_release: told.decision.retry() == Some(Retry::OnRelease),
        };
        let slot = refused.told ^ seconds.unwrap_or(0) as usize;
        self.refusals.get(slot, refused, || {
            let names = denied().map(|one| one.limit.name());
            let name = told.limit.name();
            let problem = Problem::quota_exceeded(Self::REFUSED, names, name, &told.decision);
            Refusal {
                body: Bytes::from(problem.to_json()),
                retry_after: headers::retry_after(&told.decision),
            }
        })
    }
}

/// The newest of each slot: two keys that share one take turns.
#[derive(Debug)]
struct Slots<K, V>([RefCell<Option<(K, V)>>; 16]);

impl<K, V> Default for Slots<K, V> {
    fn default() -> Self {
        Self(Default::default())
    }
}

impl<K: PartialEq, V: Clone> Slots<K, V> {
    /// The value of `key`, which is kept in a slot that follows from `hint`; made if it is not
    /// there.
    fn get(&self, hint: usize, key: K, make: impl FnOnce() -> V) -> V {
        // Addresses differ above their lowest bits.
        let slot = &self.0[(hint ^ (hint >> 4)) % self.0.len()];
        let mut slot = slot.borrow_mut();
        match &*slot {
            Some((known, value)) if *known == key => value.clone(),
            _ => slot.insert((key, make())).1.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_gives_what_was_made_for_the_key_and_nothing_else() {
        let slots = Slots::default();
        let mut made = 0;
        for (hint, key) in [
            (16, "a"),
            (16, "a"),
            (16, "b"),
            (16, "a"),
            (32, "c"),
            (16, "a"),
        ] {
            let value = slots.get(hint, key, || {
                made += 1;
                key.to_uppercase()
            });
            assert_eq!(value, key.to_uppercase());
        }
        assert_eq!(made, 4);
    }
}
