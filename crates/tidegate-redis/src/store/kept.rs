//! The limiter of each limit that a node shares.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate::{Algorithm, Limit, SharedLimit, Sharing};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::defined::DefinedBy;
use crate::call::Scripts;
use crate::concurrency::{self, ConcurrencyOptions, OnLeaseLost, SharedConcurrency};
use crate::exact::{Exact, ExactLimiter, Numbers};
use crate::leased::{AutoLimiter, LeaseError, LeasePipeline, LeaseTerms, LeasedLimiter, Scheme};

/// Who decides on a limit.
#[derive(Clone, Debug)]
pub(super) enum Kept {
    Exact(ExactLimiter),
    Leased(LeasedLimiter),
    Auto(AutoLimiter),
    Places(SharedConcurrency),
}

impl Kept {
    /// Gives back what this node only keeps for requests to come.
    async fn leave(self) {
        match self {
            Self::Exact(_) => {}
            Self::Leased(limiter) => limiter.leave().await,
            Self::Auto(limiter) => limiter.leased().leave().await,
            Self::Places(limiter) => limiter.leave().await,
        }
    }
}

/// The limiters of the limits that have been asked, by where those are in memory; each is held
/// here, so that no other can come to be there.
pub(super) struct Limiters {
    places: Mutex<Places>,
    exact: Exact,
    scripts: Arc<dyn Scripts>,
    leases: LeasePipeline,
    runtime: Handle,
}

#[derive(Debug, Default)]
struct Places {
    kept: HashMap<usize, (Arc<SharedLimit>, Kept)>,
    /// Where those are that this node shares now.
    shared: HashSet<usize>,
    /// Limits that another node has defined otherwise: whose definition holds, and the limit that
    /// is kept instead of this node's.
    elsewhere: HashMap<usize, (Arc<SharedLimit>, DefinedBy, Option<SharedLimit>)>,
}

impl Places {
    /// Forgets limits of policies that are no longer in force.
    fn forget_unused(&mut self) {
        self.kept
            .retain(|_, (limit, _)| Arc::strong_count(limit) > 1);
    }
}

fn place_of(limit: &Arc<SharedLimit>) -> usize {
    Arc::as_ptr(limit) as usize
}

/// What tells limits apart, whatever their numbers.
fn id_of(limit: &SharedLimit) -> (&str, &[u8]) {
    (&limit.name, &limit.keys)
}

/// Whether one limiter does for both: all is the same, but perhaps the version of the policy.
fn counts_like(one: &SharedLimit, other: &SharedLimit) -> bool {
    let version = other.version;
    SharedLimit {
        version,
        ..one.clone()
    } == *other
}

impl fmt::Debug for Limiters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiters")
            .field("scripts", &self.scripts)
            .finish_non_exhaustive()
    }
}

impl Limiters {
    pub(super) fn new(exact: Exact, scripts: Arc<dyn Scripts>, runtime: Handle) -> Self {
        Self {
            places: Mutex::default(),
            exact,
            leases: LeasePipeline::new(Arc::clone(&scripts)),
            scripts,
            runtime,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has all of them give back what they keep for requests to come.
    pub(super) async fn leave(&self) {
        let kept: Vec<Kept> = {
            let places = self.lock();
            places.kept.values().map(|(_, kept)| kept.clone()).collect()
        };
        let mut leaving: JoinSet<()> = JoinSet::new();
        for kept in kept {
            leaving.spawn_on(kept.leave(), &self.runtime);
        }
        while leaving.join_next().await.is_some() {}
    }

    /// The limiter of a limit: made when it is first asked for.
    pub(super) fn of(&self, limit: &Arc<SharedLimit>) -> Result<Kept, String> {
        let place = place_of(limit);
        let mut places = self.lock();
        if let Some((_, kept)) = places.kept.get(&place) {
            return Ok(kept.clone());
        }
        places.forget_unused();
        let elsewhere = places.elsewhere.get(&place);
        let counted = elsewhere.and_then(|(_, _, counted)| counted.as_ref());
        let kept = self.make(counted.unwrap_or(limit))?;
        places.kept.insert(place, (Arc::clone(limit), kept.clone()));
        Ok(kept)
    }

    /// From now on these limits are shared, and no others. One that is as it was goes on being
    /// counted as it was, with the leases and places that there are of it.
    pub(super) fn set(&self, limits: &[Arc<SharedLimit>]) {
        let mut places = self.lock();
        let shared = limits.iter().map(place_of).collect();
        let shared_before = std::mem::replace(&mut places.shared, shared);
        places.forget_unused();
        let before = std::mem::take(&mut places.elsewhere);
        let kept: Vec<_> = places
            .kept
            .iter()
            .filter(|(place, _)| shared_before.contains(place) && !before.contains_key(place))
            .map(|(_, kept)| kept.clone())
            .collect();
        let kept: HashMap<_, _> = kept
            .iter()
            .map(|(limit, kept)| (id_of(limit), (limit, kept)))
            .collect();
        let before: HashMap<_, _> = before
            .values()
            .map(|(limit, by, counted)| (id_of(limit), (limit, by, counted)))
            .collect();
        for limit in limits {
            match before.get(&id_of(limit)) {
                Some((old, by, counted)) if *old == limit => {
                    let counted = (Arc::clone(limit), **by, (*counted).clone());
                    places.elsewhere.insert(place_of(limit), counted);
                    places.kept.remove(&place_of(limit));
                }
                _ => {
                    if let Some((old, kept)) = kept.get(&id_of(limit))
                        && counts_like(old, limit)
                    {
                        let entry = (Arc::clone(limit), (*kept).clone());
                        places.kept.entry(place_of(limit)).or_insert(entry);
                    }
                }
            }
        }
    }

    /// From now on this limit is kept as `counted` instead, since it is so defined by somebody
    /// else; or as this node has it. Whether that is a change.
    pub(super) fn count_as(
        &self,
        limit: &Arc<SharedLimit>,
        by: Option<DefinedBy>,
        counted: Option<SharedLimit>,
    ) -> bool {
        let place = place_of(limit);
        let mut places = self.lock();
        let before = places.elsewhere.get(&place);
        let before = before.map(|(_, by, counted)| (*by, counted.clone()));
        let now = by.map(|by| (by, counted));
        // It may be one that this node does not share any more.
        if before == now || !places.shared.contains(&place) {
            return false;
        }
        let counted = |of: &Option<(DefinedBy, Option<SharedLimit>)>| {
            of.as_ref().and_then(|(_, counted)| counted.clone())
        };
        if counted(&before) != counted(&now) {
            places.kept.remove(&place);
        }
        match now {
            None => drop(places.elsewhere.remove(&place)),
            Some((by, counted)) => {
                let entry = (Arc::clone(limit), by, counted);
                places.elsewhere.insert(place, entry);
            }
        }
        true
    }

    /// The limits that somebody else defines otherwise, each once.
    pub(super) fn defined_elsewhere(&self) -> Vec<(String, DefinedBy)> {
        let places = self.lock();
        let all = places.elsewhere.values();
        let mut all: Vec<_> = all
            .map(|(limit, by, _)| (limit.name.clone(), *by))
            .collect();
        all.sort();
        all.dedup();
        all
    }

    fn make(&self, limit: &SharedLimit) -> Result<Kept, String> {
        match how(limit) {
            How::Exact => self.exact_limiter(limit).map(Kept::Exact),
            How::Leased(scheme) => {
                let builder = match limit.algorithm {
                    Algorithm::TokenBucket(quota) => LeasedLimiter::builder(&limit.name, quota),
                    Algorithm::FixedWindow { permits, window } => {
                        LeasedLimiter::windows(&limit.name, permits, window)
                    }
                    _ => return Err(LeaseError::Algorithm.to_string()),
                };
                let builder = builder.scheme(scheme).max_keys(limit.max_keys);
                let built = builder.build_in(&self.leases);
                let (limiter, driver) = built.map_err(|why| why.to_string())?;
                // It ends with the last of the limiters.
                self.runtime.spawn(driver.run());
                Ok(Kept::Leased(limiter))
            }
            How::Auto(scheme) => {
                let Algorithm::TokenBucket(quota) = limit.algorithm else {
                    return Err(LeaseError::Algorithm.to_string());
                };
                let builder = LeasedLimiter::builder(&limit.name, quota).scheme(scheme);
                let made = AutoLimiter::of(builder.max_keys(limit.max_keys), &self.leases);
                let (limiter, driver) = made.map_err(|why| why.to_string())?;
                self.runtime.spawn(driver.run());
                Ok(Kept::Auto(limiter))
            }
            How::Places(scheme) => {
                let (options, scripts) = (options(limit, scheme)?, Arc::clone(&self.scripts));
                let runtime = self.runtime.clone();
                let made = SharedConcurrency::new(&limit.name, options, scripts, runtime);
                made.map(Kept::Places).map_err(|why| why.to_string())
            }
        }
    }

    fn exact_limiter(&self, limit: &SharedLimit) -> Result<ExactLimiter, String> {
        let named = Limit::new(limit.name.as_str(), limit.algorithm);
        let named = named.map_err(|why| why.to_string())?;
        let limiter = self.exact.limiter(&named);
        limiter.map_err(|why| why.to_string())
    }
}

/// Whether limits like this can be kept in Redis: what [`RedisStore`](super::RedisStore) says of
/// them, without any Redis.
///
/// # Errors
/// What is wrong with it, for people.
pub fn validate(limit: &SharedLimit) -> Result<(), String> {
    match how(limit) {
        How::Exact => {
            let numbers = Numbers::of(&limit.algorithm).map(drop);
            numbers.map_err(|why| why.to_string())
        }
        How::Leased(scheme) | How::Auto(scheme) => terms(limit, scheme).map(drop),
        How::Places(scheme) => {
            let valid = options(limit, scheme)?.validate();
            valid.map_err(|why| why.to_string())
        }
    }
}

enum How {
    Exact,
    Leased(Scheme),
    Auto(Scheme),
    Places(concurrency::Scheme),
}

fn how(limit: &SharedLimit) -> How {
    match limit.sharing {
        Sharing::Leased(lease) => How::Leased(lease),
        // A burst that is too small to be lent out is not; windows are leased wholly, or not.
        Sharing::Auto(lease)
            if matches!(limit.algorithm, Algorithm::TokenBucket(_))
                && terms(limit, lease).is_ok() =>
        {
            How::Auto(lease)
        }
        Sharing::NodeShare => How::Places(concurrency::Scheme::NodeShare),
        Sharing::Slots => How::Places(concurrency::Scheme::Slots),
        Sharing::DoubleWindow => How::Places(concurrency::Scheme::DoubleWindow),
        _ => How::Exact,
    }
}

fn terms(limit: &SharedLimit, scheme: Scheme) -> Result<LeaseTerms, String> {
    LeaseTerms::of(&limit.algorithm, scheme).map_err(|why| why.to_string())
}

/// Requests in flight finish, also where their places may have been given to others: a gateway
/// cannot take back what it has passed on.
fn options(limit: &SharedLimit, scheme: concurrency::Scheme) -> Result<ConcurrencyOptions, String> {
    match limit.algorithm {
        Algorithm::Concurrency { max } => Ok(ConcurrencyOptions::new(max)
            .scheme(scheme)
            .max_keys(limit.max_keys)
            .on_lease_lost(OnLeaseLost::Drain)),
        _ => Err("only `concurrency` has places".to_owned()),
    }
}

#[cfg(test)]
mod tests;
