//! What a keyed store counts.

use super::Keyed;
use crate::meter::Meter;
use crate::sync::{AtomicU64, Ordering, lock};

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) evicted_drained: AtomicU64,
    pub(super) evicted_active: AtomicU64,
    pub(super) permits_released: AtomicU64,
    pub(super) overflowed: AtomicU64,
}

/// What a store holds and what it has let go of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreStats {
    /// Keys that are remembered.
    pub keys: usize,
    /// The most that may be.
    pub max_keys: usize,
    /// Keys forgotten that a fresh one is as good as.
    pub evicted_drained: u64,
    /// Keys forgotten at the bound with permits in use.
    pub evicted_active: u64,
    /// The permits that were given away so.
    pub permits_released: u64,
    /// Requests of keys that found no room at all and shared an entry.
    pub overflowed: u64,
}

impl<M: Meter> Keyed<M> {
    /// What is here, and what has been let go of.
    pub fn stats(&self) -> StoreStats {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        StoreStats {
            keys: self.len.load(Ordering::Relaxed),
            max_keys: self.max_keys.load(Ordering::Relaxed),
            evicted_drained: load(&self.counts.evicted_drained),
            evicted_active: load(&self.counts.evicted_active),
            permits_released: load(&self.counts.permits_released),
            overflowed: load(&self.counts.overflowed),
        }
    }

    /// Bytes allocated for entries (without what a state points to). Looks at every shard.
    pub fn allocated_bytes(&self) -> usize {
        size_of_val(&*self.shards)
            + self
                .shards
                .iter()
                .map(|shard| lock(shard).allocated())
                .sum::<usize>()
    }
}
