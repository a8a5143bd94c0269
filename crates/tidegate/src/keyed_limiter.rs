//! A limit of many keys, with a clock.

use core::hash::Hash;
use core::time::Duration;

#[cfg(feature = "tokio")]
use crate::acquire::acquire_async_within;
use crate::acquire::acquire_within;
use crate::check_all::{Answer, Asked};
use crate::enforce::{Enforcer, LimitRef, Receipt, changed, enforcers};
use crate::key_hash::KeyHasher;
use crate::on_change::OnChange;
use crate::store::StoreStats;
use crate::{Algorithm, Ask, Clock, Decision, QuotaError, SystemClock};

/// One rate limit each for many keys, in bounded memory.
///
/// ```
/// # fn main() -> Result<(), tidegate::QuotaError> {
/// use tidegate::{KeyedLimiter, Quota};
///
/// let per_user = KeyedLimiter::builder(Quota::per_minute(100)).max_keys(1_000_000).build()?;
/// assert!(per_user.check("user-7").is_allowed());
/// assert!(per_user.check(&("tenant", 12)).is_allowed());
/// # Ok(())
/// # }
/// ```
///
/// A key is anything that implements [`Hash`]; what is kept of it is a hash.
#[derive(Debug)]
pub struct KeyedLimiter<C = SystemClock> {
    limit: Enforcer,
    hasher: KeyHasher,
    clock: C,
}

/// Builds a [`KeyedLimiter`].
#[derive(Debug)]
pub struct KeyedLimiterBuilder<C = SystemClock> {
    algorithm: Algorithm,
    max_keys: usize,
    hasher: KeyHasher,
    clock: C,
}

/// Keys that a limiter remembers by default.
const DEFAULT_MAX_KEYS: usize = 1_000_000;

impl KeyedLimiter {
    /// Starts to build a limit: a token bucket for a [`Quota`](crate::Quota), or any other
    /// [`Algorithm`] but a concurrency limit.
    pub fn builder(limit: impl Into<Algorithm>) -> KeyedLimiterBuilder {
        KeyedLimiterBuilder {
            algorithm: limit.into(),
            max_keys: DEFAULT_MAX_KEYS,
            hasher: KeyHasher::random(),
            clock: SystemClock::new(),
        }
    }
}

impl<C: Clock> KeyedLimiterBuilder<C> {
    /// The most keys that are remembered; a million by default. Memory grows with the keys that
    /// come, up to about 35 bytes for each (a sliding log: 16 more for each permit).
    #[must_use]
    pub fn max_keys(self, max_keys: usize) -> Self {
        Self { max_keys, ..self }
    }

    /// A hasher of the caller's, for simulations that have to repeat themselves.
    #[must_use]
    pub fn hasher(self, hasher: KeyHasher) -> Self {
        Self { hasher, ..self }
    }

    /// A clock of the caller's.
    pub fn clock<D: Clock>(self, clock: D) -> KeyedLimiterBuilder<D> {
        let Self {
            algorithm,
            max_keys,
            hasher,
            clock: _,
        } = self;
        KeyedLimiterBuilder {
            algorithm,
            max_keys,
            hasher,
            clock,
        }
    }

    /// The limiter.
    ///
    /// # Errors
    /// [`QuotaError`] where the numbers make no limit, or the algorithm is a gate
    /// ([`KeyedConcurrencyLimiter`](crate::KeyedConcurrencyLimiter) hands out guards).
    pub fn build(self) -> Result<KeyedLimiter<C>, QuotaError> {
        if self.algorithm.is_gate() {
            return Err(QuotaError::NotARate);
        }
        let mut limits = enforcers(&[self.algorithm], self.max_keys)?;
        let limit = limits.pop().ok_or(QuotaError::MixedAlgorithms)?;
        Ok(KeyedLimiter {
            limit,
            hasher: self.hasher,
            clock: self.clock,
        })
    }
}

impl<C: Clock> KeyedLimiter<C> {
    /// Takes one permit of this key if it is allowed now.
    #[inline]
    pub fn check<K: Hash + ?Sized>(&self, key: &K) -> Decision {
        self.check_ask(key, Ask::ONE)
    }

    /// Takes what is asked if it is allowed, perhaps with a delay that the caller then waits.
    #[inline]
    pub fn check_ask<K: Hash + ?Sized>(&self, key: &K, ask: impl Into<Ask>) -> Decision {
        self.reserve(key, ask).0
    }

    /// Takes what is asked if it is allowed, with a receipt to give it back by.
    #[inline]
    pub fn reserve<K: Hash + ?Sized>(
        &self,
        key: &K,
        ask: impl Into<Ask>,
    ) -> (Decision, Option<Receipt>) {
        self.limit
            .check(self.hasher.hash(key), self.clock.now(), &ask.into())
    }

    /// Takes what is asked of each of these keys if it is allowed, as if they were checked one by
    /// one in this order, and adds the answers to `answers`; the time is read once. Where more
    /// keys are remembered than the processor's caches hold (a hundred thousand or so), that takes
    /// less time than one by one; with few, a little more.
    ///
    /// Nothing is allocated where `answers` has room for them.
    ///
    /// ```
    /// # fn main() -> Result<(), tidegate::QuotaError> {
    /// use tidegate::{KeyedLimiter, Quota};
    ///
    /// let per_user = KeyedLimiter::builder(Quota::per_minute(2)).build()?;
    /// let mut answers = Vec::with_capacity(4);
    /// per_user.check_batch(&["ann", "ben", "ann", "ann"], 1, &mut answers);
    /// let allowed: Vec<_> = answers.iter().map(|answer| answer.decision.is_allowed()).collect();
    /// assert_eq!(allowed, [true, true, true, false]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn check_batch<K: Hash>(&self, keys: &[K], ask: impl Into<Ask>, answers: &mut Vec<Answer>) {
        let (now, ask) = (self.clock.now(), ask.into());
        self.hasher.in_groups(keys, |hashes| {
            self.limit.check_batch(hashes, now, &ask, answers);
        });
    }

    /// What a check would answer. Takes nothing.
    pub fn peek<K: Hash + ?Sized>(&self, key: &K, ask: impl Into<Ask>) -> Decision {
        self.limit
            .peek(self.hasher.hash(key), self.clock.now(), &ask.into())
    }

    /// Gives back what was taken. Without effect where the key has been forgotten meanwhile.
    ///
    /// # Errors
    /// The receipt, where it is of another limiter, or of this one before another kind of limit, or
    /// room for many more or fewer keys, was set.
    pub fn give_back(&self, receipt: Receipt) -> Result<(), Receipt> {
        self.limit.give_back(receipt, self.clock.now())
    }

    /// Makes a key as good as new: all of its permits are there again.
    pub fn reset<K: Hash + ?Sized>(&self, key: &K) {
        let reset = self.limit.reset(self.hasher.hash(key), self.clock.now());
        debug_assert!(reset, "a rate has no guards");
    }

    /// Takes what is asked of a key, blocking the thread until it is allowed. Denied only where it
    /// never can be.
    pub fn acquire<K: Hash + ?Sized>(&self, key: &K, ask: impl Into<Ask>) -> Decision {
        self.acquire_within(key, ask, Duration::MAX)
    }

    /// Takes what is asked of a key, blocking the thread for at most `timeout`. Where the wait is
    /// longer than that, the answer is a denial, at once.
    ///
    /// Callers of a key go in the order they came: what they wait for is taken when they come. Only
    /// with a two-window counter and Sentinel's warm-up, who wakes first goes first.
    pub fn acquire_within<K: Hash + ?Sized>(
        &self,
        key: &K,
        ask: impl Into<Ask>,
        timeout: Duration,
    ) -> Decision {
        let limit = || LimitRef::Borrowed(&*self.limit);
        let key = self.hasher.hash(key);
        acquire_within(limit, key, &self.clock, ask.into(), timeout)
    }

    /// Takes what is asked of a key as soon as it is allowed, waiting in a tokio runtime (with its
    /// time enabled). Denied only where it never can be.
    ///
    /// Cancel safe: dropped while it waits, it gives back what it had reserved.
    #[cfg(feature = "tokio")]
    pub async fn acquire_async<K: Hash + ?Sized>(&self, key: &K, ask: impl Into<Ask>) -> Decision {
        self.acquire_async_within(key, ask, Duration::MAX).await
    }

    /// The same for at most `timeout`: where the wait is longer than that, the answer is a denial,
    /// at once.
    ///
    /// Cancel safe: dropped while it waits, it gives back what it had reserved.
    #[cfg(feature = "tokio")]
    pub async fn acquire_async_within<K: Hash + ?Sized>(
        &self,
        key: &K,
        ask: impl Into<Ask>,
        timeout: Duration,
    ) -> Decision {
        let key = self.hasher.hash(key);
        let limit = || LimitRef::Borrowed(&*self.limit);
        acquire_async_within(limit, key, &self.clock, ask.into(), timeout).await
    }

    /// This limit for `key`, to be asked among others in a [`check_all`](crate::check_all).
    pub fn ask<K: Hash + ?Sized>(&self, key: &K, ask: impl Into<Ask>) -> Asked<'_> {
        Asked::new(&*self.limit, self.hasher.hash(key), ask.into())
    }
    /// Changes the numbers: what each key has used stays used, and the new limit holds at once.
    ///
    /// # Errors
    /// [`QuotaError`] where the numbers make no limit, or one of a gate. The old ones stay then.
    pub fn set_limit(
        &mut self,
        limit: impl Into<Algorithm>,
        max_keys: usize,
    ) -> Result<(), QuotaError> {
        self.set_limit_and(limit, max_keys, OnChange::KeepUsed)
    }

    /// Changes the numbers, and says what stays of what each key has used or has left.
    ///
    /// # Errors
    /// As [`set_limit`](Self::set_limit).
    pub fn set_limit_and(
        &mut self,
        limit: impl Into<Algorithm>,
        max_keys: usize,
        on_change: OnChange,
    ) -> Result<(), QuotaError> {
        let algorithm = limit.into();
        algorithm.validate()?;
        if algorithm.is_gate() {
            return Err(QuotaError::NotARate);
        }
        let now = self.clock.now();
        let mut limits = changed(&*self.limit, &[algorithm], max_keys, now, on_change)?;
        let limit = limits.pop().ok_or(QuotaError::MixedAlgorithms)?;
        limit.adopt_all(now);
        self.limit = limit;
        Ok(())
    }

    /// The clock that it goes by.
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// What is remembered, and what has been let go of.
    pub fn stats(&self) -> StoreStats {
        self.limit.stats()
    }

    /// Bytes allocated for keys. Looks at the whole store.
    pub fn allocated_bytes(&self) -> usize {
        self.limit.allocated_bytes()
    }
}
