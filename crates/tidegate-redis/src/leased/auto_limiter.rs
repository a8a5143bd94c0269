//! A limit whose keys are leased while they are asked for often, and decided on in Redis
//! otherwise.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidegate::{Algorithm, Clock, Decision, Quota, Retry, SystemClock, Timestamp, Verdict};

use super::auto::{AutoLease, LeaseMode};
use super::limiter::{LeaseDriver, LeasedLimiter, LeasedLimiterBuilder, redis_key};
use super::pipeline::LeasePipeline;
use super::terms::{LeaseError, LeaseTerms, Scheme};
use super::wire::{SpendReply, SpendRequest};
use crate::call::{Scripts, Unavailable};

/// How long a call may take.
const BUDGET: Duration = Duration::from_millis(25);
/// A key that nobody has asked for in so many refreshes need not be followed.
const FORGOTTEN_AFTER: u32 = 20;

/// A token bucket per key that many nodes share: leased by nodes that ask for it often
/// ([`AutoLease`] is the rule), and asked for in Redis by the others, of the same bucket.
///
/// What it guarantees is what a [`LeasedLimiter`] does. Clones are the same.
#[derive(Clone)]
pub struct AutoLimiter(Arc<Inner>);

struct Inner {
    name: String,
    family: String,
    quota: Quota,
    terms: LeaseTerms,
    leased: LeasedLimiter,
    scripts: Arc<dyn Scripts>,
    clock: Arc<dyn Clock>,
    /// Keys whose demand is followed at once; who comes beyond that is decided on in Redis.
    max_keys: usize,
    keys: Mutex<Keys>,
}

/// Keys whose demand is followed.
#[derive(Debug, Default)]
struct Keys {
    followed: HashMap<Box<str>, Followed>,
    /// When it was last looked for some to be forgotten.
    swept: Option<Timestamp>,
}

impl Keys {
    /// Whether one more may be followed, of so many at most. Those that nobody has asked for in
    /// this time are forgotten. All are looked at once in that time, not for each new key.
    fn have_room(&mut self, most: usize, forgotten_after: Duration, now: Timestamp) -> bool {
        let is_swept = |at: Timestamp| now.since(at) < forgotten_after;
        if self.followed.len() >= most && !self.swept.is_some_and(is_swept) {
            self.swept = Some(now);
            self.followed
                .retain(|_, followed| now.since(followed.since) < forgotten_after);
        }
        self.followed.len() < most
    }
}

/// A key whose demand is followed.
#[derive(Debug)]
struct Followed {
    auto: AutoLease,
    /// Permits asked for since then.
    asked: u64,
    since: Timestamp,
    /// How many nodes lease it, as far as this one was told.
    nodes: u64,
    /// Redis did not answer the last time that it was asked.
    is_away: bool,
}

impl fmt::Debug for AutoLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AutoLimiter")
            .field("name", &self.0.name)
            .field("leased", &self.0.leased)
            .finish_non_exhaustive()
    }
}

impl AutoLimiter {
    /// A limiter of this name, and what has to run for its leases.
    ///
    /// # Errors
    /// [`LeaseError`] where the quota cannot be leased at all.
    pub fn new(
        name: &str,
        quota: Quota,
        scheme: Scheme,
        scripts: Arc<dyn Scripts>,
    ) -> Result<(Self, LeaseDriver), LeaseError> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        Self::with_clock(name, quota, scheme, scripts, clock)
    }

    /// The same on another clock than the system's, which must go on as tokio's timers do.
    ///
    /// # Errors
    /// As [`AutoLimiter::new`].
    pub fn with_clock(
        name: &str,
        quota: Quota,
        scheme: Scheme,
        scripts: Arc<dyn Scripts>,
        clock: Arc<dyn Clock>,
    ) -> Result<(Self, LeaseDriver), LeaseError> {
        let builder = LeasedLimiter::builder(name, quota).scheme(scheme);
        Self::of(builder.clock(clock), &LeasePipeline::new(scripts))
    }

    /// A limiter whose leases are such, with as many keys at most.
    ///
    /// # Errors
    /// As [`AutoLimiter::new`].
    pub fn of(
        builder: LeasedLimiterBuilder,
        pipeline: &LeasePipeline,
    ) -> Result<(Self, LeaseDriver), LeaseError> {
        let (name, algorithm, max_keys) = builder.what();
        // What is spent without a lease is of a bucket.
        let Algorithm::TokenBucket(quota) = algorithm else {
            return Err(LeaseError::Algorithm);
        };
        let (leased, driver) = builder.build_in(pipeline)?;
        let inner = Inner {
            name,
            family: leased.terms().family(),
            quota,
            max_keys,
            terms: *leased.terms(),
            clock: leased.clock(),
            leased,
            scripts: Arc::clone(pipeline.scripts()),
            keys: Mutex::default(),
        };
        Ok((Self(Arc::new(inner)), driver))
    }

    /// Takes `permits` of this key if they are there: at once where it is leased, else after one
    /// call of Redis, or none where that does not answer.
    ///
    /// # Errors
    /// [`Unavailable`] where the key is not leased and Redis does not answer in time: whether the
    /// permits were taken is not known.
    ///
    /// # Cancel safety
    /// Dropped while Redis is asked, the permits may be taken.
    pub async fn check(&self, key: &str, permits: u64) -> Result<Decision, Unavailable> {
        match self.mode(key, permits) {
            LeaseMode::Leased => Ok(self.0.leased.check_async(key, permits).await),
            LeaseMode::Exact => self.spend(key, permits).await,
        }
    }

    /// Who decides on keys that are leased.
    pub(crate) fn leased(&self) -> &LeasedLimiter {
        &self.0.leased
    }

    /// How a key is to be asked for, by somebody who is about to ask for so many permits of it.
    pub(crate) fn mode(&self, key: &str, permits: u64) -> LeaseMode {
        let (inner, now) = (&*self.0, self.0.clock.now());
        let refresh = inner.terms.refresh();
        let mut keys = inner.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if !keys.followed.contains_key(key)
            && !keys.have_room(inner.max_keys, refresh * FORGOTTEN_AFTER, now)
        {
            return LeaseMode::Exact;
        }
        let followed = keys.followed.entry(key.into()).or_insert_with(|| Followed {
            auto: AutoLease::new(inner.terms),
            asked: 0,
            since: now,
            nodes: 1,
            is_away: false,
        });
        followed.asked = followed.asked.saturating_add(permits);
        let passed = now.since(followed.since).as_nanos();
        if passed < refresh.as_nanos() {
            return followed.auto.mode();
        }
        let demand = u128::from(followed.asked) * 1_000_000_000 / passed.max(1);
        let demand = u64::try_from(demand).unwrap_or(u64::MAX);
        (followed.asked, followed.since) = (0, now);
        // There is nobody to lease it from.
        if followed.is_away && followed.auto.mode() == LeaseMode::Exact {
            return LeaseMode::Exact;
        }
        followed.auto.note(now, demand, followed.nodes)
    }

    /// Takes permits in Redis, from what is not leased.
    pub(crate) async fn spend(&self, key: &str, permits: u64) -> Result<Decision, Unavailable> {
        let inner = &*self.0;
        let request = SpendRequest {
            want: permits,
            unit: permits.max(1),
            returned: 0,
        };
        let call = request.call(&redis_key(key, &inner.name, &inner.family), &inner.terms);
        let answer = inner.scripts.call(call, BUDGET).await;
        let reply = answer.and_then(|answer| SpendReply::from_answer(&answer));
        {
            let mut keys = inner.keys.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(followed) = keys.followed.get_mut(key) {
                followed.is_away = reply.is_err();
                if let Ok(reply) = &reply {
                    // This node would be one more.
                    followed.nodes = reply.nodes.saturating_add(1);
                }
            }
        }
        let reply = reply?;
        let burst = inner.quota.burst_permits();
        let verdict = if reply.granted >= permits {
            Verdict::Allowed {
                delay: Duration::ZERO,
            }
        } else if permits > burst {
            Verdict::Denied {
                retry: Retry::Never,
            }
        } else {
            let wait = Duration::from_micros(reply.retry_micros.max(1));
            Verdict::Denied {
                retry: Retry::After(wait),
            }
        };
        let missing =
            Algorithm::TokenBucket(inner.quota).time_for(burst.saturating_sub(reply.remaining));
        Ok(Decision {
            verdict,
            limit: burst,
            remaining: reply.remaining,
            reset_after: missing,
        })
    }

    /// Puts back permits that were spent in Redis. If it does not answer they are lost: less is
    /// admitted, never more.
    pub(crate) async fn unspend(&self, key: &str, permits: u64) {
        let inner = &*self.0;
        let request = SpendRequest {
            want: 0,
            unit: 1,
            returned: permits,
        };
        let call = request.call(&redis_key(key, &inner.name, &inner.family), &inner.terms);
        if let Err(error) = inner.scripts.call(call, BUDGET).await {
            tracing::debug!(%error, "permits were not given back");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With every key in use each new one had all of them looked at, under the lock.
    #[test]
    fn a_table_full_of_keys_in_use_is_not_looked_through_for_each_new_one() {
        let terms = LeaseTerms::new(&Quota::per_second(100), Scheme::Strict).unwrap();
        let at = |millis: u64| Timestamp::from_millis(1_000_000 + millis);
        let mut keys = Keys::default();
        let followed = |since| Followed {
            auto: AutoLease::new(terms),
            asked: 0,
            since,
            nodes: 1,
            is_away: false,
        };
        keys.followed.insert("a".into(), followed(at(0)));
        keys.followed.insert("b".into(), followed(at(500)));
        let mut have_room = |millis| keys.have_room(2, Duration::from_secs(2), at(millis));
        assert!(!have_room(1_900));
        // One could go, if it were looked at.
        assert!(!have_room(2_100));
        assert!(!have_room(3_899));
        assert!(have_room(3_900));
    }

    #[derive(Debug)]
    struct Nowhere;

    impl Scripts for Nowhere {
        fn call(&self, _: crate::ScriptCall, budget: Duration) -> crate::Answer<'_> {
            Box::pin(async move { Err(Unavailable::TimedOut(budget)) })
        }
    }

    /// From then on it had neither a lease nor a share.
    #[test]
    fn a_key_is_not_leased_while_redis_does_not_answer() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let clock = tidegate::ManualClock::new(Timestamp::from_secs(1_000));
        let quota = Quota::per_second(20_000).burst(2_000);
        let (scheme, time) = (Scheme::Strict, Arc::new(clock.clone()));
        let made = AutoLimiter::with_clock("api", quota, scheme, Arc::new(Nowhere), time);
        let (limiter, _driver) = made.unwrap();
        for _ in 0..20 {
            clock.advance(Duration::from_millis(30));
            for _ in 0..20 {
                assert_eq!(limiter.mode("alice", 1), LeaseMode::Exact);
                assert!(runtime.block_on(limiter.spend("alice", 1)).is_err());
            }
        }
    }
}
