//! A limit of the policy with the state behind it.

use std::sync::Arc;
use std::time::Duration;

use tidegate::store::StoreStats;
use tidegate::{Algorithm, Ask, Decision, Enforcer, Limit, QuotaError, Retry, Timestamp, Verdict};
use tidegate::{ConcurrencyLimiter, KeyHash, KeyHasher, SharedLimit, StoreId};
use tidegate_policy::{KeyPart, LimitRule, OnMissing};

use crate::call::Call;
use crate::counts::Counts;
use crate::key_bytes::KeyBytes;
use crate::node::{Others, PolicyError};
use crate::overrides::Overrides;
use crate::paced_limit::PacedLimit;
use crate::shared_limit::Shared;

/// A limit, its overrides, and their states.
#[derive(Debug)]
pub struct EnforcedLimit {
    rule: LimitRule,
    ipv6_prefix: u8,
    overrides: Overrides,
    /// The limit's own numbers, then each override's: all over one store.
    enforcers: Vec<Enforcer>,
    counts: Arc<Counts>,
    /// How other nodes have it, too.
    shared: Option<Shared>,
    /// Places for those who are kept waiting before they are refused.
    tarpit: Option<Arc<ConcurrencyLimiter>>,
}

/// What a request has to do with a limit.
pub(crate) enum Meets<'a> {
    /// It is counted under this key.
    Key {
        hash: KeyHash,
        enforcer: &'a Enforcer,
        algorithm: &'a Algorithm,
        /// The limit's share in what nodes share, if they do: with the place of the numbers that
        /// hold, and the key as other nodes have it, too.
        shared: Option<(&'a Shared, usize, Box<[u8]>)>,
    },
    /// Its bodies are held back, counted under this key.
    Paced(Box<PacedLimit>),
    /// It lacks this part, and is refused for it.
    Refused(&'a KeyPart),
    /// It lacks a part, or is exempt, and the limit does not apply.
    Passed,
}

impl EnforcedLimit {
    /// Whether [`new`](Self::new) will succeed: to be asked for all limits of a policy before the
    /// first is made, since making one changes the states of the limit before it.
    ///
    /// # Errors
    /// [`PolicyError`] where the numbers make no limit, an override is of another kind, or nodes
    /// cannot share it.
    pub(crate) fn validate(rule: &LimitRule, others: &Others) -> Result<(), PolicyError> {
        // A store without keys costs next to nothing.
        tidegate::enforcers(&algorithms(rule), 1)?;
        let validated = match (rule.shared, others) {
            (None, _) | (_, Others::Simulated) => Ok(()),
            (Some(shared), Others::Store(store)) => Shared::validate(rule, shared, &**store),
            (Some(_), Others::None) => Err("this node has no Redis".to_owned()),
        };
        validated.map_err(|reason| PolicyError::Shared {
            limit: rule.limit.name().to_owned(),
            reason,
        })
    }

    /// The limit of `rule` from `now` on; with the states of `old` where that counted by the same
    /// key.
    ///
    /// Where the states are of another kind, `old` is taken over little by little:
    /// [`finish`](Self::finish) has to be called once requests no longer meet it.
    pub(crate) fn new(
        rule: &LimitRule,
        (ipv6_prefix, version): (u8, u64),
        old: Option<&Self>,
        others: &Others,
        now: Timestamp,
    ) -> Result<Self, QuotaError> {
        let algorithms = algorithms(rule);
        let same_keys = old.filter(|old| {
            old.rule.key == rule.key
                && old.ipv6_prefix == ipv6_prefix
                && Unit::of(&old.rule) == Unit::of(rule)
        });
        let (max_keys, on_change) = (rule.max_keys, rule.on_change);
        let enforcers = match same_keys.and_then(|old| old.enforcers.first()) {
            Some(old) => tidegate::changed(&**old, &algorithms, max_keys, now, on_change)?,
            None => tidegate::enforcers(&algorithms, max_keys)?,
        };
        Ok(Self {
            rule: rule.clone(),
            ipv6_prefix,
            overrides: Overrides::new(&rule.overrides),
            enforcers,
            counts: old.map(|old| Arc::clone(&old.counts)).unwrap_or_default(),
            shared: match (rule.shared, others) {
                (Some(shared), Others::Store(store)) => {
                    let old = old.and_then(|old| old.shared.as_ref());
                    Some(Shared::new(rule, shared, version, Arc::clone(store), old))
                }
                _ => None,
            },
            tarpit: tarpit(rule, old)?,
        })
    }

    /// A limit of a node before as it was saved, for [`new`](Self::new) to make the limit of `rule`
    /// of, which has the same key.
    pub(crate) fn saved(rule: &LimitRule, ipv6_prefix: u8, enforcers: Vec<Enforcer>) -> Self {
        Self {
            rule: rule.clone(),
            ipv6_prefix,
            overrides: Overrides::default(),
            enforcers,
            counts: Arc::default(),
            shared: None,
            tarpit: None,
        }
    }

    /// The limit's own numbers over their store, then each override's.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = (&Enforcer, &Algorithm)> {
        let overrides = self.rule.overrides.iter().map(|one| &one.limit);
        let limits = std::iter::once(&self.rule.limit).chain(overrides);
        self.enforcers
            .iter()
            .zip(limits.map(tidegate::Limit::algorithm))
    }

    pub(crate) const fn ipv6_prefix(&self) -> u8 {
        self.ipv6_prefix
    }

    /// Takes over what is left of the states before.
    pub(crate) fn finish(&self, now: Timestamp) {
        self.enforcers[0].adopt_all(now);
    }

    pub(crate) fn store_id(&self) -> StoreId {
        self.enforcers[0].store_id()
    }

    /// Refuses those who wait in line for it.
    pub(crate) fn dismiss(&self) {
        self.enforcers[0].dismiss();
    }

    /// The limit, and each override, as nodes share them.
    pub(crate) fn shared_limits(&self) -> &[Arc<SharedLimit>] {
        self.shared.as_ref().map_or(&[], Shared::limits)
    }

    /// The limit as the policy has it.
    pub const fn rule(&self) -> &LimitRule {
        &self.rule
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        self.rule.limit.name()
    }

    /// How often it allowed and denied.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    pub(crate) const fn shared_counts(&self) -> &Arc<Counts> {
        &self.counts
    }

    /// How many places of this node's own concurrency limit are taken, of all keys; `None` for
    /// other limits. Looks at all that its store holds.
    pub fn in_use(&self) -> Option<u64> {
        let is_own = self.enforcers[0].is_gate() && self.shared.is_none();
        is_own.then(|| self.enforcers[0].all_in_use())
    }

    /// Since when the state that nodes share cannot be reached; `None` while it can, or for a
    /// limit of this node's own.
    pub fn unavailable_since(&self) -> Option<Timestamp> {
        self.shared.as_ref()?.unavailable_since()
    }

    /// What its store holds and has let go of.
    pub fn store_stats(&self) -> StoreStats {
        self.enforcers[0].stats()
    }

    /// The key of a request, for people; `None` where the limit does not apply to it.
    pub fn key_text(&self, call: &Call<'_>) -> Option<String> {
        let mut key = KeyBytes::of(&self.rule.key, call, self.ipv6_prefix);
        if self.by_what_is_missing(&mut key).is_some() {
            return None;
        }
        let parts = self.rule.key.iter().enumerate().map(|(index, part)| {
            key.value(index)
                .map_or_else(|| "-".to_owned(), |value| part.display_value(value))
        });
        Some(parts.collect::<Vec<_>>().join(" "))
    }

    /// What a request has to do with this limit, the `index`-th of the policy.
    pub(crate) fn meet<'a>(
        self: &'a Arc<Self>,
        index: usize,
        call: &Call<'_>,
        hasher: &KeyHasher,
    ) -> Meets<'a> {
        if !self.rule.exempt.is_empty() && self.rule.exempt.find(call.request, call.route).is_some()
        {
            return Meets::Passed;
        }
        let mut key = KeyBytes::of(&self.rule.key, call, self.ipv6_prefix);
        if let Some(meets) = self.by_what_is_missing(&mut key) {
            return meets;
        }
        let hash = hasher.hash_bytes(key.as_bytes());
        if let Some(rule) = self.rule.bandwidth {
            let paced = PacedLimit::new((index, self), rule, (key, hash), call.now);
            return Meets::Paced(Box::new(paced));
        }
        let (at, limit) = self.whose(&key);
        let shared = self.shared.as_ref();
        Meets::Key {
            hash,
            enforcer: &self.enforcers[at],
            algorithm: limit.algorithm(),
            shared: shared.map(|shared| (shared, at, Box::from(key.as_bytes()))),
        }
    }

    /// What becomes of a request that is not counted, because of what its key lacks.
    fn by_what_is_missing(&self, key: &mut KeyBytes) -> Option<Meets<'_>> {
        match (self.rule.on_missing, key.missing()) {
            (OnMissing::Deny, Some(missing)) => Some(Meets::Refused(&self.rule.key[missing])),
            (OnMissing::Pass, Some(_)) => Some(Meets::Passed),
            (OnMissing::PassIfEmpty, missing) => {
                if missing.is_some() {
                    key.make_missing_empty();
                }
                key.is_empty().then_some(Meets::Passed)
            }
            (OnMissing::Shared, _) | (_, None) => None,
        }
    }

    /// Whose numbers hold for a key: the limit's own, or an override's.
    fn whose(&self, key: &KeyBytes) -> (usize, &Limit) {
        match self.overrides.find(key) {
            Some(index) => (index + 1, &self.rule.overrides[index].limit),
            None => (0, &self.rule.limit),
        }
    }

    /// Of a limit of bandwidth: what holds for a key, and the burst in bytes.
    pub(crate) fn numbers_for(&self, key: &KeyBytes) -> (&Enforcer, u64) {
        let (at, limit) = self.whose(key);
        (&self.enforcers[at], limit.algorithm().permits_at_once())
    }

    /// Whether keys are the same as in this other version of it.
    pub(crate) fn counts_as(&self, other: &Self) -> bool {
        self.rule.key == other.rule.key && self.ipv6_prefix == other.ipv6_prefix
    }

    pub(crate) fn ask(&self, algorithm: &Algorithm, call: &Call<'_>) -> Ask {
        self.rule.ask(algorithm, call.permits, call.max_wait)
    }

    /// The same of one who goes to the line, with the priority that it has there.
    pub(crate) fn ask_in_line(&self, algorithm: &Algorithm, call: &Call<'_>) -> Ask {
        let ask = self.ask(algorithm, call);
        let first = self
            .rule
            .queue
            .as_ref()
            .and_then(|queue| queue.first.as_ref());
        first.map_or(ask, |first| {
            ask.priority(first.of(call.request, call.route, self.ipv6_prefix))
        })
    }

    /// Who is kept waiting before being refused; `None` where nobody is.
    pub const fn tarpit(&self) -> Option<&Arc<ConcurrencyLimiter>> {
        self.tarpit.as_ref()
    }
}

/// What a limit counts: nothing is left of a request in bytes, nor the other way.
#[derive(PartialEq, Eq)]
enum Unit {
    Requests,
    Bytes,
    /// A shadow limit of bandwidth owes what it never held back.
    BytesInShadow,
}

impl Unit {
    fn of(rule: &LimitRule) -> Self {
        match (rule.bandwidth.is_some(), rule.shadow) {
            (false, _) => Self::Requests,
            (true, false) => Self::Bytes,
            (true, true) => Self::BytesInShadow,
        }
    }
}

/// The limit's own numbers, then each override's.
fn algorithms(rule: &LimitRule) -> Vec<Algorithm> {
    std::iter::once(&rule.limit)
        .chain(rule.overrides.iter().map(|one| &one.limit))
        .map(|limit| *limit.algorithm())
        .collect()
}

/// The tarpit of `rule`; that of `old`, with those who are in it, where it has one.
fn tarpit(
    rule: &LimitRule,
    old: Option<&EnforcedLimit>,
) -> Result<Option<Arc<ConcurrencyLimiter>>, QuotaError> {
    let Some(tarpit) = rule.on_limit.as_ref().and_then(|on_limit| on_limit.tarpit) else {
        return Ok(None);
    };
    let length = tarpit.length as u64;
    match old.and_then(|old| old.tarpit.as_ref()) {
        Some(old) => {
            old.set_max(length)?;
            Ok(Some(Arc::clone(old)))
        }
        None => ConcurrencyLimiter::new(length).map(Arc::new).map(Some),
    }
}

/// What a request is told that no waiting helps.
pub(crate) const fn refusal() -> Decision {
    Decision {
        verdict: Verdict::Denied {
            retry: Retry::Never,
        },
        limit: 0,
        remaining: 0,
        reset_after: Duration::ZERO,
    }
}
