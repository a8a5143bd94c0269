//! A node: the policy in force, and its reload.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::{ArcSwap, Guard};
use tidegate::{Clock, KeyHasher, QuotaError, SharedStore, Timestamp};
use tidegate_policy::{Complaint, Place, Policy, RedisPlace};

use crate::saved::Saved;
use crate::shared_limit::shared_complaints;
use crate::snapshot::Snapshot;

/// One node.
#[derive(Debug)]
pub struct Node {
    current: ArcSwap<Snapshot>,
    hasher: KeyHasher,
    clock: Arc<dyn Clock>,
    others: Others,
    /// Held through a reload: one at a time.
    status: Mutex<PolicyStatus>,
}

/// Where the policy comes from, and how its last reload went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicyStatus {
    /// The version in force.
    pub revision: u64,
    /// When it came into force.
    pub loaded_at: Timestamp,
    /// Reloads that took effect.
    pub reloads: u64,
    /// Reloads that were refused.
    pub refused: u64,
    /// Why the newest policy is not the one in force; `None` where it is.
    pub failure: Option<ReloadFailure>,
}

/// Why a policy was refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReloadFailure {
    /// The file.
    pub file: String,
    /// The line, from 1; 0 where the file could not be read at all.
    pub line: usize,
    /// The column, from 1; 0 where the file could not be read at all.
    pub column: usize,
    /// What is wrong.
    pub reason: String,
}

/// What there is of other nodes.
#[derive(Clone, Debug)]
pub(crate) enum Others {
    /// Nothing: limits that nodes share cannot be had.
    None,
    /// Nothing, and such limits are decided on as if there were no others.
    Simulated,
    /// Who keeps what nodes share.
    Store(Arc<dyn SharedStore>),
}

/// Why a policy cannot be put in force.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyError {
    /// The numbers of a limit make none; policies that were loaded from a file have been checked
    /// for that.
    Quota(QuotaError),
    /// A limit cannot be shared as it is to be.
    Shared {
        /// The limit's name.
        limit: String,
        /// What is wrong.
        reason: String,
    },
    /// It names another Redis than the node has.
    OtherRedis,
    /// It says that counts are kept elsewhere than the node keeps them.
    OtherState,
}

impl From<QuotaError> for PolicyError {
    fn from(error: QuotaError) -> Self {
        Self::Quota(error)
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quota(error) => error.fmt(f),
            Self::Shared { limit, reason } => {
                write!(f, "the limit `{limit}` cannot be shared: {reason}")
            }
            Self::OtherRedis => f.write_str("what `redis` says changes with a restart only"),
            Self::OtherState => f.write_str("what `state` says changes with a restart only"),
        }
    }
}

impl std::error::Error for PolicyError {}

impl Node {
    /// A node of this policy, on this clock, that is alone: it has no limits that nodes share.
    ///
    /// # Errors
    /// [`PolicyError`] where the policy cannot be put in force.
    pub fn new(policy: Policy, clock: Arc<dyn Clock>) -> Result<Arc<Self>, PolicyError> {
        Self::start(policy, clock, KeyHasher::random(), Others::None, None)
    }

    /// A node with a hasher of the caller's, for simulations that have to repeat themselves. It
    /// decides on limits that nodes share as if there were no others.
    ///
    /// # Errors
    /// As [`Node::new`].
    pub fn with_hasher(
        policy: Policy,
        clock: Arc<dyn Clock>,
        hasher: KeyHasher,
    ) -> Result<Arc<Self>, PolicyError> {
        Self::start(policy, clock, hasher, Others::Simulated, None)
    }

    /// A node among others: `store` keeps what they share.
    ///
    /// # Errors
    /// As [`Node::new`].
    pub fn with_store(
        policy: Policy,
        clock: Arc<dyn Clock>,
        store: Arc<dyn SharedStore>,
    ) -> Result<Arc<Self>, PolicyError> {
        let others = Others::Store(store);
        Self::start(policy, clock, KeyHasher::random(), others, None)
    }

    /// A node that goes on with the counts of one before, as if nobody had stopped and this
    /// policy had been put in force now; alone, or among others with whom `store` is shared.
    ///
    /// # Errors
    /// As [`Node::new`].
    pub fn restored(
        policy: Policy,
        clock: Arc<dyn Clock>,
        store: Option<Arc<dyn SharedStore>>,
        saved: Saved,
    ) -> Result<Arc<Self>, PolicyError> {
        let others = store.map_or(Others::None, Others::Store);
        let Saved { hasher, limits, .. } = saved;
        let before = Snapshot::of_saved(limits, hasher.clone(), Arc::clone(&clock));
        Self::start(policy, clock, hasher, others, Some(&before))
    }

    fn start(
        policy: Policy,
        clock: Arc<dyn Clock>,
        hasher: KeyHasher,
        others: Others,
        before: Option<&Snapshot>,
    ) -> Result<Arc<Self>, PolicyError> {
        let (its_hasher, its_clock) = (hasher.clone(), Arc::clone(&clock));
        let first = Snapshot::new(policy, its_hasher, its_clock, before, &others)?;
        first.define(&others);
        if before.is_some() {
            first.finish(clock.now());
        }
        let status = PolicyStatus {
            revision: 1,
            loaded_at: clock.now(),
            ..Default::default()
        };
        Ok(Arc::new(Self {
            current: ArcSwap::from_pointee(first),
            hasher,
            clock,
            others,
            status: Mutex::new(status),
        }))
    }

    /// The policy in force with its state. Cheap; hold it while one request is decided, not
    /// longer.
    pub fn snapshot(&self) -> Guard<Arc<Snapshot>> {
        self.current.load()
    }

    /// The clock that the node goes by.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// How the policy stands.
    pub fn status(&self) -> PolicyStatus {
        self.lock_status().clone()
    }

    /// Puts another policy in force. Limits of the same name and key keep what was used; the new
    /// numbers hold at once. Decisions go on meanwhile.
    ///
    /// # Errors
    /// [`PolicyError`] where it cannot be put in force: the old policy stays then.
    pub fn reload(&self, policy: Policy) -> Result<u64, PolicyError> {
        let mut status = self.lock_status();
        let old = self.current.load_full();
        let clock = Arc::clone(&self.clock);
        if is_other_redis(&policy, old.policy()) {
            return Err(PolicyError::OtherRedis);
        }
        if policy.state != old.policy().state {
            return Err(PolicyError::OtherState);
        }
        let hasher = self.hasher.clone();
        let new = Snapshot::new(policy, hasher, clock, Some(&old), &self.others)?;
        let new = Arc::new(new);
        // Before anybody asks for them.
        new.define(&self.others);
        self.current.store(Arc::clone(&new));
        new.tell_of_stores(&old);
        let now = self.clock.now();
        // What is of another kind now is taken over here, not by whoever asks next.
        new.finish(now);
        old.dismiss_lines_but(&new);
        status.revision = new.revision();
        status.loaded_at = now;
        status.reloads += 1;
        status.failure = None;
        Ok(new.revision())
    }

    /// What this node has against a policy that is right in itself: what
    /// [`reload`](Self::reload) would refuse it for. For [`tidegate_policy::parse_with`].
    pub fn complaints(&self, policy: &Policy) -> Vec<Complaint> {
        let mut complaints = match &self.others {
            Others::Store(store) => shared_complaints(policy, &|limit| store.validate(limit)),
            Others::None | Others::Simulated => Vec::new(),
        };
        if is_other_redis(policy, self.snapshot().policy()) {
            let place = Place::Redis(RedisPlace::Whole);
            let complaint = Complaint::error(place, PolicyError::OtherRedis.to_string());
            complaints.push(complaint.help("put back what was there, or start the node anew"));
        }
        if policy.state != self.snapshot().policy().state {
            let complaint = Complaint::error(Place::State, PolicyError::OtherState.to_string());
            complaints.push(complaint.help("put back what was there, or start the node anew"));
        }
        complaints
    }

    /// Notes that a policy was refused; the one in force stays.
    pub fn refuse(&self, failure: ReloadFailure) {
        let mut status = self.lock_status();
        status.refused += 1;
        status.failure = Some(failure);
    }

    fn lock_status(&self) -> std::sync::MutexGuard<'_, PolicyStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_other_redis(new: &Policy, old: &Policy) -> bool {
    match (&new.redis, &old.redis) {
        (Some(new), Some(old)) => !new.is_same(old),
        (new, old) => new.is_some() || old.is_some(),
    }
}
