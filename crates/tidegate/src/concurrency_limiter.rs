//! At most so many in flight, as guards.

use core::hash::Hash;
use core::mem;

use crate::check_all::Asked;
use crate::enforce::{Enforce, Enforcer, NO_KEY, Receipt, Single, enforcers};
use crate::gate::Concurrency;
use crate::key_hash::KeyHasher;
use crate::store::StoreStats;
use crate::{Algorithm, Ask, Decision, QuotaError, Timestamp};

/// At most `max` permits out at a time.
///
/// ```
/// # fn main() -> Result<(), tidegate::QuotaError> {
/// use tidegate::ConcurrencyLimiter;
///
/// let limiter = ConcurrencyLimiter::new(1)?;
/// let (_, first) = limiter.try_acquire(1);
/// let first = first.expect("one place is free");
/// assert!(limiter.try_acquire(1).0.is_denied());
/// drop(first);
/// assert!(limiter.try_acquire(1).0.is_allowed());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ConcurrencyLimiter {
    limit: Single<Concurrency>,
}

/// Permits of a concurrency limit: dropping it gives them back, exactly once, also on a panic or
/// when a future is cancelled.
#[derive(Debug)]
#[must_use = "dropping it gives the permits back at once"]
pub struct Permit<'a> {
    limit: &'a dyn Enforce,
    receipt: Option<Receipt>,
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if let Some(receipt) = mem::take(&mut self.receipt) {
            // Gates do not look at the time.
            let returned = self.limit.give_back(receipt, Timestamp::EPOCH);
            debug_assert!(
                returned.is_ok(),
                "a receipt goes back to where it came from"
            );
        }
    }
}

impl ConcurrencyLimiter {
    /// A limit of `max` places; 0 lets nobody in.
    ///
    /// # Errors
    /// [`QuotaError`] where there are more than [`Quota::MAX_PERMITS`](crate::Quota).
    pub fn new(max: u64) -> Result<Self, QuotaError> {
        Ok(Self {
            limit: Single::new(Concurrency::new(max)?, Timestamp::EPOCH),
        })
    }

    /// Takes `permits` if they are free, with a guard that gives them back.
    #[inline]
    pub fn try_acquire(&self, permits: u64) -> (Decision, Option<Permit<'_>>) {
        let (decision, receipt) = self.limit.take(Timestamp::EPOCH, &Ask::new(permits));
        let permit = decision.is_allowed().then_some(Permit {
            limit: &self.limit,
            receipt,
        });
        (decision, permit)
    }

    /// What [`try_acquire`](Self::try_acquire) would answer. Takes nothing.
    pub fn peek(&self, permits: u64) -> Decision {
        self.limit
            .peek(NO_KEY, Timestamp::EPOCH, &Ask::new(permits))
    }

    /// This limit, to be asked among others in a [`check_all`](crate::check_all).
    pub fn ask(&self, permits: u64) -> Asked<'_> {
        Asked {
            limit: &self.limit,
            key: NO_KEY,
            ask: Ask::new(permits),
        }
    }
}

/// At most `max` permits out at a time, for each of many keys, in bounded memory.
///
/// A key is forgotten only when nothing of it is out. Where no key can be forgotten, new ones
/// share one entry: they are limited together.
#[derive(Debug)]
pub struct KeyedConcurrencyLimiter {
    limit: Enforcer,
    hasher: KeyHasher,
}

impl KeyedConcurrencyLimiter {
    /// A limit of `max` places for each of at most `max_keys` keys.
    ///
    /// # Errors
    /// [`QuotaError`] where there are more than [`Quota::MAX_PERMITS`](crate::Quota).
    pub fn new(max: u64, max_keys: usize) -> Result<Self, QuotaError> {
        let mut limits = enforcers(&[Algorithm::Concurrency { max }], max_keys)?;
        let limit = limits.pop().ok_or(QuotaError::MixedAlgorithms)?;
        Ok(Self {
            limit,
            hasher: KeyHasher::random(),
        })
    }

    /// Takes `permits` of this key if they are free, with a guard that gives them back.
    pub fn try_acquire<K: Hash + ?Sized>(
        &self,
        key: &K,
        permits: u64,
    ) -> (Decision, Option<Permit<'_>>) {
        let key = self.hasher.hash(key);
        let (decision, receipt) = self.limit.check(key, Timestamp::EPOCH, &Ask::new(permits));
        let permit = decision.is_allowed().then_some(Permit {
            limit: &*self.limit,
            receipt,
        });
        (decision, permit)
    }

    /// What is remembered, and what has been let go of.
    pub fn stats(&self) -> StoreStats {
        self.limit.stats()
    }

    /// This limit for `key`, to be asked among others in a [`check_all`](crate::check_all).
    pub fn ask<K: Hash + ?Sized>(&self, key: &K, permits: u64) -> Asked<'_> {
        Asked {
            limit: &*self.limit,
            key: self.hasher.hash(key),
            ask: Ask::new(permits),
        }
    }
}
