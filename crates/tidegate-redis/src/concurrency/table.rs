//! The keys that a node has places of, a bounded number. One leaves when nothing is held, owed or
//! known of it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, PoisonError, RwLock};

use super::key::Key;

#[derive(Debug)]
pub(super) struct Table {
    keys: RwLock<HashMap<Box<[u8]>, Arc<Key>>>,
    max_keys: usize,
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
        }
    }

    /// The key, made if it is not there; `None` where there is no room.
    pub(super) fn find(&self, name: &[u8], make: impl FnOnce() -> Key) -> Option<Found> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = keys.get(name) {
            return Some(Found::Known(Arc::clone(key)));
        }
        drop(keys);
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        let has_room = keys.len() < self.max_keys;
        match keys.entry(name.into()) {
            Entry::Occupied(known) => Some(Found::Known(Arc::clone(known.get()))),
            Entry::Vacant(room) if has_room => {
                let key = Arc::new(make());
                room.insert(Arc::clone(&key));
                Some(Found::Made(key))
            }
            Entry::Vacant(_) => None,
        }
    }

    /// Lets a key go if it is idle.
    pub(super) fn forget(&self, key: &Key) -> bool {
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        let goes = key.leave_if_idle();
        if goes {
            keys.remove(&key.name);
        }
        goes
    }

    /// Lets a key go that nobody drives any more.
    pub(super) fn remove(&self, gone: &Arc<Key>) {
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        if keys
            .get(&gone.name)
            .is_some_and(|key| Arc::ptr_eq(key, gone))
        {
            keys.remove(&gone.name);
        }
    }

    pub(super) fn len(&self) -> usize {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.len()
    }
}
