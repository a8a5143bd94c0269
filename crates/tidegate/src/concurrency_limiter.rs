//! At most so many in flight, as guards.

use core::future::Future;
use core::hash::Hash;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::{Arc, PoisonError};

use crate::check_all::Asked;
use crate::clock::block_on_for;
use crate::enforce::{Enforce, Enforcer, NO_KEY, Receipt, changed, enforcers};
use crate::gate::Concurrency;
use crate::key_hash::{KeyHash, KeyHasher};
use crate::on_change::OnChange;
use crate::queue::{DEFAULT_QUEUE_LENGTH, Waiting};
use crate::store::{OneGate, StoreStats};
use crate::sync::{Mutex, RwLock, lock};
use crate::{Algorithm, Ask, Decision, QuotaError, Timestamp};

/// At most `max` permits out at a time: a semaphore, a bulkhead.
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
///
/// Callers may wait, blocking their thread or as a future, in one line: first come, first
/// served, the higher [priority](Ask::priority) first. While somebody waits, nobody who comes
/// later gets in before, not even one who asks for less. Clones are the same limit.
#[derive(Clone, Debug)]
pub struct ConcurrencyLimiter {
    gate: Arc<OneGate>,
    /// The same, as guards hold it.
    shared: Arc<dyn Enforce>,
    queue_length: u64,
}

/// Permits of a concurrency limit: dropping it gives them back, exactly once, also on a panic or
/// when a future is cancelled.
#[derive(Debug)]
#[must_use = "dropping it gives the permits back at once"]
pub struct Permit<'a> {
    limit: Holder<'a>,
    receipt: Option<Receipt>,
}

#[derive(Debug)]
enum Holder<'a> {
    Borrowed(&'a Arc<dyn Enforce>),
    Owned(Arc<dyn Enforce>),
}

impl<'a> Permit<'a> {
    /// A guard where the answer is yes.
    fn of(
        limit: &'a Arc<dyn Enforce>,
        answer: (Decision, Option<Receipt>),
    ) -> (Decision, Option<Self>) {
        Self::held_by(Holder::Borrowed(limit), answer)
    }

    #[inline]
    fn held_by(
        limit: Holder<'a>,
        (decision, receipt): (Decision, Option<Receipt>),
    ) -> (Decision, Option<Self>) {
        let permit = decision.is_allowed().then_some(Permit { limit, receipt });
        (decision, permit)
    }

    /// A guard of its own where the answer is yes.
    pub(crate) fn owned(
        limit: Arc<dyn Enforce>,
        answer: (Decision, Option<Receipt>),
    ) -> (Decision, Option<Permit<'static>>) {
        Permit::held_by(Holder::Owned(limit), answer)
    }

    /// The same permits in a guard that borrows nothing, to go with a task or a thread.
    pub fn into_owned(mut self) -> Permit<'static> {
        let limit = match &self.limit {
            Holder::Borrowed(limit) => Arc::clone(limit),
            Holder::Owned(limit) => Arc::clone(limit),
        };
        Permit {
            limit: Holder::Owned(limit),
            receipt: self.receipt.take(),
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let Some(receipt) = self.receipt.take() else {
            return;
        };
        let limit = match &self.limit {
            Holder::Borrowed(limit) => limit,
            Holder::Owned(limit) => limit,
        };
        // Gates do not look at the time.
        let returned = limit.give_back(receipt, Timestamp::EPOCH);
        debug_assert!(
            returned.is_ok(),
            "a receipt goes back to where it came from"
        );
    }
}

/// Permits as soon as there are some; see [`ConcurrencyLimiter::acquire_async`].
#[derive(Debug)]
#[must_use = "futures do nothing unless they are polled"]
pub struct Acquire<'a> {
    /// Where guards give back.
    limit: &'a Arc<dyn Enforce>,
    step: Step<'a>,
}

#[derive(Debug)]
enum Step<'a> {
    /// Of many keys: it has not been polled, and asks under the numbers that hold when it is.
    Asks(&'a KeyedConcurrencyLimiter, KeyHash, Ask),
    Waits(Waiting),
}

impl<'a> Future for Acquire<'a> {
    type Output = (Decision, Option<Permit<'a>>);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let limit = self.limit;
        if let Step::Asks(limiter, key, ask) = self.step {
            let waiting = Waiting::new(limiter.current(), key, ask, limiter.queue_length);
            self.step = Step::Waits(waiting);
        }
        match &mut self.step {
            Step::Asks(..) => Poll::Pending,
            Step::Waits(waiting) => {
                let answer = Pin::new(waiting).poll(context);
                answer.map(|answer| Permit::of(limit, answer))
            }
        }
    }
}

impl ConcurrencyLimiter {
    /// A limit of `max` places; 0 lets nobody in.
    ///
    /// # Errors
    /// [`QuotaError`] where there are more than [`Quota::MAX_PERMITS`](crate::Quota).
    pub fn new(max: u64) -> Result<Self, QuotaError> {
        let gate = Arc::new(OneGate::new(&Concurrency::new(max)?));
        Ok(Self {
            shared: Arc::clone(&gate) as Arc<dyn Enforce>,
            gate,
            queue_length: DEFAULT_QUEUE_LENGTH,
        })
    }

    /// The same with a line of at most so many permits ([`DEFAULT_QUEUE_LENGTH`] unless this is
    /// said): callers that would wait beyond it are refused at once.
    #[must_use]
    pub fn queue_length(self, permits: u64) -> Self {
        Self {
            queue_length: permits,
            ..self
        }
    }

    /// Takes the permits if they are free, with a guard that gives them back.
    #[inline]
    pub fn try_acquire(&self, ask: impl Into<Ask>) -> (Decision, Option<Permit<'_>>) {
        Permit::of(&self.shared, self.gate.take(&ask.into()))
    }

    /// Takes the permits, blocking the thread until they are free. Refused only where the line is
    /// full, or no waiting helps: there are not so many places, or the limit is
    /// [closed](Self::close).
    pub fn acquire(&self, ask: impl Into<Ask>) -> (Decision, Option<Permit<'_>>) {
        self.acquire_within(ask, Duration::MAX)
    }

    /// Takes the permits, blocking the thread for at most `timeout`.
    pub fn acquire_within(
        &self,
        ask: impl Into<Ask>,
        timeout: Duration,
    ) -> (Decision, Option<Permit<'_>>) {
        let ask = ask.into();
        let answer = wait_in_line(&self.shared, NO_KEY, ask, self.queue_length, timeout);
        Permit::of(&self.shared, answer)
    }

    /// The permits as soon as they are free, as a future on any runtime. It takes its place in
    /// line when it is first polled, and is refused as [`acquire`](Self::acquire) is.
    ///
    /// Cancel safe: dropped (by a timeout, say) it leaves the line and takes nothing.
    pub fn acquire_async(&self, ask: impl Into<Ask>) -> Acquire<'_> {
        let limit = &self.shared;
        let waiting = Waiting::new(Arc::clone(limit), NO_KEY, ask.into(), self.queue_length);
        let step = Step::Waits(waiting);
        Acquire { limit, step }
    }

    /// What [`try_acquire`](Self::try_acquire) would answer. Takes nothing.
    pub fn peek(&self, ask: impl Into<Ask>) -> Decision {
        self.gate.peek(NO_KEY, Timestamp::EPOCH, &ask.into())
    }

    /// Changes how many places there are, at once and while they are held: who is inside stays,
    /// also where there are more than places now, and who waits goes in where there are more.
    ///
    /// # Errors
    /// [`QuotaError`] where there are more than [`Quota::MAX_PERMITS`](crate::Quota).
    pub fn set_max(&self, max: u64) -> Result<(), QuotaError> {
        self.gate.set_max(&Concurrency::new(max)?);
        Ok(())
    }

    /// Lets nobody in any more: callers are refused for good, those in line too, and those
    /// inside finish. [`drained`](Self::drained) says when they have. [`set_max`](Self::set_max)
    /// opens it again.
    pub fn close(&self) {
        self.gate.set_max(&Concurrency::of(0));
    }

    /// How many permits are out.
    pub fn in_use(&self) -> u64 {
        self.gate.in_use()
    }

    /// Blocks the thread until nobody is inside, for at most `timeout`; false where somebody
    /// still is. For a limit that has been [closed](Self::close): into an open one callers go on
    /// coming, and the moment when nobody is inside may pass unseen.
    pub fn drained_within(&self, timeout: Duration) -> bool {
        block_on_for(self.drained(), timeout).is_some()
    }

    /// Completes when nobody is inside; see [`drained_within`](Self::drained_within).
    pub fn drained(&self) -> impl Future<Output = ()> + Unpin + Send {
        self.gate.drained()
    }

    /// This limit, to be asked among others in a [`check_all`](crate::check_all).
    pub fn ask(&self, ask: impl Into<Ask>) -> Asked<'_> {
        Asked {
            limit: &*self.gate,
            key: NO_KEY,
            ask: ask.into(),
        }
    }
}

/// Waits in line, blocking the thread.
pub(crate) fn wait_in_line(
    limit: &Arc<dyn Enforce>,
    key: KeyHash,
    ask: Ask,
    length: u64,
    timeout: Duration,
) -> (Decision, Option<Receipt>) {
    let at_once = limit.check(key, Timestamp::EPOCH, &ask);
    if !at_once.0.is_on_release() {
        return at_once;
    }
    let waiting = Waiting::new(Arc::clone(limit), key, ask, length);
    // Too late: whatever is free now is taken, and what is told is as things are now.
    block_on_for(waiting, timeout).unwrap_or_else(|| limit.check(key, Timestamp::EPOCH, &ask))
}

/// At most `max` permits out at a time, for each of many keys, in bounded memory: an isolated
/// pool for each dependency, tenant or client.
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
    /// A limit of `max` places for each of at most `max_keys` keys.
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

    fn current(&self) -> Arc<dyn Enforce> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&current) as Arc<dyn Enforce>
    }

    /// Takes permits of this key if they are free, with a guard that gives them back.
    pub fn try_acquire<K: Hash + ?Sized>(
        &self,
        key: &K,
        ask: impl Into<Ask>,
    ) -> (Decision, Option<Permit<'_>>) {
        let (key, ask) = (self.hasher.hash(key), ask.into());
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        let answer = current.check(key, Timestamp::EPOCH, &ask);
        Permit::of(&self.first, answer)
    }

    /// Takes permits of this key, blocking the thread for at most `timeout`; refused at once where
    /// the line is full or no waiting helps.
    pub fn acquire_within<K: Hash + ?Sized>(
        &self,
        key: &K,
        ask: impl Into<Ask>,
        timeout: Duration,
    ) -> (Decision, Option<Permit<'_>>) {
        let (key, limit) = (self.hasher.hash(key), self.current());
        let answer = wait_in_line(&limit, key, ask.into(), self.queue_length, timeout);
        Permit::of(&self.first, answer)
    }

    /// Permits of this key as soon as they are free, as a future on any runtime; as
    /// [`ConcurrencyLimiter::acquire_async`].
    pub fn acquire_async<K: Hash + ?Sized>(&self, key: &K, ask: impl Into<Ask>) -> Acquire<'_> {
        let step = Step::Asks(self, self.hasher.hash(key), ask.into());
        let limit = &self.first;
        Acquire { limit, step }
    }

    /// What [`try_acquire`](Self::try_acquire) would answer. Takes nothing.
    pub fn peek<K: Hash + ?Sized>(&self, key: &K, ask: impl Into<Ask>) -> Decision {
        let key = self.hasher.hash(key);
        self.current().peek(key, Timestamp::EPOCH, &ask.into())
    }

    /// Changes how many places each key has, at once and while they are held: who is inside stays,
    /// and who waits goes in where there are more. 0 lets nobody in any more.
    ///
    /// # Errors
    /// [`QuotaError`] where there are more than [`Quota::MAX_PERMITS`](crate::Quota). The old
    /// number stays then.
    pub fn set_max(&self, max: u64) -> Result<(), QuotaError> {
        Concurrency::new(max)?;
        let algorithm = Algorithm::Concurrency { max };
        let _one_at_a_time = lock(&self.changes);
        let old = {
            let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(&current)
        };
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

    /// What is remembered, and what has been let go of.
    pub fn stats(&self) -> StoreStats {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current.stats()
    }
}
