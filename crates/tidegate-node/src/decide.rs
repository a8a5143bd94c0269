//! The decision path: which limits a request meets, and what they say together.

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::SmallVec;
use tidegate::{
    Algorithm, Answer, Asked, Decision, Enforcer, Receipt, Timestamp, check_all_with_receipts,
};
use tidegate_policy::KeyPart;

use crate::admission::{Admission, Applied};
use crate::call::Call;
use crate::counts::{InWait, Outcome};
use crate::enforced_limit::{EnforcedLimit, Meets, refusal};
use crate::in_line::Place;
use crate::meeting::{Meeting, Met};
use crate::shared_call::{Pending, SharedTurn};
use crate::snapshot::Snapshot;

/// How often a request has been asked about that may have to wait in line.
#[derive(Debug)]
pub enum Turn {
    /// It has just come.
    First,
    /// It has waited, and this came of it.
    With(Place),
    /// It has waited for nothing, and does not wait any more.
    Last,
    /// Limits that nodes share have been asked, and this is their answer.
    Shared(Box<SharedTurn>),
}

impl Snapshot {
    /// Decides on a request under all its limits at once: all of them are charged, or none.
    ///
    /// A request that lacks a part of a key is refused, passed by, or counted with all others
    /// that lack it, as the limit says. Shadow limits decide and count beside the others, and
    /// change nothing. A limit that is named twice is asked once. Nothing waits here: a concurrency
    /// limit that is full refuses, also where it has a queue; and limits that nodes share are
    /// decided on as if this node were the only one.
    pub fn decide<'a>(&'a self, call: &Call<'_>) -> Admission<'a> {
        let mut met = match self.meet(call) {
            Ok(met) => met,
            Err(refused) => return refused,
        };
        met.keep_to_this_node();
        let mut admission = Admission::default();
        if call.peek {
            let peeked = met.enforced.iter().map(|met| met.peek(call));
            admission.applied.extend(peeked);
            let peeked = met.shadow.iter().map(|met| met.peek(call));
            admission.shadow.extend(peeked);
            return admission;
        }
        decide_enforced(&met.enforced, call, &mut admission);
        let admission = self.settle(&met, call, admission);
        self.paced(met, admission)
    }

    /// The same for a door that can wait: for what limits say that nodes share, and, where only
    /// places of concurrency limits are missing that have queues, in line. A request that `came`
    /// at that time [waits](Pending::wait), and is asked about again with what came of it.
    /// Meanwhile it has taken nothing of this node's limits; with a place or an answer in hand, all
    /// others are charged or none, and what it has goes back if none is.
    ///
    /// # Errors
    /// [`Pending`] for a request that is to wait.
    pub fn decide_or_wait<'a>(
        &'a self,
        call: &Call<'_>,
        came: Timestamp,
        turn: Turn,
    ) -> Result<Admission<'a>, Pending> {
        let mut met = match self.meet(call) {
            Ok(met) => met,
            Err(refused) => return Ok(refused),
        };
        let admission = if met.shared.is_empty() && met.shared_shadow.is_empty() {
            self.decide_here(&met, call, came, turn, Vec::new())?
        } else {
            self.decide_shared(&mut met, call, came, turn)?
        };
        Ok(self.paced(met, admission))
    }

    /// The same with what holds its bodies back, where it goes ahead.
    fn paced<'a>(&self, met: Meeting<'a>, mut admission: Admission<'a>) -> Admission<'a> {
        if !met.paced.is_empty() && admission.is_allowed() {
            for one in &met.paced {
                one.limit.counts().add(Outcome::Allowed);
            }
            admission.paced = met.paced;
            admission.revision = self.revision();
        }
        admission
    }

    /// The same once limits that nodes share have allowed it, or where there are none.
    pub(crate) fn decide_here<'a>(
        &'a self,
        met: &Meeting<'a>,
        call: &Call<'_>,
        came: Timestamp,
        turn: Turn,
        others: Vec<Applied<'a>>,
    ) -> Result<Admission<'a>, Pending> {
        let mut admission = Admission::default();
        let is_last = matches!(turn, Turn::Last);
        match turn {
            Turn::With(place) => {
                admission.waited = call.now.since(came);
                decide_with(place, &met.enforced, call, &mut admission);
            }
            Turn::First | Turn::Last | Turn::Shared(_) => {
                decide_enforced(&met.enforced, call, &mut admission);
            }
        }
        if !is_last && let Some(line) = met.line(&admission, call, came) {
            return Err(Pending::InLine(line));
        }
        admission.applied.extend(others);
        Ok(self.settle(met, call, admission))
    }

    /// The limits that a request meets; or its refusal, where it lacks a part of a key.
    #[expect(
        clippy::result_large_err,
        reason = "a refusal is no rare case to be boxed"
    )]
    fn meet<'a>(&'a self, call: &Call<'_>) -> Result<Meeting<'a>, Admission<'a>> {
        let mut met = Meeting::default();
        for (at, &index) in call.limits.iter().enumerate() {
            let twice = call.limits[..at].contains(&index);
            let Some(limit) = self.limits().get(index).filter(|_| !twice) else {
                continue;
            };
            match limit.meet(index, call, self.hasher()) {
                Meets::Passed => {}
                Meets::Paced(paced) => met.paced.push(*paced),
                Meets::Refused(_) if limit.rule().shadow => {
                    limit.counts().add(Outcome::ShadowDenied);
                }
                Meets::Refused(missing) => return Err(refuse(limit, missing, call)),
                Meets::Key {
                    hash,
                    enforcer,
                    algorithm,
                    shared,
                } => {
                    let one = Met {
                        limit,
                        algorithm,
                        enforcer: Cow::Borrowed(enforcer),
                        hash,
                    };
                    met.add(one, shared, call);
                }
            }
        }
        Ok(met)
    }

    /// What follows from the answer of the enforced limits.
    pub(crate) fn settle<'a>(
        &self,
        met: &Meeting<'a>,
        call: &Call<'_>,
        mut admission: Admission<'a>,
    ) -> Admission<'a> {
        decide_shadow(&met.shadow, call, &mut admission);
        admission.count();
        if admission.delay().is_zero() {
            admission.hold.go_ahead();
        } else {
            // A wait that is given up gives back, and rates want to know when.
            admission.hold.clock = Some(Arc::clone(self.clock()));
            admission.begin_wait();
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
    } else {
        decide_all(met.iter(), call, admission);
    }
}

fn decide_all<'m, 'a: 'm>(
    met: impl Iterator<Item = &'m Met<'a>> + Clone,
    call: &Call<'_>,
    admission: &mut Admission<'a>,
) {
    let asks: SmallVec<[Asked<'_>; 4]> = met.clone().map(|met| met.asked(call)).collect();
    match check_all_with_receipts(&asks, call.now) {
        Ok(answers) => {
            for (met, Answer { decision, receipt }) in met.zip(answers) {
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

/// The same for a request that has waited for a place of one of them.
fn decide_with<'a>(place: Place, met: &[Met<'a>], call: &Call<'_>, admission: &mut Admission<'a>) {
    let is_its = |met: &Met<'_>| met.enforcer.store_id() == place.store_id();
    let Some(at) = met.iter().position(is_its) else {
        // The limit that it waited for is none of its limits any more.
        drop(place);
        return decide_enforced(met, call, admission);
    };
    let (before, rest) = met.split_at(at);
    let Some((own, after)) = rest.split_first() else {
        return;
    };
    decide_all(before.iter().chain(after), call, admission);
    admission.applied.insert(at, own.applied(place.decision()));
    if admission.is_allowed() {
        own.limit.counts().waited(admission.waited);
        admission.hold.taken.extend(place.into_taken());
    }
}

/// Shadow limits take what they would have taken had they been enforced: only of requests that
/// go ahead, and of all rates of a limit or of none.
fn decide_shadow<'a>(met: &[Met<'a>], call: &Call<'_>, admission: &mut Admission<'a>) {
    if !admission.is_allowed() {
        for met in met {
            let applied = met.peek(call);
            if applied.decision.is_denied() {
                applied.limit.counts().add(Outcome::ShadowDenied);
            }
            admission.shadow.push(applied);
        }
        return;
    }
    for group in met.chunk_by(are_decided_as_one) {
        let mut shadow = Admission::default();
        decide_enforced(group, call, &mut shadow);
        shadow.count_shadow(admission.outcome());
        admission.shadow.append(&mut shadow.applied);
        admission.hold.taken.append(&mut shadow.hold.taken);
    }
}

/// Rates of one limit are; and zones of nginx's, whose dry run is a location's and not a zone's:
/// what one of them would have refused is charged to none of them.
fn are_decided_as_one(one: &Met<'_>, next: &Met<'_>) -> bool {
    let is_nginx = |met: &Met<'_>| matches!(met.algorithm, Algorithm::Nginx { .. });
    next.limit.rule().rate_index > 0 || is_nginx(one) && is_nginx(next)
}

impl<'a> Admission<'a> {
    /// Counts it among those who wait, at each limit that delays it.
    fn begin_wait(&mut self) {
        let delays = |applied: &&Applied<'_>| !applied.decision.delay().is_zero();
        let delaying = self.applied.iter().filter(delays);
        for applied in delaying.clone() {
            applied.limit.counts().waited(applied.decision.delay());
        }
        let limits = delaying.map(|applied| applied.limit.shared_counts());
        self.hold.in_wait = Some(Box::new(InWait::begin(limits)));
    }

    fn take(&mut self, met: &Met<'a>, decision: Decision, receipt: Option<Receipt>) {
        self.applied.push(met.applied(decision));
        if let Some(receipt) = receipt {
            self.hold
                .taken
                .push((Enforcer::clone(&met.enforcer), receipt));
        }
    }

    /// Counts the outcome at each enforced limit: a denial at those that denied, an allowance only
    /// where the request as a whole goes ahead.
    fn count(&self) {
        for applied in &self.applied {
            let denied = applied.decision.is_denied().then_some(Outcome::Denied);
            if let Some(outcome) = denied.or(self.outcome()) {
                applied.limit.counts().add(outcome);
            }
        }
    }

    /// The same of shadow limits that were decided as one, where what came of the request is
    /// `real`.
    fn count_shadow(&self, real: Option<Outcome>) {
        let outcome = match self.outcome() {
            Some(Outcome::Delayed) => Some(Outcome::ShadowDelayed),
            other => other.and(real),
        };
        for applied in &self.applied {
            let denied = applied
                .decision
                .is_denied()
                .then_some(Outcome::ShadowDenied);
            if let Some(outcome) = denied.or(outcome) {
                applied.limit.counts().add(outcome);
            }
        }
    }

    /// What becomes of the request; `None` where it is refused.
    fn outcome(&self) -> Option<Outcome> {
        let at_once = self.delay().is_zero() && self.waited.is_zero();
        match (self.is_allowed(), at_once) {
            (true, true) => Some(Outcome::Allowed),
            (true, false) => Some(Outcome::Delayed),
            (false, _) => None,
        }
    }
}
