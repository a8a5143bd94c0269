//! Limits by name, which their callers define, change and drop while they are used.

mod definition;
mod permits;
mod rates;

use core::hash::Hash;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

pub use self::definition::{Defined, Definition, LimitsError};
use crate::check_all::Asked;
use crate::enforce::{Enforcer, changed};
use crate::key_hash::KeyHasher;
use crate::store::StoreStats;
use crate::{Ask, Clock, Decision, QuotaError, SystemClock};

/// Limits by name: set once, set again, dropped, by whoever uses them.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tidegate::{Defined, Definition, Limits, Quota};
///
/// let limits = Limits::new();
/// let ten = Definition::new(Quota::per_minute(10));
/// assert_eq!(limits.define("mails", ten)?, Defined::New);
/// assert!(limits.check("mails", "user-7")?.is_allowed());
///
/// // What user 7 has used stays used.
/// assert_eq!(limits.define("mails", Definition::new(Quota::per_minute(5)))?, Defined::Changed);
/// assert_eq!(limits.peek("mails", "user-7", 1)?.remaining, 4);
///
/// assert!(limits.remove("mails"));
/// assert!(limits.check("mails", "user-7").is_err());
/// # Ok(())
/// # }
/// ```
///
/// A rate is checked and waited for as a [`KeyedLimiter`](crate::KeyedLimiter) is. A concurrency
/// limit hands out guards as a [`KeyedConcurrencyLimiter`](crate::KeyedConcurrencyLimiter) does,
/// by the verbs that have `permit` in their names. Asked for what it is not, a limit says so.
#[derive(Debug)]
pub struct Limits<C = SystemClock> {
    by_name: RwLock<HashMap<Box<str>, Entry>>,
    /// Held through a change: one at a time, while checks go on.
    changes: Mutex<()>,
    most: usize,
    hasher: KeyHasher,
    clock: C,
}

#[derive(Clone, Debug)]
struct Entry {
    definition: Definition,
    limit: Enforcer,
}

impl Limits {
    /// No limits yet, on the system's clock; at most 10,000 of them.
    pub fn new() -> Self {
        Self::with_clock(SystemClock::new())
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::new()
    }
}

impl<C: Clock> Limits<C> {
    /// The same on a clock of the caller's.
    pub fn with_clock(clock: C) -> Self {
        Self {
            by_name: RwLock::default(),
            changes: Mutex::default(),
            most: 10_000,
            hasher: KeyHasher::random(),
            clock,
        }
    }

    /// The same for at most so many limits.
    #[must_use]
    pub fn max_limits(self, max_limits: usize) -> Self {
        Self {
            most: max_limits,
            ..self
        }
    }

    /// The same with a hasher of the caller's, for simulations that have to repeat themselves.
    #[must_use]
    pub fn hasher(self, hasher: KeyHasher) -> Self {
        Self { hasher, ..self }
    }

    /// Sets a limit, in the place of the one of this name if there is one: the new numbers hold at
    /// once, for all keys.
    ///
    /// # Errors
    /// [`LimitsError::Quota`] and [`LimitsError::TooMany`]; nothing has changed then.
    pub fn define(&self, name: &str, definition: Definition) -> Result<Defined, LimitsError> {
        let _one_at_a_time = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        self.set(name, definition)
    }

    /// Sets a limit unless there is one of this name.
    ///
    /// # Errors
    /// As [`define`](Self::define).
    pub fn define_once(&self, name: &str, definition: Definition) -> Result<Defined, LimitsError> {
        let _one_at_a_time = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if self.definition(name).is_some() {
            return Ok(Defined::Kept);
        }
        self.set(name, definition)
    }

    fn set(&self, name: &str, definition: Definition) -> Result<Defined, LimitsError> {
        let old = self.entry(name).ok();
        if old
            .as_ref()
            .is_some_and(|old| old.definition.is_same(&definition))
        {
            return Ok(Defined::Kept);
        }
        let Some(old) = old else {
            let limit = definition.enforcer().map_err(LimitsError::Quota)?;
            let mut by_name = self.by_name.write().unwrap_or_else(PoisonError::into_inner);
            if by_name.len() >= self.most {
                return Err(LimitsError::TooMany(self.most));
            }
            by_name.insert(name.into(), Entry { definition, limit });
            return Ok(Defined::New);
        };
        let Definition {
            algorithm,
            max_keys,
            on_change,
            ..
        } = definition;
        let now = self.clock.now();
        let limits = changed(&*old.limit, &[algorithm], max_keys, now, on_change);
        let limit = limits.map(|mut limits| limits.pop());
        let limit = limit.map_err(LimitsError::Quota)?;
        let limit = limit.ok_or(LimitsError::Quota(QuotaError::MixedAlgorithms))?;
        let entry = Entry {
            definition,
            limit: Arc::clone(&limit),
        };
        let mut by_name = self.by_name.write().unwrap_or_else(PoisonError::into_inner);
        by_name.insert(name.into(), entry);
        drop(by_name);
        // The rest is taken over while checks go on.
        limit.adopt_all(now);
        if limit.store_id() != old.limit.store_id() {
            old.limit.dismiss();
        }
        Ok(Defined::Changed)
    }

    /// Drops a limit; false where there is none of this name. Guards that are out stay valid, and
    /// who waits in line is refused.
    pub fn remove(&self, name: &str) -> bool {
        let _one_at_a_time = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut by_name = self.by_name.write().unwrap_or_else(PoisonError::into_inner);
        let removed = by_name.remove(name);
        drop(by_name);
        removed.map(|entry| entry.limit.dismiss()).is_some()
    }

    /// What a limit was defined as.
    pub fn definition(&self, name: &str) -> Option<Definition> {
        self.entry(name).ok().map(|entry| entry.definition)
    }

    /// The names of all limits, in no order.
    pub fn names(&self) -> Vec<String> {
        let by_name = self.by_name.read().unwrap_or_else(PoisonError::into_inner);
        by_name.keys().map(|name| String::from(&**name)).collect()
    }

    fn entry(&self, name: &str) -> Result<Entry, LimitsError> {
        let by_name = self.by_name.read().unwrap_or_else(PoisonError::into_inner);
        let entry = by_name.get(name).cloned();
        entry.ok_or_else(|| LimitsError::Unknown(name.to_owned()))
    }

    /// A limit of one kind, looked up again whenever it is asked for: one that waits goes by the
    /// numbers that hold then. Where it is gone meanwhile, as it was when the caller came.
    fn follow<'a>(
        &'a self,
        name: &'a str,
        kind: fn(&Self, &str) -> Result<Entry, LimitsError>,
    ) -> Result<impl Fn() -> Entry + 'a, LimitsError> {
        let first = kind(self, name)?;
        Ok(move || kind(self, name).unwrap_or_else(|_gone| first.clone()))
    }

    /// What would be answered now, of either kind. Takes nothing.
    ///
    /// # Errors
    /// [`LimitsError::Unknown`].
    pub fn peek<K: Hash + ?Sized>(
        &self,
        name: &str,
        key: &K,
        ask: impl Into<Ask>,
    ) -> Result<Decision, LimitsError> {
        let limit = self.entry(name)?.limit;
        Ok(limit.peek(self.hasher.hash(key), self.clock.now(), &ask.into()))
    }

    /// This limit for `key`, of either kind, to be asked among others in a
    /// [`check_all`](crate::check_all): as it is defined now.
    ///
    /// # Errors
    /// [`LimitsError::Unknown`].
    pub fn ask<K: Hash + ?Sized>(
        &self,
        name: &str,
        key: &K,
        ask: impl Into<Ask>,
    ) -> Result<Asked<'static>, LimitsError> {
        let limit = self.entry(name)?.limit;
        Ok(Asked::shared(limit, self.hasher.hash(key), ask.into()))
    }

    /// Makes a key as good as new. False, and nothing done, while a guard of it is out.
    ///
    /// # Errors
    /// [`LimitsError::Unknown`].
    pub fn reset<K: Hash + ?Sized>(&self, name: &str, key: &K) -> Result<bool, LimitsError> {
        let limit = self.entry(name)?.limit;
        Ok(limit.reset(self.hasher.hash(key), self.clock.now()))
    }

    /// What a limit remembers, and what it has let go of.
    ///
    /// # Errors
    /// [`LimitsError::Unknown`].
    pub fn stats(&self, name: &str) -> Result<StoreStats, LimitsError> {
        Ok(self.entry(name)?.limit.stats())
    }

    /// Bytes allocated for a limit's keys. Looks at its whole store.
    ///
    /// # Errors
    /// [`LimitsError::Unknown`].
    pub fn allocated_bytes(&self, name: &str) -> Result<usize, LimitsError> {
        Ok(self.entry(name)?.limit.allocated_bytes())
    }
}
