//! Limits whose state several nodes share: the port behind which somebody keeps it.
//!
//! The engine knows what such a limit is and what is asked of it. Who keeps it (in Redis:
//! `tidegate-redis`) brings the network, and answers as the same limit would here.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use std::sync::Arc;

use crate::{Algorithm, Ask, Decision};

/// How nodes share a limit's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Sharing {
    /// Each decision is made where the state is.
    Exact,
    /// Nodes lease permits, and decide on their own while they have some.
    Leased(LeaseScheme),
    /// Each key is leased while it is asked for often, and exact otherwise.
    Auto(LeaseScheme),
    /// Of a concurrency limit: each node has a share of the places, which moves with demand.
    NodeShare,
    /// Of a concurrency limit: each place in use is an entry of its own with a deadline.
    Slots,
    /// Of a concurrency limit: what is inside is counted in two windows, and moved on.
    DoubleWindow,
}

/// What nodes may do on their own that cannot reach the state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LeaseScheme {
    /// Only what was set aside for that: never more than the limit, whatever fails short of the
    /// loss of the state itself.
    #[default]
    Strict,
    /// As long as nobody reaches it; more may pass where some do and some do not.
    Optimistic,
}

/// A limit as all nodes know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedLimit {
    /// Its name: nodes that use the same one mean the same limit.
    pub name: String,
    /// Its numbers: the limit's own, or those of an override.
    pub algorithm: Algorithm,
    /// How it is shared.
    pub sharing: Sharing,
    /// Which keys have these numbers, where several limits are of one name: nothing for the limit's
    /// own, else what the override matches. The same bytes on every node.
    pub keys: Box<[u8]>,
    /// Which edition of the limit this is; 0 where that is not said. Of nodes that define a limit
    /// differently, those with the newest say how it is counted.
    pub version: u64,
    /// Whether a node that cannot reach the state may go on with its share of a lease.
    pub on_its_own: bool,
    /// How many keys a node holds something of at a time.
    pub max_keys: usize,
}

/// One shared limit, and what is asked of it.
#[derive(Clone, Debug)]
pub struct SharedAsk {
    /// The limit.
    pub limit: Arc<SharedLimit>,
    /// The key, the same bytes on every node.
    pub key: Box<[u8]>,
    /// What is asked.
    pub ask: Ask,
}

/// The state cannot be reached, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable {
    /// Why, for people.
    pub why: String,
    /// Whether this node had its part of the limit as a lease of the key, so that no other part is
    /// due to it.
    pub had_lease: bool,
}

impl Unavailable {
    /// Nobody was reached, and there is no lease that could go on.
    pub fn new(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            had_lease: false,
        }
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl core::error::Error for Unavailable {}

/// What shared limits answer.
#[derive(Debug)]
pub struct SharedAnswers {
    /// In the order of the asks.
    pub decisions: Vec<Result<Decision, Unavailable>>,
    /// What was taken: something only where none of the limits that could be reached refused.
    pub taken: Option<Box<dyn SharedTaken>>,
}

/// What was taken of shared limits. Dropping it frees the places of concurrency limits; permits
/// of rates stay taken.
pub trait SharedTaken: fmt::Debug + Send + Sync {
    /// Gives back all of it. It is on its way when this returns.
    fn give_back(self: Box<Self>);

    /// Whether there are places in it, which have to be held until the request has ended.
    fn has_places(&self) -> bool;
}

/// An answer to come. Dropped before, it takes nothing, or gives back.
pub type SharedFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Who keeps what nodes share.
pub trait SharedStore: fmt::Debug + Send + Sync {
    /// Whether such a limit can be kept here.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    fn validate(&self, limit: &SharedLimit) -> Result<(), String>;

    /// These are the limits that this node shares from now on, and no others: the store tells other
    /// nodes how they are defined, and counts as the newest of them says. Nothing is waited for.
    fn define(&self, limits: Vec<Arc<SharedLimit>>) {
        drop(limits);
    }

    /// Takes what is asked from all of these limits, or from none. Limits that cannot be reached
    /// neither take nor refuse.
    fn check_all(&self, asks: Vec<SharedAsk>) -> SharedFuture<SharedAnswers>;

    /// What [`check_all`](Self::check_all) would answer to each alone, with what remains. Takes
    /// nothing.
    fn peek(&self, ask: SharedAsk) -> SharedFuture<Result<Decision, Unavailable>>;

    /// Makes a key as good as new, but for what is lent to nodes. False where it cannot: guards of
    /// it are alive.
    fn reset(
        &self,
        limit: Arc<SharedLimit>,
        key: Box<[u8]>,
    ) -> SharedFuture<Result<bool, Unavailable>>;

    /// How many nodes share the state, as far as this one knows: itself at least.
    fn live_nodes(&self) -> u64;
}
