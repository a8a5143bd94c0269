//! At most so many in flight for each of many keys, as guards.

use core::future::Future;
use core::hash::Hash;
use core::time::Duration;
use std::sync::{Arc, PoisonError};

use crate::acquire::acquire_in_line;
#[cfg(feature = "tokio")]
use crate::acquire::acquire_in_line_async;
use crate::check_all::Asked;
use crate::clock::block_on_for;
use crate::concurrency_limiter::{Acquire, Holder, Permit};
use crate::enforce::{Enforce, Enforcer, changed, enforcers};
use crate::gate::Concurrency;
use crate::key_hash::{KeyHash, KeyHasher};
use crate::on_change::OnChange;
use crate::queue::{DEFAULT_QUEUE_LENGTH, Waiting};
use crate::store::StoreStats;
use crate::sync::{Mutex, RwLock, lock};
use crate::{Algorithm, Ask, Decision, QuotaError, Timestamp};

/// At most `max` permits out at a time, for each of many keys, in bounded memory: an isolated
/// pool for each dependency, tenant or client.
///
/// ```
/// # fn main() -> Result<(), tidegate::QuotaError> {
/// use tidegate::KeyedConcurrencyLimiter;
///
/// let per_tenant = KeyedConcurrencyLimiter::new(1, 1_000)?;
/// let (_, first) = per_tenant.try_acquire("ann", 1);
/// assert!(per_tenant.try_acquire("ann", 1).0.is_denied());
/// assert!(per_tenant.try_acquire("ben", 1).0.is_allowed());
/// assert_eq!(per_tenant.in_use("ann"), 1);
/// drop(first);
/// assert!(per_tenant.try_acquire("ann", 1).0.is_allowed());
/// # Ok(())
/// # }
/// ```
///
/// A key is forgotten only when nothing of it is out. Where no key can be forgotten, new ones
/// share one entry: they are limited together. Each key has a line of its own.
#[derive(Debug)]
pub struct KeyedConcurrencyLimiter {
    /// The places as the first numbers have them; guards give back here, whatever holds now.
    first: Arc<dyn Enforce>,
    current: RwLock<Enforcer>,
    /// Held through a change, while others ask.
    changes: Mutex<()>,
    hasher: KeyHasher,
    queue_length: u64,
}

impl KeyedConcurrencyLimiter {
    /// A limit of `max` places for each of at most `max_keys` keys; 0 places let nobody in.
    ///
    /// # Errors
    /// [`QuotaError`] where there are more than [`Quota::MAX_PERMITS`](crate::Quota).
    pub fn new(max: u64, max_keys: usize) -> Result<Self, QuotaError> {
        let mut limits = enforcers(&[Algorithm::Concurrency { max }], max_keys)?;
        let limit = limits.pop().ok_or(QuotaError::MixedAlgorithms)?;
        Ok(Self {
            first: Arc::clone(&limit) as Arc<dyn Enforce>,
            current: RwLock::new(limit),
            changes: Mutex::new(()),
            hasher: KeyHasher::random(),
            queue_length: DEFAULT_QUEUE_LENGTH,
        })
    }

    /// The same with a line of at most so many permits for each key ([`DEFAULT_QUEUE_LENGTH`]
    /// unless this is said): callers that would wait beyond it are refused at once.
    #[must_use]
    pub fn queue_length(self, permits: u64) -> Self {
        Self {
            queue_length: permits,
            ..self
        }
    }

    /// The same with a hasher of the caller's, for simulations that have to repeat themselves.
    #[must_use]
    pub fn hasher(self, hasher: KeyHasher) -> Self {
        Self { hasher, ..self }
    }

    /// Takes permits of this key if they are free, with a guard that gives them back.
    pub fn try_acquire<K: Hash + ?Sized>(
        &self,
        key: &K,
        ask: impl Into<Ask>,
    ) -> (Decision, Option<Permit<'_>>) {
        self.take(self.hasher.hash(key), ask.into())
    }

    /// What [`try_acquire`](Self::try_acquire) would answer. Takes nothing.
    pub fn peek<K: Hash + ?Sized>(&self, key: &K, ask: impl Into<Ask>) -> Decision {
        let (key, ask) = (self.hasher.hash(key), ask.into());
        self.with(|current| current.peek(key, Timestamp::EPOCH, &ask))
    }

    /// Takes permits of this key, blocking the thread until they are free. Refused only where the
    /// key's line is full, or no waiting helps: there are not so many places, or the limit is
    /// [closed](Self::close).
    pub fn acquire<K: Hash + ?Sized>(
        &self,
        key: &K,
        ask: impl Into<Ask>,
    ) -> (Decision, Option<Permit<'_>>) {
        self.acquire_within(key, ask, Duration::MAX)
    }

    /// Takes permits of this key, blocking the thread for at most `timeout`: whatever is free then
    /// is taken.
    pub fn acquire_within<K: Hash + ?Sized>(
        &self,
        key: &K,
        ask: impl Into<Ask>,
        timeout: Duration,
    ) -> (Decision, Option<Permit<'_>>) {
        let (key, ask) = (self.hasher.hash(key), ask.into());
        let in_line = || self.in_line(key, ask);
        acquire_in_line(|| self.take(key, ask), in_line, timeout)
    }

    /// Permits of this key as soon as they are free, as a future on any runtime. It takes its
    /// place in the key's line when it is first polled, and is refused as
    /// [`acquire`](Self::acquire) is.
    ///
    /// Cancel safe: dropped (by a timeout, say) it leaves the line and takes nothing.
    pub fn acquire_async<K: Hash + ?Sized>(&self, key: &K, ask: impl Into<Ask>) -> Acquire<'_> {
        self.in_line(self.hasher.hash(key), ask.into())
    }

    /// The same as a future, and a guard, that borrow nothing: under the numbers that hold now.
    ///
    /// Cancel safe: dropped, it leaves the line and takes nothing.
    pub fn acquire_owned<K: Hash + ?Sized>(
        &self,
        key: &K,
        ask: impl Into<Ask>,
    ) -> Acquire<'static> {
        let waiting = self.waiting(self.hasher.hash(key), ask.into());
        Acquire::waiting(Holder::Owned(Arc::clone(&self.first)), waiting)
    }

    /// The same for at most `timeout`, in a tokio runtime (with its time enabled): whatever is free
    /// then is taken.
    ///
    /// Cancel safe: dropped while it waits, it leaves the line and takes nothing.
    #[cfg(feature = "tokio")]
    pub async fn acquire_async_within<K: Hash + ?Sized>(
        &self,
        key: &K,
        ask: impl Into<Ask>,
        timeout: Duration,
    ) -> (Decision, Option<Permit<'_>>) {
        let (key, ask) = (self.hasher.hash(key), ask.into());
        let in_line = self.in_line(key, ask);
        acquire_in_line_async(|| self.take(key, ask), in_line, timeout).await
    }

    /// This limit for `key`, to be asked among others in a [`check_all`](crate::check_all): under
    /// the numbers that hold now.
    pub fn ask<K: Hash + ?Sized>(&self, key: &K, ask: impl Into<Ask>) -> Asked<'_> {
        Asked::shared(self.current(), self.hasher.hash(key), ask.into())
    }

    /// Changes how many places each key has, at once and while they are held: who is inside stays,
    /// also where there are more than places now, and who waits goes in where there are more.
    ///
    /// # Errors
    /// [`QuotaError`] where there are more than [`Quota::MAX_PERMITS`](crate::Quota). The old
    /// number stays then.
    pub fn set_max(&self, max: u64) -> Result<(), QuotaError> {
        Concurrency::new(max)?;
        let algorithm = Algorithm::Concurrency { max };
        let _one_at_a_time = lock(&self.changes);
        let old = self.with(Arc::clone);
        // A gate goes on in the same store. Those who wait are woken here, and may ask.
        let changed = changed(
            &*old,
            &[algorithm],
            old.stats().max_keys,
            Timestamp::EPOCH,
            OnChange::KeepUsed,
        );
        let limit = changed?.pop().ok_or(QuotaError::MixedAlgorithms)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = limit;
        Ok(())
    }

    /// Lets nobody in any more, of any key: callers are refused for good, those in line too, and
    /// those inside finish. [`drained`](Self::drained) says when they have.
    /// [`set_max`](Self::set_max) opens it again.
    pub fn close(&self) {
        let closed = self.set_max(0);
        debug_assert!(closed.is_ok(), "0 places are not too many");
    }

    /// How many permits of this key are out; of keys that share an entry, those of all of them.
    pub fn in_use<K: Hash + ?Sized>(&self, key: &K) -> u64 {
        let key = self.hasher.hash(key);
        self.with(|current| current.in_use(key))
    }

    /// Completes when nobody is inside, of all keys, as a future on any runtime. For a limit that
    /// has been [closed](Self::close): into an open one callers go on coming, and the moment when
    /// nobody is inside may pass unseen. It looks at the whole store when it is polled.
    ///
    /// Cancel safe: dropped, it leaves nothing behind.
    pub fn drained(&self) -> impl Future<Output = ()> + Unpin + Send + use<> {
        self.with(|current| current.vacated())
    }

    /// Blocks the thread until nobody is inside, for at most `timeout`; false where somebody
    /// still is. As [`drained`](Self::drained), for a limit that has been closed.
    pub fn drained_within(&self, timeout: Duration) -> bool {
        block_on_for(self.drained(), timeout).is_some()
    }

    /// What is remembered, and what has been let go of.
    pub fn stats(&self) -> StoreStats {
        self.with(|current| current.stats())
    }

    /// Bytes allocated for keys. Looks at the whole store.
    pub fn allocated_bytes(&self) -> usize {
        self.with(|current| current.allocated_bytes())
    }

    /// Asks the limit under the numbers that hold now.
    fn with<R>(&self, ask: impl FnOnce(&Enforcer) -> R) -> R {
        ask(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn current(&self) -> Arc<dyn Enforce> {
        self.with(|current| Arc::clone(current) as Arc<dyn Enforce>)
    }

    fn take(&self, key: KeyHash, ask: Ask) -> (Decision, Option<Permit<'_>>) {
        let answer = self.with(|current| current.check(key, Timestamp::EPOCH, &ask));
        Permit::of(Holder::Borrowed(&self.first), answer)
    }

    const fn in_line(&self, key: KeyHash, ask: Ask) -> Acquire<'_> {
        Acquire::keyed(self, &self.first, key, ask)
    }

    /// A place in a key's line, under the numbers that hold now.
    pub(crate) fn waiting(&self, key: KeyHash, ask: Ask) -> Waiting {
        Waiting::new(self.current(), key, ask, self.queue_length)
    }
}
