//! What no limiter can be faster than: models that do only the unavoidable.

use std::sync::atomic::{AtomicU64, Ordering};

use ahash::RandomState;

/// One compare-and-swap of a theoretical arrival time.
#[inline]
pub(crate) fn gcra(tat: &AtomicU64, now: u64, interval: u64, tolerance: u64) -> bool {
    let mut current = tat.load(Ordering::Relaxed);
    loop {
        let base = current.max(now);
        if base - now > tolerance {
            return false;
        }
        let new = base + interval;
        match tat.compare_exchange_weak(current, new, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(seen) => current = seen,
        }
    }
}

/// A fixed table of 16-byte slots (64 bits of a hash without `HashDoS` promise, and a time), that
/// can neither grow nor forget.
#[derive(Debug)]
pub(crate) struct Table {
    slots: Vec<(AtomicU64, AtomicU64)>,
    hasher: RandomState,
}

impl Table {
    pub(crate) fn new(keys: usize) -> Self {
        let slots = (2 * keys).next_power_of_two();
        let slots = (0..slots)
            .map(|_| (AtomicU64::new(0), AtomicU64::new(0)))
            .collect();
        Self {
            slots,
            hasher: RandomState::with_seeds(1, 2, 3, 4),
        }
    }

    #[inline]
    pub(crate) fn check(&self, key: &str, now: u64, interval: u64, tolerance: u64) -> bool {
        self.check_hash(self.hasher.hash_one(key) | 1, now, interval, tolerance)
    }

    #[inline]
    fn check_hash(&self, hash: u64, now: u64, interval: u64, tolerance: u64) -> bool {
        let mask = self.slots.len() - 1;
        let mut at = (hash >> 20) as usize & mask;
        loop {
            let (tag, tat) = &self.slots[at];
            let seen = tag.load(Ordering::Acquire);
            let mine = seen == hash
                || (seen == 0
                    && match tag.compare_exchange(0, hash, Ordering::AcqRel, Ordering::Acquire) {
                        Ok(_) => true,
                        Err(now_there) => now_there == hash,
                    });
            if mine {
                return gcra(tat, now, interval, tolerance);
            }
            at = (at + 1) & mask;
        }
    }

    /// Several at once: where each begins is touched before any is decided, so that their lines
    /// come from memory side by side.
    #[inline]
    pub(crate) fn check_batch(&self, keys: &[String], now: u64, tolerance: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut hashes = [0; 16];
        for (hash, key) in hashes.iter_mut().zip(keys) {
            *hash = self.hasher.hash_one(key.as_str()) | 1;
        }
        let touched = hashes.iter().fold(0, |sum, hash| {
            let (tag, _) = &self.slots[(hash >> 20) as usize & mask];
            sum ^ tag.load(Ordering::Relaxed)
        });
        std::hint::black_box(touched);
        let pass = |hash: &&u64| self.check_hash(**hash, now, 1, tolerance);
        hashes.iter().filter(pass).count()
    }
}
