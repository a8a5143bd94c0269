//! The keys that this node has leases of: a bounded number.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tidegate::Timestamp;

use super::entry::{Entry, Line};
use super::redis_key;
use crate::backoff::random;
use crate::leased::node::LeaseNode;
use crate::leased::terms::LeaseTerms;
use crate::leased::wire::NodeId;

/// Keys are spread over so many locks.
const SHARDS: usize = 32;
/// Where there is no room, so many keys are looked at to find the one that is idle for longest.
const LOOKED_AT: usize = 16;

#[derive(Debug, Default)]
struct Shard {
    by_key: HashMap<Box<str>, Arc<Entry>>,
    /// All of them, in the order in which they are looked at to make room; and some that have left.
    ring: VecDeque<Arc<Entry>>,
}

impl Shard {
    fn holds(&self, entry: &Arc<Entry>) -> bool {
        let held = self.by_key.get(&entry.key);
        held.is_some_and(|held| Arc::ptr_eq(held, entry))
    }

    fn insert(&mut self, entry: Arc<Entry>) {
        if self.ring.len() >= 2 * self.by_key.len() + LOOKED_AT {
            let mut ring = std::mem::take(&mut self.ring);
            ring.retain(|entry| self.holds(entry));
            self.ring = ring;
        }
        self.ring.push_back(Arc::clone(&entry));
        self.by_key.insert(entry.key.clone(), entry);
    }

    /// Takes out the one, of some that were not looked at for longest, that nobody has asked for
    /// for longest.
    fn oust(&mut self) -> Option<Arc<Entry>> {
        let mut looked_at = Vec::with_capacity(LOOKED_AT);
        while looked_at.len() < LOOKED_AT
            && let Some(entry) = self.ring.pop_front()
        {
            if self.holds(&entry) {
                looked_at.push((entry.node.idle_since(), entry));
            }
        }
        let oldest = looked_at.iter().enumerate();
        let (at, _) = oldest.min_by_key(|(_, (since, _))| *since)?;
        let (_, ousted) = looked_at.swap_remove(at);
        self.ring
            .extend(looked_at.into_iter().map(|(_, entry)| entry));
        self.by_key.remove(&ousted.key);
        Some(ousted)
    }
}

/// All keys of a limiter.
#[derive(Debug)]
pub(super) struct Table {
    terms: LeaseTerms,
    name: Box<str>,
    family: Box<str>,
    shards: Vec<RwLock<Shard>>,
    /// Most keys of one shard.
    room: usize,
    keys: AtomicUsize,
    hasher: RandomState,
    /// What somebody asks for, or has been ousted.
    urgent: Mutex<Vec<(Line, Arc<Entry>)>>,
    is_closed: AtomicBool,
    /// The first of these random numbers is the limiter's own, and they go up from there.
    lives: AtomicU64,
}

impl Table {
    pub(super) fn new(terms: LeaseTerms, name: &str, max_keys: usize) -> Self {
        let shards = SHARDS.min(max_keys);
        Self {
            name: name.into(),
            family: terms.family().into(),
            terms,
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
        self.read(key).by_key.get(key).cloned()
    }

    /// Runs `look` on the key, if it is there.
    pub(super) fn with<R>(&self, key: &str, look: impl FnOnce(&Arc<Entry>) -> R) -> Option<R> {
        self.read(key).by_key.get(key).map(look)
    }

    /// The key, which is there from here on; and whether another had to go, which the driver has
    /// to see to.
    pub(super) fn entry(&self, key: &str, now: Timestamp) -> (Arc<Entry>, bool) {
        if let Some(entry) = self.get(key) {
            return (entry, false);
        }
        let mut shard = self.write(key);
        if let Some(entry) = shard.by_key.get(key) {
            return (Arc::clone(entry), false);
        }
        let ousted = if shard.by_key.len() >= self.room {
            shard.oust()
        } else {
            None
        };
        let id = NodeId(self.lives.fetch_add(1, Ordering::Relaxed));
        let node = LeaseNode::new(self.terms, id, now);
        let entry = Arc::new(Entry::new(
            key,
            redis_key(key, &self.name, &self.family),
            node,
        ));
        shard.insert(Arc::clone(&entry));
        drop(shard);
        let Some(ousted) = ousted else {
            self.keys.fetch_add(1, Ordering::Relaxed);
            return (entry, false);
        };
        ousted.oust();
        if ousted.enters(Line::Leaving) {
            self.lock_urgent().push((Line::Leaving, ousted));
        }
        (entry, true)
    }

    /// Takes away a key whose node has left.
    pub(super) fn remove(&self, old: &Arc<Entry>) {
        let mut shard = self.write(&old.key);
        if shard.holds(old) {
            shard.by_key.remove(&old.key);
            self.keys.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Whether this is what the key is held by: one that is not is forgotten.
    pub(super) fn holds(&self, entry: &Arc<Entry>) -> bool {
        self.read(&entry.key).holds(entry)
    }

    /// Has the driver look at a key now; `false` where it will anyway.
    pub(super) fn urge(&self, entry: &Arc<Entry>) -> bool {
        let is_new = entry.enters(Line::Wanted);
        if is_new {
            self.lock_urgent().push((Line::Wanted, Arc::clone(entry)));
        }
        is_new
    }

    /// The keys to be looked at now, and in which line they wait.
    pub(super) fn take_urgent(&self) -> Vec<(Line, Arc<Entry>)> {
        std::mem::take(&mut *self.lock_urgent())
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
            .flat_map(|shard| shard.by_key.values().cloned().collect::<Vec<_>>())
            .collect()
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

    fn lock_urgent(&self) -> MutexGuard<'_, Vec<(Line, Arc<Entry>)>> {
        self.urgent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
