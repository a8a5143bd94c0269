//! The decision path of requests under limits that nodes share.
//!
//! This node's own limits are looked at first: whom they refuse, nobody else is asked about. Then
//! the others are asked, and with their answer in hand this node's are charged, all or none; what
//! the others took goes back if none is.

use std::borrow::Cow;
use std::mem;
use std::sync::Arc;

use tidegate::{Decision, SharedAnswers, SharedAsk, SharedTaken, Timestamp, Verdict};

use crate::admission::{Admission, Applied};
use crate::call::Call;
use crate::counts::Outcome;
use crate::decide::Turn;
use crate::meeting::{Meeting, Met, MetShared};
use crate::shared_call::{Pending, SharedCall, SharedTurn};
use crate::shared_limit::Instead;
use crate::snapshot::Snapshot;

impl Snapshot {
    pub(crate) fn decide_shared<'a>(
        &'a self,
        met: &mut Meeting<'a>,
        call: &Call<'_>,
        came: Timestamp,
        turn: Turn,
    ) -> Result<Admission<'a>, Pending> {
        let (turn, answered) = match turn {
            Turn::Shared(mut answered) => {
                let before = mem::replace(&mut answered.turn, Turn::Last);
                (before, Some(answered))
            }
            turn => (turn, None),
        };
        let (enforced, shadow) = (asks(&met.shared), asks(&met.shared_shadow));
        // A policy that has changed meanwhile is asked about anew.
        match answered.filter(|answered| answered.is_to(&enforced, &shadow)) {
            Some(answered) => self.decide_with_answers(met, call, came, turn, *answered),
            None => self.ask_others(met, call, came, turn, (enforced, shadow)),
        }
    }

    /// Whom this node's limits refuse, nobody else is asked about.
    fn ask_others<'a>(
        &'a self,
        met: &Meeting<'a>,
        call: &Call<'_>,
        came: Timestamp,
        turn: Turn,
        (enforced, shadow): (Vec<SharedAsk>, Vec<SharedAsk>),
    ) -> Result<Admission<'a>, Pending> {
        let mut admission = Admission::default();
        let peeked = met.enforced.iter().map(|met| match &turn {
            Turn::With(place) if met.enforcer.store_id() == place.store_id() => {
                met.applied(place.decision())
            }
            _ => met.peek(call),
        });
        admission.applied.extend(peeked);
        if admission.is_allowed() {
            let mut all = met.shared.iter().chain(&met.shared_shadow);
            if let Some(first) = all.next() {
                let store = Arc::clone(&first.shared.store);
                return Err(Pending::Shared(Box::new(SharedCall {
                    store,
                    enforced,
                    shadow,
                    turn,
                })));
            }
        }
        let is_last = matches!(turn, Turn::Last);
        if !is_last && let Some(line) = met.line(&admission, call, came) {
            return Err(Pending::InLine(line));
        }
        Ok(self.settle(met, call, admission))
    }

    fn decide_with_answers<'a>(
        &'a self,
        met: &mut Meeting<'a>,
        call: &Call<'_>,
        came: Timestamp,
        turn: Turn,
        mut answered: SharedTurn,
    ) -> Result<Admission<'a>, Pending> {
        let SharedAnswers { decisions, taken } = answered.answers.take().unwrap_or(SharedAnswers {
            decisions: Vec::new(),
            taken: None,
        });
        // Given back on each way out but the last.
        let mut taken = Taken(taken.into_iter().collect());
        let mut theirs: Vec<Applied<'a>> = Vec::with_capacity(decisions.len());
        // Where one refuses, others may not have been asked: that they allow says nothing.
        let is_refused = (decisions.iter().flatten()).any(Decision::is_denied);
        for (shared, decision) in met.shared.drain(..).zip(decisions) {
            match decision {
                Ok(decision) => {
                    if decision.is_denied() || !is_refused {
                        shared.shared.reached(call.now);
                    }
                    theirs.push(shared.met.applied(decision));
                }
                Err(why) => match shared.shared.instead(shared.at, call.now, &why) {
                    Instead::Decision(decision) => theirs.push(shared.met.applied(decision)),
                    Instead::Share(enforcer) => met.enforced.push(Met {
                        enforcer: Cow::Owned(enforcer),
                        ..shared.met
                    }),
                },
            }
        }
        if theirs.iter().any(|applied| applied.decision.is_denied()) {
            let mut admission = Admission::default();
            admission.applied.extend(theirs);
            return Ok(self.settle(met, call, admission));
        }
        let mut admission = self.decide_here(met, call, came, turn, theirs)?;
        if admission.is_allowed() {
            count_shadow(met, call.now, (&mut answered, &mut taken), &mut admission);
            admission.hold.add_others(mem::take(&mut taken.0));
        }
        Ok(admission)
    }
}

/// What others took: given back, unless it is taken out.
struct Taken(Vec<Box<dyn SharedTaken>>);

impl Drop for Taken {
    fn drop(&mut self) {
        for taken in self.0.drain(..) {
            taken.give_back();
        }
    }
}

fn asks(shared: &[MetShared<'_>]) -> Vec<SharedAsk> {
    shared.iter().map(|shared| shared.ask.clone()).collect()
}

/// What shadow limits that nodes share have said is counted beside the others.
fn count_shadow<'a>(
    met: &mut Meeting<'a>,
    now: Timestamp,
    (answered, taken): (&mut SharedTurn, &mut Taken),
    admission: &mut Admission<'a>,
) {
    for (shared, mut answers) in met.shared_shadow.drain(..).zip(answered.shadow.drain(..)) {
        taken.0.extend(answers.taken.take());
        if let Some(Ok(decision)) = answers.decisions.pop() {
            shared.shared.reached(now);
            let outcome = match decision.verdict {
                Verdict::Denied { .. } => Outcome::ShadowDenied,
                Verdict::Allowed { delay } if delay.is_zero() => Outcome::Allowed,
                Verdict::Allowed { .. } => Outcome::ShadowDelayed,
            };
            shared.met.limit.counts().add(outcome);
            admission.shadow.push(shared.met.applied(decision));
        }
    }
}
