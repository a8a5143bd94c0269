//! Concurrency limits by name: the verbs of a
//! [`KeyedConcurrencyLimiter`](crate::KeyedConcurrencyLimiter), for guards that borrow nothing.

use core::future::Future;
use core::hash::Hash;
use core::time::Duration;

use super::{Entry, Limits, LimitsError};
use crate::acquire::acquire_in_line;
#[cfg(feature = "tokio")]
use crate::acquire::acquire_in_line_async;
use crate::clock::block_on_for;
use crate::concurrency_limiter::{Acquire, Holder, Permit};
use crate::key_hash::KeyHash;
use crate::{Ask, Clock, Decision, Timestamp};

/// An answer, with a guard where it is yes.
type Answered = (Decision, Option<Permit<'static>>);

impl Entry {
    /// Takes what is free.
    fn take(self, key: KeyHash, ask: &Ask) -> Answered {
        let answer = self.limit.check(key, Timestamp::EPOCH, ask);
        Permit::of(Holder::Owned(self.limit), answer)
    }

    /// A place in line.
    fn in_line(self, key: KeyHash, ask: Ask) -> Acquire<'static> {
        let length = self.definition.queue_length;
        Acquire::new(Holder::Owned(self.limit), key, ask, length)
    }
}

impl<C: Clock> Limits<C> {
    fn gate(&self, name: &str) -> Result<Entry, LimitsError> {
        let entry = self.entry(name)?;
        if !entry.limit.is_gate() {
            return Err(LimitsError::HandsOutNone(name.to_owned()));
        }
        Ok(entry)
    }

    /// Takes permits of a concurrency limit's key if they are free, with a guard that gives them
    /// back.
    ///
    /// # Errors
    /// [`LimitsError::Unknown`]; [`LimitsError::HandsOutNone`] for a rate.
    pub fn try_acquire_permit<K: Hash + ?Sized>(
        &self,
        name: &str,
        key: &K,
        ask: impl Into<Ask>,
    ) -> Result<Answered, LimitsError> {
        Ok(self.gate(name)?.take(self.hasher.hash(key), &ask.into()))
    }

    /// Takes permits of a concurrency limit's key, blocking the thread until they are free. Refused
    /// only where the key's line is full, or no waiting helps: there are not so many places, or
    /// the limit is dropped.
    ///
    /// # Errors
    /// As [`try_acquire_permit`](Self::try_acquire_permit).
    pub fn acquire_permit<K: Hash + ?Sized>(
        &self,
        name: &str,
        key: &K,
        ask: impl Into<Ask>,
    ) -> Result<Answered, LimitsError> {
        self.acquire_permit_within(name, key, ask, Duration::MAX)
    }

    /// Takes permits of a concurrency limit's key, blocking the thread for at most `timeout`:
    /// whatever is free then is taken.
    ///
    /// # Errors
    /// As [`try_acquire_permit`](Self::try_acquire_permit).
    pub fn acquire_permit_within<K: Hash + ?Sized>(
        &self,
        name: &str,
        key: &K,
        ask: impl Into<Ask>,
        timeout: Duration,
    ) -> Result<Answered, LimitsError> {
        let gate = self.follow(name, Self::gate)?;
        let (key, ask) = (self.hasher.hash(key), ask.into());
        let in_line = || gate().in_line(key, ask);
        Ok(acquire_in_line(|| gate().take(key, &ask), in_line, timeout))
    }

    /// Permits of a concurrency limit's key as soon as they are free, as a future on any runtime.
    /// It takes its place in the key's line when it is first polled, and is refused as
    /// [`acquire_permit`](Self::acquire_permit) is.
    ///
    /// Cancel safe: dropped (by a timeout, say) it leaves the line and takes nothing.
    ///
    /// # Errors
    /// As [`try_acquire_permit`](Self::try_acquire_permit).
    pub async fn acquire_permit_async<K: Hash + ?Sized>(
        &self,
        name: &str,
        key: &K,
        ask: impl Into<Ask>,
    ) -> Result<Answered, LimitsError> {
        let in_line = self.gate(name)?.in_line(self.hasher.hash(key), ask.into());
        Ok(in_line.await)
    }

    /// The same for at most `timeout`, in a tokio runtime (with its time enabled): whatever is free
    /// then is taken.
    ///
    /// Cancel safe: dropped while it waits, it leaves the line and takes nothing.
    ///
    /// # Errors
    /// As [`try_acquire_permit`](Self::try_acquire_permit).
    #[cfg(feature = "tokio")]
    pub async fn acquire_permit_async_within<K: Hash + ?Sized>(
        &self,
        name: &str,
        key: &K,
        ask: impl Into<Ask>,
        timeout: Duration,
    ) -> Result<Answered, LimitsError> {
        let gate = self.follow(name, Self::gate)?;
        let (key, ask) = (self.hasher.hash(key), ask.into());
        let in_line = gate().in_line(key, ask);
        Ok(acquire_in_line_async(|| gate().take(key, &ask), in_line, timeout).await)
    }

    /// How many permits of a concurrency limit's key are out; of keys that share an entry, those of
    /// all of them.
    ///
    /// # Errors
    /// As [`try_acquire_permit`](Self::try_acquire_permit).
    pub fn in_use<K: Hash + ?Sized>(&self, name: &str, key: &K) -> Result<u64, LimitsError> {
        Ok(self.gate(name)?.limit.in_use(self.hasher.hash(key)))
    }

    /// Completes when nobody is inside of a concurrency limit, of all keys, as a future on any
    /// runtime. For one that has been [defined](Self::define) to have 0 places, or was
    /// [dropped](Self::remove) since: into an open one callers go on coming, and the moment when
    /// nobody is inside may pass unseen. It looks at the whole store when it is polled.
    ///
    /// Cancel safe: dropped, it leaves nothing behind.
    ///
    /// # Errors
    /// As [`try_acquire_permit`](Self::try_acquire_permit).
    pub fn drained(
        &self,
        name: &str,
    ) -> Result<impl Future<Output = ()> + Unpin + Send + use<C>, LimitsError> {
        Ok(self.gate(name)?.limit.vacated())
    }

    /// Blocks the thread until nobody is inside, for at most `timeout`; false where somebody still
    /// is. As [`drained`](Self::drained), for a limit that has no places any more.
    ///
    /// # Errors
    /// As [`try_acquire_permit`](Self::try_acquire_permit).
    pub fn drained_within(&self, name: &str, timeout: Duration) -> Result<bool, LimitsError> {
        Ok(block_on_for(self.drained(name)?, timeout).is_some())
    }
}
