//! One version of the policy with the state behind it, for requests to be decided on.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tidegate::{Clock, KeyHasher, QuotaError, Timestamp};
use tidegate_policy::Policy;

use crate::enforced_limit::EnforcedLimit;
use crate::node::{Others, PolicyError};

/// A policy that is in force: what a request sees from start to end, whatever is reloaded
/// meanwhile.
#[derive(Debug)]
pub struct Snapshot {
    policy: Policy,
    revision: u64,
    limits: Vec<Arc<EnforcedLimit>>,
    hasher: KeyHasher,
    clock: Arc<dyn Clock>,
}

impl Snapshot {
    /// `policy` in force; with the states of `old` for limits of the same name and key.
    pub(crate) fn new(
        policy: Policy,
        hasher: KeyHasher,
        clock: Arc<dyn Clock>,
        old: Option<&Self>,
        others: &Others,
    ) -> Result<Self, PolicyError> {
        let by_name: HashMap<&str, &Arc<EnforcedLimit>> = old
            .iter()
            .flat_map(|old| &old.limits)
            .map(|limit| (limit.name(), limit))
            .collect();
        // All of it, before the first limit takes the place of an old one.
        for rule in &policy.limits {
            EnforcedLimit::validate(rule, others)?;
        }
        let (of_policy, now) = ((policy.ipv6_prefix(), policy.version), clock.now());
        let limits = policy.limits.iter().map(|rule| {
            let old = by_name.get(rule.limit.name()).map(|old| &***old);
            EnforcedLimit::new(rule, of_policy, old, others, now).map(Arc::new)
        });
        let limits = limits.collect::<Result<_, QuotaError>>()?;
        let revision = old.map_or(1, |old| old.revision + 1);
        Ok(Self {
            policy,
            revision,
            limits,
            hasher,
            clock,
        })
    }

    /// Limits of a node before, under no policy: what a first policy takes the place of.
    pub(crate) fn of_saved(
        limits: Vec<Arc<EnforcedLimit>>,
        hasher: KeyHasher,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            policy: Policy::default(),
            revision: 0,
            limits,
            hasher,
            clock,
        }
    }

    /// Tells the store what this node shares.
    pub(crate) fn define(&self, others: &Others) {
        if let Others::Store(store) = others {
            let limits = self.limits.iter().flat_map(|limit| limit.shared_limits());
            store.define(limits.cloned().collect());
        }
    }

    /// Says of which limits nothing is kept, since their counts are elsewhere from now on.
    pub(crate) fn tell_of_stores(&self, old: &Self) {
        let by_name: HashMap<&str, &'static str> = old
            .limits
            .iter()
            .map(|limit| (limit.name(), limit.rule().store()))
            .collect();
        for limit in &self.limits {
            let (name, to) = (limit.name(), limit.rule().store());
            match by_name.get(name) {
                Some(from) if *from != to => {
                    let what = "the limit is kept elsewhere, and begins anew";
                    tracing::warn!(limit = name, from, to, "{what}");
                }
                _ => {}
            }
        }
    }

    /// Takes over what is left of the version before.
    pub(crate) fn finish(&self, now: Timestamp) {
        for limit in &self.limits {
            limit.finish(now);
        }
    }

    /// Refuses those who wait in lines that have no place in the version after this one: they are
    /// decided on anew, under that.
    pub(crate) fn dismiss_lines_but(&self, next: &Self) {
        let stores: HashSet<_> = next.limits.iter().map(|limit| limit.store_id()).collect();
        for limit in &self.limits {
            if !stores.contains(&limit.store_id()) {
                limit.dismiss();
            }
        }
    }

    /// The policy.
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Which version it is: 1 for the first, one more with each reload.
    pub const fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) const fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    pub(crate) const fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// The limits, by their index in the policy.
    pub fn limits(&self) -> &[Arc<EnforcedLimit>] {
        &self.limits
    }
}
