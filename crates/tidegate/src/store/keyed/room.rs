//! Room for a new key: below the bound, or in the place of an entry that is let go of.

use super::Keyed;
use crate::Timestamp;
use crate::key_hash::KeyHash;
use crate::meter::{Meter, Used};
use crate::store::shard::{Shard, Slot};
use crate::sync::{AtomicUsize, Ordering};
use std::sync::PoisonError;

/// A full shard is cleared of drained keys, instead of grown, if this part of it is drained.
const WORTH_PURGING: usize = 8;

/// Where a key that is not there yet would go.
pub(super) enum Room<'a> {
    Free(Place<'a>),
    Victim(usize),
    None,
}

/// A place below the bound, given up again unless it is kept: also where the caller panics.
pub(super) struct Place<'a> {
    len: &'a AtomicUsize,
}

impl Place<'_> {
    fn keep(self) {
        core::mem::forget(self);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.len.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<M: Meter> Keyed<M> {
    /// Reserves a place below the bound, or finds the entry whose place a new key takes.
    pub(super) fn room(&self, shard: &Shard<M::State>, key: KeyHash, now: Timestamp) -> Room<'_> {
        let before = self.len.fetch_add(1, Ordering::Relaxed);
        let place = Place { len: &self.len };
        if before < self.max_keys.load(Ordering::Relaxed) {
            return Room::Free(place);
        }
        drop(place);
        self.victim(shard, key, now)
            .map_or(Room::None, Room::Victim)
    }

    /// Whether a new key would find room now.
    pub(super) fn has_room(&self, shard: &Shard<M::State>, key: KeyHash, now: Timestamp) -> bool {
        self.len.load(Ordering::Relaxed) < self.max_keys.load(Ordering::Relaxed)
            || self.victim(shard, key, now).is_some()
    }

    /// Among the entries near a key: a drained one, or the one that gives away fewest permits.
    fn victim(&self, shard: &Shard<M::State>, key: KeyHash, now: Timestamp) -> Option<usize> {
        let meters = self.meters.read().unwrap_or_else(PoisonError::into_inner);
        let mut best = None;
        for at in shard.near(key) {
            let slot = shard.slot(at);
            let meter = &meters.by_id[slot.meter() as usize].meter;
            match meter.at_stake(&slot.state, now) {
                Some(0) => return Some(at),
                Some(stake) if best.is_none_or(|(least, _)| stake < least) => {
                    best = Some((stake, at));
                }
                _ => {}
            }
        }
        best.map(|(_, at)| at)
    }

    pub(super) fn count_evicted(&self, stake: u64) {
        if stake == 0 {
            self.counts.evicted_drained.fetch_add(1, Ordering::Relaxed);
        } else {
            self.counts.evicted_active.fetch_add(1, Ordering::Relaxed);
            self.counts
                .permits_released
                .fetch_add(stake, Ordering::Relaxed);
        }
    }

    /// Drops the keys of a full shard that are as good as new, if there are enough of them.
    pub(super) fn purge(&self, shard: &mut Shard<M::State>, now: Timestamp) {
        let meters = self.meters.read().unwrap_or_else(PoisonError::into_inner);
        let drained = |slot: &Slot<M::State>| {
            is_new(&meters.by_id[slot.meter() as usize].meter, &slot.state, now)
        };
        let before = shard.len();
        if shard.count(drained) >= before.div_ceil(WORTH_PURGING).max(1) {
            shard.retain(|slot| !drained(slot));
            let purged = before - shard.len();
            self.len.fetch_sub(purged, Ordering::Relaxed);
            self.counts
                .evicted_drained
                .fetch_add(purged as u64, Ordering::Relaxed);
        }
    }

    /// Makes room where it was found. Not for [`Room::None`].
    pub(super) fn move_in(&self, shard: &mut Shard<M::State>, room: Room<'_>, now: Timestamp) {
        match room {
            Room::Free(place) => place.keep(),
            Room::Victim(at) => {
                let victim = shard.remove(at);
                self.count_evicted(self.at_stake(&victim, now).unwrap_or(0));
                self.shrink(shard, victim.hash(), now);
            }
            Room::None => {}
        }
    }

    /// Where the bound was lowered: lets go of one entry more than a new key needs, each time.
    fn shrink(&self, shard: &mut Shard<M::State>, near: KeyHash, now: Timestamp) {
        if self.len.load(Ordering::Relaxed) <= self.max_keys.load(Ordering::Relaxed) {
            return;
        }
        if let Some(at) = self.victim(shard, near, now) {
            let victim = shard.remove(at);
            self.len.fetch_sub(1, Ordering::Relaxed);
            self.count_evicted(self.at_stake(&victim, now).unwrap_or(0));
        }
    }
}

/// Whether nobody would ever notice if this state were forgotten: nothing of it is in use, as with
/// a new key. A pay-later limit whose new keys have nothing stored is never so: a key that is
/// forgotten would begin to store anew.
pub(super) fn is_new<M: Meter>(meter: &M, state: &M::State, now: Timestamp) -> bool {
    meter.used(state, now) == Used::NOTHING && meter.used(&meter.fresh(now), now) == Used::NOTHING
}
