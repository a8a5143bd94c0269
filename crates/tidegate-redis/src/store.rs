//! What nodes share, kept in Redis: the port of the engine, on exact, leased and concurrency
//! limits.

mod taken;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tidegate::{
    Ask, Decision, Limit, SharedAnswers, SharedAsk, SharedFuture, SharedLimit, SharedStore,
    SharedTaken, Sharing, Unavailable as NotReached, Verdict,
};
use tokio::runtime::Handle;

use self::taken::ExactTaken;
use crate::backoff::random;
use crate::call::Scripts;
use crate::exact::{CheckFailed, Exact, ExactLimiter};
use crate::key::Subject;
use crate::members::Members;

/// Limits kept in one Redis, for a node: clones are the same.
#[derive(Clone)]
pub struct RedisStore(Arc<Inner>);

struct Inner {
    exact: Exact,
    members: Members,
    /// The limiters of the limits that were asked, by where those are; each holds its own, so that
    /// no other can come to be there.
    limiters: Mutex<HashMap<usize, (Arc<SharedLimit>, ExactLimiter)>>,
    runtime: Handle,
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("members", &self.0.members)
            .finish_non_exhaustive()
    }
}

impl RedisStore {
    /// A node of its own (one of an id that nobody has had) behind these scripts. What goes on
    /// beside its callers goes on in `runtime`.
    pub fn new(scripts: Arc<dyn Scripts>, runtime: &Handle) -> Self {
        Self(Arc::new(Inner {
            exact: Exact::new(Arc::clone(&scripts)),
            members: Members::join(scripts, random(), runtime),
            limiters: Mutex::default(),
            runtime: runtime.clone(),
        }))
    }
}

impl Inner {
    fn exact_limiter(&self, limit: &Arc<SharedLimit>) -> Result<ExactLimiter, String> {
        let place = Arc::as_ptr(limit) as usize;
        let mut limiters = self.limiters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, limiter)) = limiters.get(&place) {
            return Ok(limiter.clone());
        }
        // Those of policies that are no longer in force.
        limiters.retain(|_, (limit, _)| Arc::strong_count(limit) > 1);
        let limiter = new_limiter(&self.exact, limit)?;
        limiters.insert(place, (Arc::clone(limit), limiter.clone()));
        Ok(limiter)
    }

    /// Asks exact limits, all or nothing: those that ask the same are decided as one, the others
    /// one after the other.
    async fn check_exact(&self, asks: &[SharedAsk]) -> SharedAnswers {
        let mut decisions: Vec<Option<Result<Decision, NotReached>>> = vec![None; asks.len()];
        // Dropped before it is kept, it goes back.
        let mut taken = ExactTaken::new(self.exact.clone(), self.runtime.clone());
        let mut is_refused = false;
        let mut rest: Vec<usize> = (0..asks.len()).collect();
        while let Some(&first) = rest.first().filter(|_| !is_refused) {
            let ask = asks[first].ask;
            let same: Vec<usize>;
            (same, rest) = rest.iter().partition(|at| asks[**at].ask == ask);
            match self.check_same(asks, &same, ask).await {
                Ok((said, receipts)) => {
                    is_refused = said.iter().any(|(_, decision)| decision.is_denied());
                    taken.receipts.extend(receipts);
                    for (at, decision) in said {
                        decisions[at] = Some(Ok(decision));
                    }
                }
                Err(why) => same
                    .iter()
                    .for_each(|at| decisions[*at] = Some(Err(why.clone()))),
            }
        }
        let decided = decisions.into_iter().zip(asks);
        let has_taken = !is_refused && !taken.receipts.is_empty();
        SharedAnswers {
            decisions: decided
                .map(|(decision, ask)| decision.unwrap_or_else(|| Ok(not_asked(&ask.limit))))
                .collect(),
            taken: has_taken.then(|| Box::new(taken.keep()) as Box<dyn SharedTaken>),
        }
    }

    async fn check_same(
        &self,
        asks: &[SharedAsk],
        which: &[usize],
        ask: Ask,
    ) -> Result<(Vec<(usize, Decision)>, Vec<crate::exact::ExactReceipt>), NotReached> {
        let limiters = which
            .iter()
            .map(|at| self.exact_limiter(&asks[*at].limit).map_err(NotReached))
            .collect::<Result<Vec<_>, _>>()?;
        let limits: Vec<_> = limiters
            .iter()
            .zip(which)
            .map(|(limiter, at)| (limiter, subject(&asks[*at])))
            .collect();
        let checked = self.exact.check_all(&limits, ask).await;
        let checked = checked.map_err(|error| NotReached(said_of(&error)))?;
        let said = checked
            .decisions()
            .filter_map(|(at, decision)| Some((*which.get(at)?, *decision)))
            .collect();
        Ok((said, checked.into_receipts()))
    }
}

fn new_limiter(exact: &Exact, limit: &SharedLimit) -> Result<ExactLimiter, String> {
    let named = Limit::new(limit.name.as_str(), limit.algorithm).map_err(|why| why.to_string())?;
    exact.limiter(&named).map_err(|why| why.to_string())
}

/// The key parts are told apart already.
fn subject(ask: &SharedAsk) -> Subject {
    Subject::new([&ask.key])
}

fn said_of(error: &CheckFailed) -> String {
    match error {
        CheckFailed::Unavailable(error) => error.to_string(),
        CheckFailed::List(error) => error.to_string(),
    }
}

/// Of a limit that another's refusal made it unnecessary to ask.
fn not_asked(limit: &SharedLimit) -> Decision {
    let most = limit.algorithm.permits_at_once();
    Decision {
        verdict: Verdict::Allowed {
            delay: std::time::Duration::ZERO,
        },
        limit: most,
        remaining: most,
        reset_after: std::time::Duration::ZERO,
    }
}

impl SharedStore for RedisStore {
    fn validate(&self, limit: &SharedLimit) -> Result<(), String> {
        match limit.sharing {
            Sharing::Exact => new_limiter(&self.0.exact, limit).map(drop),
            _ => Err("this version shares `store: exact` only".to_owned()),
        }
    }

    fn check_all(&self, asks: Vec<SharedAsk>) -> SharedFuture<SharedAnswers> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move { inner.check_exact(&asks).await })
    }

    fn peek(&self, ask: SharedAsk) -> SharedFuture<Result<Decision, NotReached>> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move {
            let limiter = inner.exact_limiter(&ask.limit).map_err(NotReached)?;
            let peeked = limiter.peek(subject(&ask), ask.ask).await;
            peeked.map_err(|why| NotReached(why.to_string()))
        })
    }

    fn reset(
        &self,
        limit: Arc<SharedLimit>,
        key: Box<[u8]>,
    ) -> SharedFuture<Result<bool, NotReached>> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move {
            let limiter = inner.exact_limiter(&limit).map_err(NotReached)?;
            let reset = limiter.reset(Subject::new([&key])).await;
            reset
                .map_err(|why| NotReached(why.to_string()))
                .map(|()| true)
        })
    }

    fn live_nodes(&self) -> u64 {
        self.0.members.count()
    }
}
