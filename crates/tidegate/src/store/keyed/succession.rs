//! One store takes another's place: what was used stays used.

use core::fmt::Debug;
use core::ops::RangeInclusive;
use std::sync::{Arc, PoisonError};

use super::room::{Room, is_new};
use super::{Keyed, Registered};
use crate::Timestamp;
use crate::key_hash::KeyHash;
use crate::meter::{Meter, Used};
use crate::store::shard::Shard;
use crate::sync::{Ordering, lock};

/// A store whose usage another one takes over.
pub trait Drain: Debug + Send + Sync {
    /// Takes out every key whose hash's lower half lies in `lo`, with what it has in use.
    fn drain(&self, lo: RangeInclusive<u64>, now: Timestamp, out: &mut Vec<(KeyHash, Used)>);
}

impl<M: Meter> Keyed<M> {
    /// Takes over, key by key as they are asked for, what `old` has in use, under `meter`.
    /// [`adopt_all`](Self::adopt_all) finishes it.
    pub fn succeed(&self, old: Arc<dyn Drain>, meter: Registered<M>) {
        let mut before = self.before.write().unwrap_or_else(PoisonError::into_inner);
        *before = Some((old, meter));
        for shard in &self.shards {
            lock(shard).adopted = false;
        }
    }

    /// Takes over what is left of the store before this one, a shard at a time.
    pub fn adopt_all(&self, now: Timestamp) {
        for (index, shard) in self.shards.iter().enumerate() {
            self.adopt(&mut lock(shard), index, now);
        }
        *self.before.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Takes over this shard's part of the store before this one.
    #[cold]
    pub(super) fn adopt(&self, shard: &mut Shard<M::State>, index: usize, now: Timestamp) {
        if shard.adopted {
            return;
        }
        shard.adopted = true;
        let before = self.before.read().unwrap_or_else(PoisonError::into_inner);
        let Some((old, meter)) = &*before else { return };
        let mut keys = Vec::new();
        old.drain(self.range_of(index), now, &mut keys);
        for (key, used) in keys {
            let state = meter.meter.assume(used, now);
            if is_new(&meter.meter, &state, now) {
                continue;
            }
            let room = self.room(shard, key, now);
            if matches!(room, Room::None) {
                self.count_evicted(used.permits_ceil());
                continue;
            }
            self.move_in(shard, room, now);
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
            let mut shard = lock(shard);
            self.adopt(&mut shard, index, now);
            let now = shard.advance(now);
            for slot in shard.extract(lo.clone()) {
                self.len.fetch_sub(1, Ordering::Relaxed);
                let used = self.with_meter(slot.meter(), |meter| meter.used(&slot.state, now));
                out.push((slot.hash(), used));
            }
        }
    }
}
