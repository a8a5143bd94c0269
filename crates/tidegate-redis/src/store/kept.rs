//! The limiter of each limit that a node shares.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tidegate::{Algorithm, Limit, SharedLimit, Sharing};
use tokio::runtime::Handle;

use crate::call::Scripts;
use crate::concurrency::{self, ConcurrencyOptions, OnLeaseLost, SharedConcurrency};
use crate::exact::{Exact, ExactLimiter};
use crate::leased::{AutoLimiter, LeaseError, LeaseTerms, LeasedLimiter, Scheme};

/// Who decides on a limit.
#[derive(Clone, Debug)]
pub(super) enum Kept {
    Exact(ExactLimiter),
    Leased(LeasedLimiter),
    Auto(AutoLimiter),
    Places(SharedConcurrency),
}

/// The limiters of the limits that have been asked, by where those are in memory; each is held
/// here, so that no other can come to be there.
pub(super) struct Limiters {
    by_place: Mutex<HashMap<usize, (Arc<SharedLimit>, Kept)>>,
    exact: Exact,
    scripts: Arc<dyn Scripts>,
    runtime: Handle,
}

impl Limiters {
    pub(super) fn new(exact: Exact, scripts: Arc<dyn Scripts>, runtime: Handle) -> Self {
        Self {
            by_place: Mutex::default(),
            exact,
            scripts,
            runtime,
        }
    }

    /// Whether there can be a limiter of this limit.
    pub(super) fn validate(&self, limit: &SharedLimit) -> Result<(), String> {
        match how(limit) {
            How::Exact => self.exact_limiter(limit).map(drop),
            How::Leased(scheme) | How::Auto(scheme) => terms(limit, scheme).map(drop),
            How::Places(scheme) => {
                let valid = options(limit, scheme)?.validate();
                valid.map_err(|why| why.to_string())
            }
        }
    }

    /// The limiter of a limit: made when it is first asked for.
    pub(super) fn of(&self, limit: &Arc<SharedLimit>) -> Result<Kept, String> {
        let place = Arc::as_ptr(limit) as usize;
        let mut by_place = self.by_place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, kept)) = by_place.get(&place) {
            return Ok(kept.clone());
        }
        // Those of policies that are no longer in force.
        by_place.retain(|_, (limit, _)| Arc::strong_count(limit) > 1);
        let kept = self.make(limit)?;
        by_place.insert(place, (Arc::clone(limit), kept.clone()));
        Ok(kept)
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
                let builder = builder.scheme(scheme);
                let built = builder.build(Arc::clone(&self.scripts));
                let (limiter, driver) = built.map_err(|why| why.to_string())?;
                // It ends with the last of the limiters.
                self.runtime.spawn(driver.run());
                Ok(Kept::Leased(limiter))
            }
            How::Auto(scheme) => {
                let Algorithm::TokenBucket(quota) = limit.algorithm else {
                    return Err(LeaseError::Algorithm.to_string());
                };
                let scripts = Arc::clone(&self.scripts);
                let made = AutoLimiter::new(&limit.name, quota, scheme, scripts);
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
            .on_lease_lost(OnLeaseLost::Drain)),
        _ => Err("only `concurrency` has places".to_owned()),
    }
}
