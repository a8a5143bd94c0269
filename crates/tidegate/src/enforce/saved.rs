//! Saving what a limit remembers of its keys, and going on with it in another process.

use core::fmt::Debug;

use super::Bound;
use crate::Timestamp;
use crate::key_hash::KeyHash;
use crate::limit::FromAlgorithm;
use crate::store::{HandedOver, SavePoint};

/// A limit of many keys that can be kept beyond its process.
///
/// What is saved is each key's hash, the number of the [numbers](Self::numbers) that its state is
/// in, and the state as words. To go on with it, another process makes limits of the same
/// [algorithms](crate::Algorithm::to_words) over a new store, lets each [`load`](Self::load) what
/// was saved of it, and hashes keys [as they were hashed](crate::KeyHasher::keys); from there the
/// numbers can be [changed](crate::changed). Each state is then what it would be if nobody had
/// stopped.
pub trait SaveKeys: Debug + Send + Sync {
    /// The number by which what is saved says that it is in this limit's numbers. Limits over one
    /// store that have the same numbers have the same one.
    fn numbers(&self) -> u32;

    /// Shows `visit` what is remembered of some keys of the store, those of its other numbers too:
    /// see [`Keyed::save`](crate::store::Keyed::save). Nothing of gates: who is inside is inside a
    /// process.
    ///
    /// # Errors
    /// [`HandedOver`] where another store has the states now.
    fn save(
        &self,
        from: SavePoint,
        now: Timestamp,
        visit: &mut dyn FnMut(KeyHash, u32, &[u64]),
    ) -> Result<Option<SavePoint>, HandedOver>;

    /// Remembers of a key what was saved at `saved_at` under this limit's numbers; for a store
    /// that nobody has asked yet. False where it is no state of it.
    fn load(&self, key: KeyHash, words: &[u64], saved_at: Timestamp, now: Timestamp) -> bool;
}

impl<M: FromAlgorithm> SaveKeys for Bound<M> {
    fn numbers(&self) -> u32 {
        self.meter.id()
    }

    fn save(
        &self,
        from: SavePoint,
        now: Timestamp,
        visit: &mut dyn FnMut(KeyHash, u32, &[u64]),
    ) -> Result<Option<SavePoint>, HandedOver> {
        if M::IS_GATE {
            return Ok(None);
        }
        self.store.save(&self.meter, from, now, visit)
    }

    fn load(&self, key: KeyHash, words: &[u64], saved_at: Timestamp, now: Timestamp) -> bool {
        !M::IS_GATE && self.store.load(&self.meter, key, words, saved_at, now)
    }
}
