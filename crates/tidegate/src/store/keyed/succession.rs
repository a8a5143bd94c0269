//! One store takes another's place: what was used stays used.

use core::fmt::Debug;
use core::ops::RangeInclusive;
use std::sync::{Arc, PoisonError};

use super::room::{Room, is_new};
use super::{Keyed, Registered};
use crate::Timestamp;
use crate::key_hash::KeyHash;
use crate::meter::{Meter, Used};
use crate::sync::{Ordering, lock};

/// A store whose usage another one takes over.
pub trait Drain: Debug + Send + Sync {
    /// Takes out every key whose hash's lower half lies in `lo`, with what it has in use.
    fn drain(&self, lo: RangeInclusive<u64>, now: Timestamp, out: &mut Vec<(KeyHash, Used)>);
}

impl<M: Meter> Keyed<M> {
    /// Takes over, key by key as they are asked for, what `old` has in use, under `meter`. For a
    /// store that nobody has asked yet; [`adopt_all`](Self::adopt_all) finishes it.
    pub fn succeed(&self, old: Arc<dyn Drain>, meter: Registered<M>) {
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        *before = Some((old, meter));
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
        *self.before.lock().unwrap_or_else(PoisonError::into_inner) = None;
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
    fn adopt(&self, index: usize, now: Timestamp) {
        let before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((old, meter)) = &*before else { return };
        if lock(&self.shards[index]).adopted {
            return;
        }
        let mut keys = Vec::new();
        old.drain(self.range_of(index), now, &mut keys);
        let mut shard = lock(&self.shards[index]);
        shard.adopted = true;
        for (key, used) in keys {
            let state = meter.meter.assume(used, now);
            if is_new(&meter.meter, &state, now) {
                continue;
            }
            let room = self.room(&shard, key, now);
            if matches!(room, Room::None) {
                self.count_evicted(used.permits_ceil());
                continue;
            }
            self.move_in(&mut shard, room, now);
            shard.insert(key, meter.id, state);
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
    fn drain(&self, lo: RangeInclusive<u64>, now: Timestamp, out: &mut Vec<(KeyHash, Used)>) {
        for (index, shard) in self.shards.iter().enumerate() {
            let range = self.range_of(index);
            if range.start() > lo.end() || range.end() < lo.start() {
                continue;
            }
            if self.adopting.load(Ordering::Acquire) {
                self.adopt(index, now);
            }
            let mut shard = lock(shard);
            let now = shard.advance(now);
            for slot in shard.extract(lo.clone()) {
                self.len.fetch_sub(1, Ordering::Relaxed);
                let used = self.with_meter(slot.meter(), |meter| meter.used(&slot.state, now));
                out.push((slot.hash(), used));
            }
        }
    }
}
