//! Who is inside of a store whose permits come back: how many of a key, and when nobody is.

use core::task::Waker;
use std::sync::PoisonError;

use super::Keyed;
use crate::Timestamp;
use crate::key_hash::KeyHash;
use crate::meter::{Meter, State};
use crate::queue::wake;
use crate::store::shard::Shard;
use crate::store::vacated::{Vacate, Vacating};
use crate::sync::{Mutex, MutexGuard, lock};

impl<M: Meter> Keyed<M> {
    /// How many permits of a key are out; of one that shares an entry, those of all that do. 0 of
    /// a limit whose permits do not come back.
    pub fn in_use(&self, key: KeyHash) -> u64 {
        if !M::State::HAS_LINES {
            return 0;
        }
        let (mut shard, now) = self.enter(key, Timestamp::EPOCH);
        let Some(slot) = self.slot_of(&mut shard, key, now) else {
            return 0;
        };
        self.with_meter(slot.meter(), |meter| meter.used(&slot.state, now))
            .permits_ceil()
    }

    /// How many permits are out, of all keys; 0 of a limit whose permits do not come back. Looks at
    /// one shard after the other.
    pub fn all_in_use(&self) -> u64 {
        if !M::State::HAS_LINES {
            return 0;
        }
        let of_shard = |shard: &Mutex<Shard<M::State>>| {
            let shard = lock(shard);
            let meters = self.meters.read().unwrap_or_else(PoisonError::into_inner);
            let used = shard.slots().map(|slot| {
                let meter = &meters.by_id[slot.meter() as usize].meter;
                meter.used(&slot.state, Timestamp::EPOCH).permits_ceil()
            });
            used.sum::<u64>()
        };
        self.shards.iter().map(of_shard).sum()
    }

    /// Lets go of a shard that a permit has come back to, and wakes those who got it; and, if
    /// nobody is inside now, those who wait for that.
    pub(super) fn leave_shard(
        &self,
        mut shard: MutexGuard<'_, Shard<M::State>>,
        woken: Vec<Waker>,
    ) {
        let vacated = shard.vacating && self.is_vacant(&shard);
        if vacated {
            shard.vacating = false;
        }
        drop(shard);
        wake(woken);
        if vacated {
            Vacating::one_less(&self.vacating);
        }
    }

    fn is_vacant(&self, shard: &Shard<M::State>) -> bool {
        let meters = self.meters.read().unwrap_or_else(PoisonError::into_inner);
        let mut slots = shard.slots();
        slots.all(|slot| {
            let meter = &meters.by_id[slot.meter() as usize].meter;
            meter.at_stake(&slot.state, Timestamp::EPOCH).is_some()
        })
    }
}

impl<M: Meter> Vacate for Keyed<M> {
    fn vacating(&self) -> &Mutex<Vacating> {
        &self.vacating
    }

    fn mark(&self) -> usize {
        if !M::State::HAS_LINES {
            return 0;
        }
        let mut marked = 0;
        for shard in &self.shards {
            let mut shard = lock(shard);
            shard.vacating = !self.is_vacant(&shard);
            marked += usize::from(shard.vacating);
        }
        marked
    }
}
