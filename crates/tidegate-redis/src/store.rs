//! What nodes share, kept in Redis: the port of the engine, on exact, leased and concurrency
//! limits.
//!
//! Of several limits those are asked first that this node can answer by itself: leases, then
//! places, then exact limits, each kind all or nothing; what the first gave goes back if a later
//! one refuses.

mod check;
mod defined;
mod kept;
mod taken;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate::{
    Decision, SharedAnswers, SharedAsk, SharedFuture, SharedLimit, SharedStore,
    Unavailable as NotReached,
};
use tokio::runtime::Handle;

use self::defined::Defined;
pub use self::defined::DefinedBy;
pub use self::kept::validate;
use self::kept::{Kept, Limiters};
use crate::backoff::random;
use crate::call::Scripts;
use crate::exact::Exact;
use crate::key::Subject;
use crate::leased::LeasedLimiter;
use crate::members::Members;

/// How long a node that ends waits for Redis.
const LEAVES_WITHIN: Duration = Duration::from_secs(1);

/// Limits kept in one Redis, for a node: clones are the same.
#[derive(Clone)]
pub struct RedisStore(Arc<Inner>);

struct Inner {
    exact: Exact,
    members: Members,
    limiters: Arc<Limiters>,
    defined: Defined,
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
        Self::expecting(1, scripts, runtime)
    }

    /// The same, where until Redis has told how many nodes there are this one believes that there
    /// are so many, itself among them: it grants so large a part of a limit meanwhile.
    pub fn expecting(nodes: u64, scripts: Arc<dyn Scripts>, runtime: &Handle) -> Self {
        let exact = Exact::new(Arc::clone(&scripts));
        let limiters = Limiters::new(exact.clone(), Arc::clone(&scripts), runtime.clone());
        let limiters = Arc::new(limiters);
        Self(Arc::new(Inner {
            defined: Defined::new(Arc::clone(&scripts), Arc::clone(&limiters), runtime),
            limiters,
            exact,
            members: Members::join(scripts, random(), nodes, runtime),
            runtime: runtime.clone(),
        }))
    }

    /// The limits that other nodes define otherwise than this one, by name, and whose numbers they
    /// have.
    pub fn defined_elsewhere(&self) -> Vec<(String, DefinedBy)> {
        self.0.limiters.defined_elsewhere()
    }

    /// Tells the other nodes that this one ends, and gives back what it has leased, and its shares
    /// of places, so that the others have them from then on and each grants a larger share. It
    /// waits for Redis for a second at most, and not for guards of places that are still out; what
    /// was not given back by then is free when it expires. From then on leased limits admit
    /// nothing here.
    ///
    /// # Cancel safety
    /// Dropped before, it may have told them, or not; they find out within seconds.
    pub async fn leave(&self) {
        let inner = &self.0;
        let all = async { tokio::join!(inner.members.leave(), inner.limiters.leave()) };
        if tokio::time::timeout(LEAVES_WITHIN, all).await.is_err() {
            tracing::debug!("not everything could be given back in time");
        }
    }
}

impl SharedStore for RedisStore {
    fn validate(&self, limit: &SharedLimit) -> Result<(), String> {
        validate(limit)
    }

    fn define(&self, limits: Vec<Arc<SharedLimit>>) {
        self.0.limiters.set(&limits);
        self.0.defined.set(limits);
    }

    fn check_all(&self, asks: Vec<SharedAsk>) -> SharedFuture<SharedAnswers> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move { inner.check_all(&asks).await })
    }

    fn peek(&self, ask: SharedAsk) -> SharedFuture<Result<Decision, NotReached>> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move { inner.peek(&ask).await })
    }

    fn reset(
        &self,
        limit: Arc<SharedLimit>,
        key: Box<[u8]>,
    ) -> SharedFuture<Result<bool, NotReached>> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move {
            match inner.limiters.of(&limit).map_err(NotReached::new)? {
                Kept::Exact(limiter) => {
                    let reset = limiter.reset(Subject::new([&key])).await;
                    let reset = reset.map_err(|why| NotReached::new(why.to_string()));
                    reset.map(|()| true)
                }
                Kept::Leased(limiter) => reset_leased(&limiter, &key).await,
                Kept::Auto(limiter) => reset_leased(limiter.leased(), &key).await,
                // What is held cannot be taken back.
                Kept::Places(_) => Ok(false),
            }
        })
    }

    fn live_nodes(&self) -> u64 {
        self.0.members.count()
    }
}

async fn reset_leased(limiter: &LeasedLimiter, key: &[u8]) -> Result<bool, NotReached> {
    let reset = limiter.reset(Subject::new([key]).as_str()).await;
    reset
        .map(|()| true)
        .map_err(|why| NotReached::new(why.to_string()))
}
