//! A limit that several nodes share, as this node has it: what it is to the others, and what holds
//! while they cannot be reached.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tidegate::{
    Decision, Enforcer, Retry, SharedLimit, SharedStore, Timestamp, Unavailable, Verdict,
};
use tidegate_policy::{Complaint, LimitRule, OnUnavailable, Override, Place, Policy, SharedRule};

use crate::reach::Reach;

/// How long a node may believe to know how many there are: after that, others may have come.
pub(crate) const SHARE_LASTS: Duration = Duration::from_secs(10);
/// What those who are refused for it are told to wait.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// The limit's own numbers, then each override's, as all nodes know them.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn SharedStore>,
    limits: Vec<Arc<SharedLimit>>,
    rule: SharedRule,
    max_keys: usize,
    /// Since when nothing has answered (Unix ns); 0 while it does.
    since: AtomicU64,
    /// What people are told of that.
    reach: Mutex<Reach>,
    /// Whether an answer may change that.
    has_missed: AtomicBool,
    /// This node's share, for as many nodes as there were when it was made.
    share: ArcSwapOption<Share>,
}

#[derive(Debug)]
struct Share {
    nodes: u64,
    /// `None` where the share is nothing.
    enforcers: Vec<Option<Enforcer>>,
}

/// What holds instead of an answer.
#[derive(Debug)]
pub(crate) enum Instead {
    /// This.
    Decision(Decision),
    /// What this node's share says.
    Share(Enforcer),
}

impl Shared {
    /// What `old` knew of whether it can be reached stays known: a reload gives no share anew the
    /// time that one lasts.
    pub(crate) fn new(
        rule: &LimitRule,
        shared: SharedRule,
        version: u64,
        store: Arc<dyn SharedStore>,
        old: Option<&Self>,
    ) -> Self {
        let limits: Vec<_> = limits_of(rule, shared, version).map(Arc::new).collect();
        let reach = old.map_or_else(Reach::default, |old| *old.reach());
        Self {
            store,
            limits,
            rule: shared,
            max_keys: rule.max_keys,
            since: AtomicU64::new(old.map_or(0, |old| old.since.load(Ordering::Relaxed))),
            has_missed: AtomicBool::new(!reach.is_well()),
            reach: Mutex::new(reach),
            share: ArcSwapOption::empty(),
        }
    }

    /// Whether the store can keep the limits of this rule.
    pub(crate) fn validate(
        rule: &LimitRule,
        shared: SharedRule,
        store: &dyn SharedStore,
    ) -> Result<(), String> {
        limits_of(rule, shared, 0).try_for_each(|limit| store.validate(&limit))
    }

    /// All of them.
    pub(crate) fn limits(&self) -> &[Arc<SharedLimit>] {
        &self.limits
    }

    /// The numbers at this place: 0 is the limit's own, then each override's.
    pub(crate) fn limit(&self, at: usize) -> &Arc<SharedLimit> {
        &self.limits[at]
    }

    /// Since when it cannot be reached.
    pub(crate) fn unavailable_since(&self) -> Option<Timestamp> {
        let since = self.since.load(Ordering::Relaxed);
        (since > 0).then(|| Timestamp::from_nanos(since))
    }

    /// Notes that it answered.
    pub(crate) fn reached(&self, now: Timestamp) {
        if self.since.load(Ordering::Relaxed) > 0 {
            self.since.store(0, Ordering::Relaxed);
        }
        if !self.has_missed.load(Ordering::Relaxed) {
            return;
        }
        let mut reach = self.reach();
        let change = reach.answered(now);
        self.has_missed.store(!reach.is_well(), Ordering::Relaxed);
        drop(reach);
        if change.is_some() {
            let limit = self.limits[0].name.as_str();
            tracing::info!(limit, "the shared limit answers again");
        }
    }

    fn missed(&self, now: Timestamp, why: &Unavailable) {
        let mut reach = self.reach();
        let change = reach.missed(now);
        self.has_missed.store(true, Ordering::Relaxed);
        drop(reach);
        if change.is_some() {
            let instead = match self.rule.on_unavailable {
                OnUnavailable::LocalShare { .. } => "this node's share",
                OnUnavailable::Open => "everything passes",
                OnUnavailable::Closed => "nothing passes",
            };
            let limit = self.limits[0].name.as_str();
            tracing::warn!(limit, instead, %why, "the shared limit does not answer");
        }
    }

    fn reach(&self) -> MutexGuard<'_, Reach> {
        // Each change of it leaves nothing half-done.
        self.reach.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What holds at `now` where it did not answer.
    pub(crate) fn instead(&self, at: usize, now: Timestamp, why: &Unavailable) -> Instead {
        let first = self.since.compare_exchange(
            0,
            now.as_nanos().max(1),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        self.missed(now, why);
        let since = Timestamp::from_nanos(first.err().unwrap_or(now.as_nanos()));
        match self.rule.on_unavailable {
            OnUnavailable::Open => Instead::Decision(self.fixed(at, true)),
            OnUnavailable::Closed => Instead::Decision(self.fixed(at, false)),
            OnUnavailable::LocalShare { then_open } => {
                // A lease has its share in it, and places are shared out, or have no shares.
                let has_had = why.had_lease || self.limits[at].algorithm.is_gate();
                if has_had || now.since(since) >= SHARE_LASTS {
                    return Instead::Decision(self.fixed(at, then_open));
                }
                match self.share(at) {
                    Some(share) => Instead::Share(share),
                    None => Instead::Decision(self.fixed(at, false)),
                }
            }
        }
    }

    fn fixed(&self, at: usize, is_open: bool) -> Decision {
        let limit = self.limits[at].algorithm.permits_at_once();
        let verdict = if is_open {
            Verdict::Allowed {
                delay: Duration::ZERO,
            }
        } else {
            Verdict::Denied {
                retry: Retry::After(TRY_AGAIN),
            }
        };
        Decision {
            verdict,
            limit,
            remaining: if is_open { limit } else { 0 },
            reset_after: TRY_AGAIN,
        }
    }

    /// The limit of this node's share; `None` where that is nothing.
    fn share(&self, at: usize) -> Option<Enforcer> {
        let nodes = self.store.live_nodes().max(1);
        let share = self.share.load();
        if let Some(share) = share.as_ref().filter(|share| share.nodes == nodes) {
            return share.enforcers[at].clone();
        }
        let enforcers = self.limits.iter().map(|limit| {
            let share = limit.algorithm.share_of(nodes)?;
            let mut enforcers = tidegate::enforcers(&[share], self.max_keys).ok()?;
            enforcers.pop()
        });
        let made = Arc::new(Share {
            nodes,
            enforcers: enforcers.collect(),
        });
        // Of two who make it at once, the first makes it for both.
        let before = self.share.compare_and_swap(&share, Some(Arc::clone(&made)));
        let holds = match before.as_ref() {
            Some(theirs) if theirs.nodes == nodes => Arc::clone(theirs),
            _ => made,
        };
        holds.enforcers[at].clone()
    }
}

/// What `validate`, of a store that nodes share, says against the limits of a policy: to be told
/// with its places by [`tidegate_policy::parse_with`].
pub fn shared_complaints(
    policy: &Policy,
    validate: &dyn Fn(&SharedLimit) -> Result<(), String>,
) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (at, rule) in policy.limits.iter().enumerate() {
        let Some(shared) = rule.shared else { continue };
        for (index, limit) in limits_of(rule, shared, 0).enumerate() {
            if let Err(why) = validate(&limit) {
                let place = Place::Numbers {
                    rule: at,
                    of_override: index.checked_sub(1),
                };
                complaints.push(Complaint::error(
                    place,
                    format!("this cannot be shared: {why}"),
                ));
            }
        }
    }
    complaints
}

/// The limit of a rule, then those of its overrides.
fn limits_of(
    rule: &LimitRule,
    shared: SharedRule,
    version: u64,
) -> impl Iterator<Item = SharedLimit> {
    let max_keys = rule.max_keys;
    let overrides = rule.overrides.iter().map(|one| (&one.limit, keys_of(one)));
    let all = std::iter::once((&rule.limit, Box::default())).chain(overrides);
    all.map(move |(limit, keys)| SharedLimit {
        name: limit.name().to_owned(),
        algorithm: *limit.algorithm(),
        sharing: shared.sharing,
        keys,
        version,
        max_keys,
        on_its_own: matches!(shared.on_unavailable, OnUnavailable::LocalShare { .. }),
    })
}

/// What an override matches, part by part: a 0 for anything, else a 1, the length and the bytes.
fn keys_of(one: &Override) -> Box<[u8]> {
    let mut keys = Vec::new();
    for part in &one.matches {
        match part {
            None => keys.push(0),
            Some(bytes) => {
                keys.push(1);
                keys.extend((bytes.len() as u64).to_be_bytes());
                keys.extend_from_slice(bytes);
            }
        }
    }
    keys.into()
}
