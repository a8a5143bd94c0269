//! Rates by name: the verbs of a [`KeyedLimiter`](crate::KeyedLimiter).

use core::hash::Hash;
use core::time::Duration;

use super::{Entry, Limits, LimitsError};
#[cfg(feature = "tokio")]
use crate::acquire::acquire_async_within;
use crate::acquire::acquire_within;
use crate::check_all::Answer;
use crate::enforce::{LimitRef, Receipt};
use crate::{Ask, Clock, Decision};

impl<C: Clock> Limits<C> {
    fn rate(&self, name: &str) -> Result<Entry, LimitsError> {
        let entry = self.entry(name)?;
        if entry.limit.is_gate() {
            return Err(LimitsError::HandsOutGuards(name.to_owned()));
        }
        Ok(entry)
    }

    /// Takes one permit of a rate's key if it is allowed now.
    ///
    /// # Errors
    /// [`LimitsError::Unknown`]; [`LimitsError::HandsOutGuards`] for a concurrency limit.
    pub fn check<K: Hash + ?Sized>(&self, name: &str, key: &K) -> Result<Decision, LimitsError> {
        self.check_ask(name, key, Ask::ONE)
    }

    /// Takes what is asked if it is allowed, perhaps with a delay that the caller then waits.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn check_ask<K: Hash + ?Sized>(
        &self,
        name: &str,
        key: &K,
        ask: impl Into<Ask>,
    ) -> Result<Decision, LimitsError> {
        Ok(self.reserve(name, key, ask)?.0)
    }

    /// Takes what is asked if it is allowed, with a receipt to give it back by.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn reserve<K: Hash + ?Sized>(
        &self,
        name: &str,
        key: &K,
        ask: impl Into<Ask>,
    ) -> Result<(Decision, Option<Receipt>), LimitsError> {
        let limit = self.rate(name)?.limit;
        Ok(limit.check(self.hasher.hash(key), self.clock.now(), &ask.into()))
    }

    /// Takes what is asked of each of these keys if it is allowed, as if they were checked one by
    /// one in this order, and adds the answers to `answers`; as
    /// [`KeyedLimiter::check_batch`](crate::KeyedLimiter::check_batch).
    ///
    /// # Errors
    /// As [`check`](Self::check). No answer is added then.
    pub fn check_batch<K: Hash>(
        &self,
        name: &str,
        keys: &[K],
        ask: impl Into<Ask>,
        answers: &mut Vec<Answer>,
    ) -> Result<(), LimitsError> {
        let limit = self.rate(name)?.limit;
        let (now, ask) = (self.clock.now(), ask.into());
        self.hasher.in_groups(keys, |hashes| {
            limit.check_batch(hashes, now, &ask, answers);
        });
        Ok(())
    }

    /// Gives back what was taken. Without effect where the key has been forgotten meanwhile.
    ///
    /// # Errors
    /// The receipt, where the limit has been dropped, or has since become one of another kind, or
    /// for many more or fewer keys.
    pub fn give_back(&self, name: &str, receipt: Receipt) -> Result<(), Receipt> {
        match self.rate(name) {
            Ok(rate) => rate.limit.give_back(receipt, self.clock.now()),
            Err(_gone) => Err(receipt),
        }
    }

    /// Takes what is asked, blocking the thread until it is allowed. Denied only where it never
    /// can be. A limit that changes meanwhile is asked as it is then, where it has to be asked
    /// again.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn acquire<K: Hash + ?Sized>(
        &self,
        name: &str,
        key: &K,
        ask: impl Into<Ask>,
    ) -> Result<Decision, LimitsError> {
        self.acquire_within(name, key, ask, Duration::MAX)
    }

    /// Takes what is asked, blocking the thread for at most `timeout`. Where the wait is longer
    /// than that, the answer is a denial, at once.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn acquire_within<K: Hash + ?Sized>(
        &self,
        name: &str,
        key: &K,
        ask: impl Into<Ask>,
        timeout: Duration,
    ) -> Result<Decision, LimitsError> {
        let rate = self.follow(name, Self::rate)?;
        let rate = || LimitRef::Shared(rate().limit);
        let key = self.hasher.hash(key);
        Ok(acquire_within(rate, key, &self.clock, ask.into(), timeout))
    }

    /// Takes what is asked as soon as it is allowed, waiting in a tokio runtime (with its time
    /// enabled). Denied only where it never can be.
    ///
    /// Cancel safe: dropped while it waits, it gives back what it had reserved.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    #[cfg(feature = "tokio")]
    pub async fn acquire_async<K: Hash + ?Sized>(
        &self,
        name: &str,
        key: &K,
        ask: impl Into<Ask>,
    ) -> Result<Decision, LimitsError> {
        self.acquire_async_within(name, key, ask, Duration::MAX)
            .await
    }

    /// The same for at most `timeout`: where the wait is longer than that, the answer is a denial,
    /// at once.
    ///
    /// Cancel safe: dropped while it waits, it gives back what it had reserved.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    #[cfg(feature = "tokio")]
    pub async fn acquire_async_within<K: Hash + ?Sized>(
        &self,
        name: &str,
        key: &K,
        ask: impl Into<Ask>,
        timeout: Duration,
    ) -> Result<Decision, LimitsError> {
        let rate = self.follow(name, Self::rate)?;
        let rate = || LimitRef::Shared(rate().limit);
        let key = self.hasher.hash(key);
        Ok(acquire_async_within(rate, key, &self.clock, ask.into(), timeout).await)
    }
}
