//! The keys that a node has places of, a bounded number. One leaves when nothing is held, owed or
//! known of it, or when it is idle and another needs the room.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tokio::sync::Notify;

use super::key::Key;

/// Where there is no room, so many keys are looked at to find one that is idle.
const LOOKED_AT: usize = 16;

#[derive(Debug)]
pub(super) struct Table {
    keys: RwLock<Keys>,
    max_keys: usize,
    emptied: Notify,
}

#[derive(Debug, Default)]
struct Keys {
    by_name: HashMap<Box<[u8]>, Arc<Key>>,
    /// All of them, in the order in which they are looked at to make room; and some that have left.
    ring: VecDeque<Arc<Key>>,
}

impl Keys {
    fn holds(&self, key: &Arc<Key>) -> bool {
        let held = self.by_name.get(&key.name);
        held.is_some_and(|held| Arc::ptr_eq(held, key))
    }

    fn insert(&mut self, key: Arc<Key>) {
        if self.ring.len() >= 2 * self.by_name.len() + LOOKED_AT {
            let mut ring = std::mem::take(&mut self.ring);
            ring.retain(|key| self.holds(key));
            self.ring = ring;
        }
        self.ring.push_back(Arc::clone(&key));
        self.by_name.insert(key.name.clone(), key);
    }

    /// Takes out the first that is idle of those that have not been looked at for longest.
    fn oust(&mut self) -> Option<Arc<Key>> {
        let mut looked_at = 0;
        while looked_at < LOOKED_AT.min(self.by_name.len())
            && let Some(key) = self.ring.pop_front()
        {
            if !self.holds(&key) {
                continue;
            }
            if key.is_idle() {
                self.by_name.remove(&key.name);
                return Some(key);
            }
            self.ring.push_back(key);
            looked_at += 1;
        }
        None
    }
}

/// A key that was there, or has been made: then somebody has to drive it.
#[derive(Debug)]
pub(super) enum Found {
    Known(Arc<Key>),
    Made(Arc<Key>),
}

impl Table {
    pub(super) fn new(max_keys: usize) -> Self {
        Self {
            keys: RwLock::default(),
            max_keys,
            emptied: Notify::new(),
        }
    }

    /// The key, made if it is not there; `None` where there is no room.
    pub(super) fn find(&self, name: &[u8], make: impl FnOnce() -> Key) -> Option<Found> {
        if let Some(key) = self.read().by_name.get(name) {
            return Some(Found::Known(Arc::clone(key)));
        }
        let mut keys = self.write();
        if let Some(key) = keys.by_name.get(name) {
            return Some(Found::Known(Arc::clone(key)));
        }
        let ousted = if keys.by_name.len() < self.max_keys {
            None
        } else {
            Some(keys.oust()?)
        };
        let key = Arc::new(make());
        keys.insert(Arc::clone(&key));
        drop(keys);
        if let Some(ousted) = ousted {
            // Its task says goodbye, and ends.
            ousted.leave();
        }
        Some(Found::Made(key))
    }

    /// Lets a key go if it is idle.
    pub(super) fn forget(&self, key: &Arc<Key>) -> bool {
        let mut keys = self.write();
        let goes = key.leave_if_idle();
        if goes {
            self.take_out(&mut keys, key);
        }
        goes
    }

    /// Lets a key go that nobody drives any more.
    pub(super) fn remove(&self, gone: &Arc<Key>) {
        self.take_out(&mut self.write(), gone);
    }

    fn take_out(&self, keys: &mut Keys, gone: &Arc<Key>) {
        if keys.holds(gone) {
            keys.by_name.remove(&gone.name);
        }
        if keys.by_name.is_empty() {
            self.emptied.notify_waiters();
        }
    }

    /// Has each key give back what it only keeps.
    pub(super) fn leave(&self) {
        // Not while the table is locked: a key's task may want it.
        let all: Vec<_> = self.read().by_name.values().cloned().collect();
        for key in all {
            key.leave();
        }
    }

    /// Until there is no key.
    pub(super) async fn until_empty(&self) {
        loop {
            let emptied = self.emptied.notified();
            tokio::pin!(emptied);
            emptied.as_mut().enable();
            if self.len() == 0 {
                return;
            }
            emptied.await;
        }
    }

    pub(super) fn len(&self) -> usize {
        self.read().by_name.len()
    }

    // Each change leaves nothing half-done.

    fn read(&self) -> RwLockReadGuard<'_, Keys> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Keys> {
        self.keys.write().unwrap_or_else(PoisonError::into_inner)
    }
}
