//! What a key is to a store: 128 bits of it.

use core::fmt;
use core::hash::{BuildHasher, Hash, Hasher};
use std::hash::RandomState;

use siphasher::sip128::{Hasher128, SipHasher13};

use crate::store::TOGETHER;

/// The identity of a key within one process: its SipHash-1-3-128 under a random key.
///
/// A store keeps this instead of the key. Of 128 bits it uses 104 (the other 24 say which
/// meter's numbers a state is in), so that among 10 million keys the chance that any two share a
/// state is below 10^-17, and nobody who does not know the random key can look for two that do.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyHash {
    pub(crate) hi: u64,
    pub(crate) lo: u64,
}

impl KeyHash {
    /// The hash as two numbers, with which a state is kept beyond the process, beside
    /// [what it was made under](KeyHasher::keys).
    pub const fn to_words(self) -> [u64; 2] {
        [self.hi, self.lo]
    }

    /// The hash of these numbers; `None` where no key has it.
    pub const fn from_words([hi, lo]: [u64; 2]) -> Option<Self> {
        // 0 is an empty slot.
        if hi == 0 { None } else { Some(Self { hi, lo }) }
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyHash({:016x}{:016x})", self.hi, self.lo)
    }
}

/// Hashes keys, under a random key of its own.
#[derive(Clone)]
pub struct KeyHasher {
    keys: (u64, u64),
}

impl fmt::Debug for KeyHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Who knows the keys can make collisions.
        f.write_str("KeyHasher(..)")
    }
}

impl KeyHasher {
    /// With a random key (from the operating system, by way of [`RandomState`]).
    pub fn random() -> Self {
        let word = |n: u64| RandomState::new().hash_one(n);
        Self {
            keys: (word(0), word(1)),
        }
    }

    /// With this key: for simulations that have to repeat themselves, and for who goes on with
    /// states of another process.
    pub const fn with_keys(k0: u64, k1: u64) -> Self {
        Self { keys: (k0, k1) }
    }

    /// Its key, for [`with_keys`](Self::with_keys). Who knows it can look for keys that share a
    /// state: it is to be kept as a secret.
    pub const fn keys(&self) -> (u64, u64) {
        self.keys
    }

    /// The hash of a key.
    #[inline]
    pub fn hash<K: Hash + ?Sized>(&self, key: &K) -> KeyHash {
        let mut hasher = SipHasher13::new_with_keys(self.keys.0, self.keys.1);
        key.hash(&mut hasher);
        Self::finish(&hasher)
    }

    /// The hash of a key in bytes; not the same as of a `[u8]` by [`hash`](Self::hash).
    #[inline]
    pub fn hash_bytes(&self, key: &[u8]) -> KeyHash {
        let mut hasher = SipHasher13::new_with_keys(self.keys.0, self.keys.1);
        hasher.write(key);
        Self::finish(&hasher)
    }

    /// Hashes these keys, in groups of as many as are decided together.
    pub(crate) fn in_groups<K: Hash>(&self, keys: &[K], mut decide: impl FnMut(&[KeyHash])) {
        for keys in keys.chunks(TOGETHER) {
            let mut hashes = [KeyHash { hi: 0, lo: 0 }; TOGETHER];
            for (hash, key) in hashes.iter_mut().zip(keys) {
                *hash = self.hash(key);
            }
            decide(&hashes[..keys.len()]);
        }
    }

    #[inline]
    fn finish(hasher: &SipHasher13) -> KeyHash {
        let hash = hasher.finish128();
        // 0 is an empty slot.
        KeyHash {
            hi: hash.h1.max(1),
            lo: hash.h2,
        }
    }
}

impl Default for KeyHasher {
    fn default() -> Self {
        Self::random()
    }
}
