//! One version of the policy with the state behind it, and the decision path.

use std::collections::HashMap;
use std::sync::Arc;

use smallvec::SmallVec;
use tidegate::{
    Algorithm, Answer, Asked, Clock, Decision, Enforcer, KeyHash, KeyHasher, QuotaError, Receipt,
    Timestamp, check_all_with_receipts,
};
use tidegate_policy::{KeyPart, Policy};

use crate::admission::{Admission, Applied};
use crate::call::Call;
use crate::counts::Outcome;
use crate::enforced_limit::{EnforcedLimit, Meets, refusal};

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

/// A limit that a request meets, with everything to ask it.
struct Met<'a> {
    limit: &'a EnforcedLimit,
    algorithm: &'a Algorithm,
    enforcer: &'a Enforcer,
    hash: KeyHash,
}

impl Snapshot {
    /// `policy` in force; with the states of `old` for limits of the same name and key.
    pub(crate) fn new(
        policy: Policy,
        hasher: KeyHasher,
        clock: Arc<dyn Clock>,
        old: Option<&Self>,
    ) -> Result<Self, QuotaError> {
        let by_name: HashMap<&str, &Arc<EnforcedLimit>> = old
            .iter()
            .flat_map(|old| &old.limits)
            .map(|limit| (limit.name(), limit))
            .collect();
        // All of it, before the first limit takes the place of an old one.
        for rule in &policy.limits {
            EnforcedLimit::validate(rule)?;
        }
        let (ipv6_prefix, now) = (policy.ipv6_prefix(), clock.now());
        let limits = policy.limits.iter().map(|rule| {
            let old = by_name.get(rule.limit.name()).map(|old| &***old);
            EnforcedLimit::new(rule, ipv6_prefix, old, now).map(Arc::new)
        });
        let limits = limits.collect::<Result<_, _>>()?;
        let revision = old.map_or(1, |old| old.revision + 1);
        Ok(Self {
            policy,
            revision,
            limits,
            hasher,
            clock,
        })
    }

    /// Takes over what is left of the version before.
    pub(crate) fn finish(&self, now: Timestamp) {
        for limit in &self.limits {
            limit.finish(now);
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

    /// The limits, by their index in the policy.
    pub fn limits(&self) -> &[Arc<EnforcedLimit>] {
        &self.limits
    }

    /// Decides on a request under all its limits at once: all of them are charged, or none.
    ///
    /// A request that lacks a part of a key is refused, passed by, or counted with all others
    /// that lack it, as the limit says. Shadow limits decide and count beside the others, and
    /// change nothing. A limit that is named twice is asked once.
    pub fn decide<'a>(&'a self, call: &Call<'_>) -> Admission<'a> {
        let mut enforced: SmallVec<[Met<'a>; 4]> = SmallVec::new();
        let mut shadow: SmallVec<[Met<'a>; 2]> = SmallVec::new();
        for (at, &index) in call.limits.iter().enumerate() {
            let twice = call.limits[..at].contains(&index);
            let Some(limit) = self.limits.get(index).filter(|_| !twice) else {
                continue;
            };
            match limit.meet(call, &self.hasher) {
                Meets::Passed => {}
                Meets::Refused(_) if limit.rule().shadow => {
                    limit.counts().add(Outcome::ShadowDenied);
                }
                Meets::Refused(missing) => return refuse(limit, missing, call),
                Meets::Key {
                    hash,
                    enforcer,
                    algorithm,
                } => {
                    let met = Met {
                        limit,
                        algorithm,
                        enforcer,
                        hash,
                    };
                    if limit.rule().shadow {
                        shadow.push(met);
                    } else {
                        enforced.push(met);
                    }
                }
            }
        }
        let mut admission = Admission::default();
        if call.peek {
            admission
                .applied
                .extend(enforced.iter().map(|met| met.peek(call)));
            admission
                .shadow
                .extend(shadow.iter().map(|met| met.peek(call)));
            return admission;
        }
        decide_enforced(&enforced, call, &mut admission);
        decide_shadow(&shadow, call, &mut admission);
        admission.count();
        if admission.delay().is_zero() {
            admission.hold.go_ahead();
        } else {
            // A wait that is given up gives back, and rates want to know when.
            admission.hold.clock = Some(Arc::clone(&self.clock));
        }
        admission
    }
}

/// Refuses a request that lacks a part of a key. No other limit is asked, none is charged.
fn refuse<'a>(limit: &'a EnforcedLimit, missing: &'a KeyPart, call: &Call<'_>) -> Admission<'a> {
    if !call.peek {
        limit.counts().add(Outcome::Missing);
    }
    let applied = Applied {
        limit,
        algorithm: limit.rule().limit.algorithm(),
        decision: refusal(),
    };
    let mut admission = Admission {
        missing: Some(missing),
        ..Admission::default()
    };
    admission.applied.push(applied);
    admission
}

fn decide_enforced<'a>(met: &[Met<'a>], call: &Call<'_>, admission: &mut Admission<'a>) {
    // The usual case needs no list.
    if let [only] = met {
        let (decision, receipt) = only.check(call);
        admission.take(only, decision, receipt);
        return;
    }
    let asks: SmallVec<[Asked<'_>; 4]> = met.iter().map(|met| met.asked(call)).collect();
    match check_all_with_receipts(&asks, call.now) {
        Ok(answers) => {
            for (met, Answer { decision, receipt }) in met.iter().zip(answers) {
                admission.take(met, decision, receipt);
            }
        }
        // More limits than one check takes: policies are held to fewer, so this is a fault of
        // ours, and a limiter that cannot decide does not wave through.
        Err(error) => {
            tracing::error!(%error, route = call.route, "refused: cannot decide");
            for met in met {
                admission.applied.push(met.applied(refusal()));
            }
        }
    }
}

/// Shadow limits take what they would have taken had they been enforced: only of requests that
/// go ahead.
fn decide_shadow<'a>(met: &[Met<'a>], call: &Call<'_>, admission: &mut Admission<'a>) {
    for met in met {
        if admission.is_allowed() {
            let (decision, receipt) = met.check(call);
            admission.shadow.push(met.applied(decision));
            if let Some(receipt) = receipt {
                admission
                    .hold
                    .taken
                    .push((Enforcer::clone(met.enforcer), receipt));
            }
        } else {
            let peeked = met.peek(call);
            admission.shadow.push(peeked);
        }
    }
}

impl<'a> Met<'a> {
    fn asked(&self, call: &Call<'_>) -> Asked<'a> {
        let ask = self.limit.ask(self.algorithm, call);
        Asked {
            limit: &**self.enforcer,
            key: self.hash,
            ask,
        }
    }

    fn check(&self, call: &Call<'_>) -> (Decision, Option<Receipt>) {
        let ask = self.limit.ask(self.algorithm, call);
        self.enforcer.check(self.hash, call.now, &ask)
    }

    fn peek(&self, call: &Call<'_>) -> Applied<'a> {
        let ask = self.limit.ask(self.algorithm, call);
        self.applied(self.enforcer.peek(self.hash, call.now, &ask))
    }

    const fn applied(&self, decision: Decision) -> Applied<'a> {
        Applied {
            limit: self.limit,
            algorithm: self.algorithm,
            decision,
        }
    }
}

impl<'a> Admission<'a> {
    fn take(&mut self, met: &Met<'a>, decision: Decision, receipt: Option<Receipt>) {
        self.applied.push(met.applied(decision));
        if let Some(receipt) = receipt {
            self.hold
                .taken
                .push((Enforcer::clone(met.enforcer), receipt));
        }
    }

    /// Counts the outcome at each limit: a denial at those that denied, an allowance only where
    /// the request as a whole goes ahead.
    fn count(&self) {
        let outcome = match (self.is_allowed(), self.delay().is_zero()) {
            (true, true) => Some(Outcome::Allowed),
            (true, false) => Some(Outcome::Delayed),
            (false, _) => None,
        };
        for applied in &self.applied {
            let denied = applied.decision.is_denied().then_some(Outcome::Denied);
            if let Some(outcome) = denied.or(outcome) {
                applied.limit.counts().add(outcome);
            }
        }
        for applied in &self.shadow {
            let denied = applied
                .decision
                .is_denied()
                .then_some(Outcome::ShadowDenied);
            if let Some(outcome) = denied.or(outcome) {
                applied.limit.counts().add(outcome);
            }
        }
    }
}
