//! The entry that keys share which found no room among entries that must not be forgotten.
//!
//! Only gates come to this: what a meter counts can be let go of. A key that has permits out of
//! this entry, or waits for some, goes on being counted here, also when there is room again: with
//! an entry of its own beside it, it would have its places twice.

use std::collections::HashMap;

use super::{Keyed, Registered};
use crate::enforce::Receipt;
use crate::key_hash::KeyHash;
use crate::meter::Meter;
use crate::store::shard::{Shard, Slot};
use crate::sync::Ordering;
use crate::{Ask, Decision, Timestamp};

/// One shard's shared entry.
#[derive(Debug, Default)]
pub(in crate::store) struct Overflow<S> {
    pub(in crate::store) slot: Slot<S>,
    /// How many guards each key has from here. Each is one that is alive somewhere: there are no
    /// more than the limit has places.
    pub(in crate::store) guards: Guards,
}

/// Guards of each key.
pub(in crate::store) type Guards = HashMap<KeyHash, u64>;

impl<S> Overflow<S> {
    pub(in crate::store) fn has_guards_of(&self, key: KeyHash) -> bool {
        self.guards.contains_key(&key)
    }

    /// One guard of a key less.
    pub(super) fn left(&mut self, key: KeyHash) {
        if let Some(guards) = self.guards.get_mut(&key) {
            *guards -= 1;
            if *guards == 0 {
                self.guards.remove(&key);
            }
        }
    }
}

impl<M: Meter> Keyed<M> {
    /// [`hold`](Self::hold) for a key that shares an entry.
    pub(super) fn hold_overflow(
        &self,
        shard: &mut Shard<M::State>,
        meter: &Registered<M>,
        key: KeyHash,
        now: Timestamp,
        ask: &Ask,
        mut rest: impl FnMut(Decision) -> bool,
    ) -> Option<Receipt> {
        self.counts.overflowed.fetch_add(1, Ordering::Relaxed);
        let overflow = shard.overflow.get_or_insert_with(|| {
            let slot = Slot::new(KeyHash { hi: 1, lo: 0 }, meter.id, meter.meter.fresh(now));
            Box::new(Overflow {
                slot,
                guards: Guards::new(),
            })
        });
        let slot = &mut overflow.slot;
        self.bring_up(slot, meter, now);
        let plan = meter.meter.plan(&slot.state, now, ask);
        let agreed = rest(plan.decision);
        let change = plan.change.filter(|_| agreed)?;
        let taken = meter.meter.commit(&mut slot.state, change);
        if meter.meter.at_stake(&slot.state, now).is_none() {
            *overflow.guards.entry(key).or_default() += 1;
        }
        Some(Receipt::new(taken, key, self.id, true))
    }
}
