//! The keys that this node has leases of: a bounded number.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tidegate::Timestamp;
use tokio::sync::Notify;

use super::redis_key;
use crate::backoff::random;
use crate::leased::node::LeaseNode;
use crate::leased::terms::LeaseTerms;
use crate::leased::wire::NodeId;

/// Keys are spread over so many locks.
const SHARDS: usize = 32;
/// Where there is no room, so many keys are looked at to find the one that is asked for least.
const LOOKED_AT: usize = 16;
const NEVER: u64 = u64::MAX;

/// One key.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: Box<str>,
    pub(super) redis_key: Vec<u8>,
    pub(super) node: LeaseNode,
    /// An answer has come, or none in time.
    pub(super) answered: Notify,
    /// Whether it waits to be looked at before its time.
    is_urgent: AtomicBool,
    /// When it is to be looked at, nanoseconds: what the driver's queue says otherwise is old.
    due: AtomicU64,
}

impl Entry {
    pub(super) fn set_due(&self, due: Timestamp) {
        self.due.store(due.as_nanos(), Ordering::Relaxed);
    }

    pub(super) fn is_due_at(&self, time: Timestamp) -> bool {
        self.due.load(Ordering::Relaxed) == time.as_nanos()
    }
}

type Shard = HashMap<Box<str>, Arc<Entry>>;

/// All keys of a limiter.
#[derive(Debug)]
pub(super) struct Table {
    terms: LeaseTerms,
    name: Box<str>,
    shards: Vec<RwLock<Shard>>,
    /// Most keys of one shard.
    room: usize,
    keys: AtomicUsize,
    hasher: RandomState,
    urgent: Mutex<Vec<Arc<Entry>>>,
    is_closed: AtomicBool,
    /// The first of these random numbers is the limiter's own, and they go up from there.
    lives: AtomicU64,
}

impl Table {
    pub(super) fn new(terms: LeaseTerms, name: &str, max_keys: usize) -> Self {
        let shards = SHARDS.min(max_keys);
        Self {
            terms,
            name: name.into(),
            shards: (0..shards).map(|_| RwLock::default()).collect(),
            room: max_keys / shards,
            keys: AtomicUsize::new(0),
            hasher: RandomState::new(),
            urgent: Mutex::default(),
            is_closed: AtomicBool::new(false),
            lives: AtomicU64::new(random()),
        }
    }

    pub(super) const fn terms(&self) -> &LeaseTerms {
        &self.terms
    }

    pub(super) fn len(&self) -> usize {
        self.keys.load(Ordering::Relaxed)
    }

    pub(super) fn get(&self, key: &str) -> Option<Arc<Entry>> {
        self.read(key).get(key).cloned()
    }

    /// Runs `look` on the key, if it is there.
    pub(super) fn with<R>(&self, key: &str, look: impl FnOnce(&Arc<Entry>) -> R) -> Option<R> {
        self.read(key).get(key).map(look)
    }

    /// The key, which is there from here on.
    pub(super) fn entry(&self, key: &str, now: Timestamp) -> Arc<Entry> {
        if let Some(entry) = self.get(key) {
            return entry;
        }
        let mut shard = self.write(key);
        if let Some(entry) = shard.get(key) {
            return Arc::clone(entry);
        }
        if shard.len() >= self.room {
            let near = shard.values().take(LOOKED_AT);
            let least = near.min_by_key(|entry| entry.node.demand()).cloned();
            if let Some(entry) = least {
                shard.remove(&entry.key);
                self.keys.fetch_sub(1, Ordering::Relaxed);
            }
        }
        self.insert(&mut shard, key, now)
    }

    /// Takes away a key whose node has left. Where somebody asked for it meanwhile there is a new
    /// one.
    pub(super) fn replace(&self, old: &Arc<Entry>, now: Timestamp) -> Option<Arc<Entry>> {
        let mut shard = self.write(&old.key);
        if !shard
            .get(&old.key)
            .is_some_and(|entry| Arc::ptr_eq(entry, old))
        {
            return None;
        }
        shard.remove(&old.key);
        self.keys.fetch_sub(1, Ordering::Relaxed);
        let is_wanted = old.node.is_wanted() && !self.is_closed();
        is_wanted.then(|| self.insert(&mut shard, &old.key, now))
    }

    /// Whether this is what the key is held by: one that is not is forgotten.
    pub(super) fn holds(&self, entry: &Arc<Entry>) -> bool {
        let held = self.get(&entry.key);
        held.is_some_and(|held| Arc::ptr_eq(&held, entry))
    }

    /// Has the driver look at a key now; `false` where it will anyway.
    pub(super) fn urge(&self, entry: &Arc<Entry>) -> bool {
        let is_new = !entry.is_urgent.swap(true, Ordering::AcqRel);
        if is_new {
            self.lock_urgent().push(Arc::clone(entry));
        }
        is_new
    }

    /// The keys to be looked at now.
    pub(super) fn take_urgent(&self) -> Vec<Arc<Entry>> {
        let urgent = std::mem::take(&mut *self.lock_urgent());
        for entry in &urgent {
            entry.is_urgent.store(false, Ordering::Release);
        }
        urgent
    }

    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// All of them, in no order.
    pub(super) fn all(&self) -> Vec<Arc<Entry>> {
        let shards = self.shards.iter();
        let locked = shards.map(|shard| shard.read().unwrap_or_else(PoisonError::into_inner));
        locked
            .flat_map(|shard| shard.values().cloned().collect::<Vec<_>>())
            .collect()
    }

    fn insert(&self, shard: &mut Shard, key: &str, now: Timestamp) -> Arc<Entry> {
        let id = NodeId(self.lives.fetch_add(1, Ordering::Relaxed));
        let entry = Arc::new(Entry {
            key: key.into(),
            redis_key: redis_key(key, &self.name, &self.terms),
            node: LeaseNode::new(self.terms, id, now),
            answered: Notify::new(),
            is_urgent: AtomicBool::new(false),
            due: AtomicU64::new(NEVER),
        });
        shard.insert(key.into(), Arc::clone(&entry));
        self.keys.fetch_add(1, Ordering::Relaxed);
        entry
    }

    fn shard(&self, key: &str) -> &RwLock<Shard> {
        &self.shards[self.hasher.hash_one(key) as usize % self.shards.len()]
    }

    // What these guard is changed in one step each, so whatever happened to an earlier holder
    // left nothing half-done.

    fn read(&self, key: &str) -> RwLockReadGuard<'_, Shard> {
        self.shard(key)
            .read()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, key: &str) -> RwLockWriteGuard<'_, Shard> {
        self.shard(key)
            .write()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_urgent(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Entry>>> {
        self.urgent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
