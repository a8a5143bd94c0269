//! One store takes another's place: what was used stays used.

use core::any::Any;
use core::fmt::Debug;
use core::ops::RangeInclusive;
use std::sync::{Arc, PoisonError};

use super::room::{Room, is_new};
use super::{Keyed, Registered};
use crate::enforce::{Enforce, Receipt};
use crate::key_hash::KeyHash;
use crate::meter::{Meter, Used};
use crate::on_change::{OnChange, limit_of};
use crate::store::shard::Slot;
use crate::sync::{Ordering, lock};
use crate::{Ask, Decision, Timestamp};

/// What a key takes along from one store to another.
#[derive(Clone, Copy, Debug)]
pub struct Drained {
    key: KeyHash,
    used: Used,
    /// The most that its limit lets through at once.
    limit: u64,
}

/// A store whose usage another one takes over.
pub trait Drain: Debug + Send + Sync {
    /// Takes out every key whose hash's lower half lies in `lo`, with what it has in use at `now`.
    fn drain(&self, lo: RangeInclusive<u64>, now: Timestamp, out: &mut Vec<Drained>);

    /// Says which limit it is that takes this store over: who still asks here is answered there.
    fn hand_over_to(&self, after: Arc<dyn Enforce>);

    /// The store itself: one of the same kind can hand over its states as they are.
    fn as_any(&self) -> &dyn Any;
}

/// The store before, the meter that what comes from there is put under, and since when.
#[derive(Debug)]
pub(super) struct Predecessor<M> {
    store: Arc<dyn Drain>,
    meter: Registered<M>,
    since: Timestamp,
    on_change: OnChange,
}

impl<M: Meter> Keyed<M> {
    /// Takes over, key by key as they are asked for, what `old` has in use at `now`, under
    /// `meter`. For a store that nobody has asked yet; [`adopt_all`](Self::adopt_all) finishes it.
    /// `on_change` says what stays of it.
    pub fn succeed(
        &self,
        old: Arc<dyn Drain>,
        meter: Registered<M>,
        now: Timestamp,
        on_change: OnChange,
    ) {
        let mut before = lock(&self.before);
        *before = Some(Predecessor {
            store: old,
            meter,
            since: now,
            on_change,
        });
        for shard in &self.shards {
            lock(shard).adopted = false;
        }
        self.adopting.store(true, Ordering::Release);
    }

    /// Takes over what is left of the store before this one, a shard at a time.
    pub fn adopt_all(&self, now: Timestamp) {
        for index in 0..self.shards.len() {
            self.adopt(index, now);
        }
        self.adopting.store(false, Ordering::Release);
        *lock(&self.before) = None;
    }

    /// Takes over what the store before this one has of a key, if that is still to be done.
    ///
    /// Whoever [holds](Self::hold) several stores calls this first, for each, and holds none: this
    /// waits for the old store's locks, and who has those may be waiting for one that is held.
    #[inline]
    pub fn prepare(&self, key: KeyHash, now: Timestamp) {
        if self.adopting.load(Ordering::Acquire) {
            self.adopt(self.index_of(key), now);
        }
    }

    /// Takes over a shard's part of the store before this one. Holds no shard of this store while
    /// it waits for one of the old.
    #[cold]
    pub(super) fn adopt(&self, index: usize, now: Timestamp) {
        let before = lock(&self.before);
        let Some(before) = &*before else { return };
        if lock(&self.shards[index]).adopted {
            return;
        }
        let arrivals = self.arrivals(before, self.range_of(index), now);
        let mut shard = lock(&self.shards[index]);
        shard.adopted = true;
        for slot in arrivals {
            if self.with_meter(slot.meter(), |meter| is_new(meter, &slot.state, now)) {
                continue;
            }
            let room = self.room(&shard, slot.hash(), now);
            if matches!(room, Room::None) {
                self.count_evicted(self.at_stake(&slot, now).unwrap_or(0));
                continue;
            }
            self.move_in(&mut shard, room, now);
            shard.insert(slot.hash(), slot.meter(), slot.state);
        }
    }

    /// What comes from the store before this one, under numbers of this one. The old numbers
    /// hold until they were replaced, and no longer, whenever the keys are taken over.
    fn arrivals(
        &self,
        before: &Predecessor<M>,
        range: RangeInclusive<u64>,
        now: Timestamp,
    ) -> Vec<Slot<M::State>> {
        let since = before.since.min(now);
        let Predecessor {
            store,
            meter,
            on_change,
            ..
        } = before;
        if let Some(old) = store.as_any().downcast_ref::<Self>() {
            let mut slots = old.take_out(range, now);
            for slot in &mut slots {
                old.with_meter(slot.meter(), |was| {
                    self.put_under(slot, was, meter, since, *on_change);
                });
            }
            return slots;
        }
        let mut keys = Vec::new();
        store.drain(range, since, &mut keys);
        let slot = |Drained { key, used, limit }| {
            let state = on_change.assume(used, limit, &meter.meter, since);
            Slot::new(key, meter.id, state)
        };
        keys.into_iter().map(slot).collect()
    }

    /// Puts a state that was under the numbers of another store under the same ones here, or else
    /// under `meter`.
    fn put_under(
        &self,
        slot: &mut Slot<M::State>,
        was: &M,
        meter: &Registered<M>,
        since: Timestamp,
        on_change: OnChange,
    ) {
        let meters = self.meters.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = meters.ids.get(was) {
            slot.set_meter(*same);
            return;
        }
        on_change.migrate(was, &meter.meter, &mut slot.state, since);
        slot.set_meter(meter.id);
    }

    /// Takes out every key whose hash's lower half lies in `lo`.
    fn take_out(&self, lo: RangeInclusive<u64>, now: Timestamp) -> Vec<Slot<M::State>> {
        let mut left = Vec::new();
        for (index, shard) in self.shards.iter().enumerate() {
            let range = self.range_of(index);
            if range.start() > lo.end() || range.end() < lo.start() {
                continue;
            }
            if self.adopting.load(Ordering::Acquire) {
                self.adopt(index, now);
            }
            let mut shard = lock(shard);
            // Whoever comes here from now on would find every key new.
            shard.handed_over = true;
            let mut slots = shard.extract(lo.clone());
            drop(shard);
            self.len.fetch_sub(slots.len(), Ordering::Relaxed);
            left.append(&mut slots);
        }
        left
    }

    /// The limit that takes this store over, if one does. It lets go of this one when it has
    /// adopted all.
    pub fn successor(&self) -> Option<Arc<dyn Enforce>> {
        self.after.get().map(Arc::clone)
    }

    /// Asks the limit that has taken this store over.
    #[cold]
    pub(super) fn check_after(
        &self,
        key: KeyHash,
        now: Timestamp,
        ask: &Ask,
    ) -> (Decision, Option<Receipt>) {
        match self.successor() {
            Some(after) => after.check(key, now, ask),
            None => (Decision::MOVED, None),
        }
    }

    #[cold]
    pub(super) fn peek_after(&self, key: KeyHash, now: Timestamp, ask: &Ask) -> Decision {
        match self.successor() {
            Some(after) => after.peek(key, now, ask),
            None => Decision::MOVED,
        }
    }

    /// The lower halves of the hashes that belong to a shard.
    fn range_of(&self, index: usize) -> RangeInclusive<u64> {
        // Shards are a power of two: at least 2^48 hashes each.
        let width = (1_u128 << 64) / self.shards.len() as u128;
        let first = index as u128 * width;
        first as u64..=(first + (width - 1)) as u64
    }
}

impl<M: Meter> Drain for Keyed<M> {
    fn drain(&self, lo: RangeInclusive<u64>, now: Timestamp, out: &mut Vec<Drained>) {
        for slot in self.take_out(lo, now) {
            out.push(self.with_meter(slot.meter(), |meter| Drained {
                key: slot.hash(),
                used: meter.used(&slot.state, now),
                limit: limit_of(meter, now),
            }));
        }
    }

    fn hand_over_to(&self, after: Arc<dyn Enforce>) {
        // A store is taken over once; who would take it over again finds nothing.
        let _first = self.after.set(after);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
