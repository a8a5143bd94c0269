//! The limits that a request meets, with everything to ask them.

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::SmallVec;
use tidegate::{Algorithm, Asked, Decision, Enforcer, KeyHash, Receipt, SharedAsk, Timestamp};

use crate::admission::{Admission, Applied};
use crate::call::Call;
use crate::enforced_limit::EnforcedLimit;
use crate::in_line::InLine;
use crate::paced_limit::PacedLimit;
use crate::shared_limit::Shared;

/// A limit that a request meets, with everything to ask it.
pub(crate) struct Met<'a> {
    pub(crate) limit: &'a EnforcedLimit,
    pub(crate) algorithm: &'a Algorithm,
    pub(crate) enforcer: Cow<'a, Enforcer>,
    pub(crate) hash: KeyHash,
}

/// A limit that nodes share, with everything to ask the others.
pub(crate) struct MetShared<'a> {
    pub(crate) met: Met<'a>,
    pub(crate) shared: &'a Shared,
    /// Which of its numbers hold.
    pub(crate) at: usize,
    pub(crate) ask: SharedAsk,
}

/// The limits that a request meets.
#[derive(Default)]
pub(crate) struct Meeting<'a> {
    pub(crate) enforced: SmallVec<[Met<'a>; 4]>,
    pub(crate) shadow: SmallVec<[Met<'a>; 2]>,
    /// Those whose state nodes share, and may be reached.
    pub(crate) shared: Vec<MetShared<'a>>,
    pub(crate) shared_shadow: Vec<MetShared<'a>>,
    /// Those that hold its bodies back, and decide on nothing.
    pub(crate) paced: Vec<PacedLimit>,
}

impl<'a> Meeting<'a> {
    pub(crate) fn add(
        &mut self,
        met: Met<'a>,
        shared: Option<(&'a Shared, usize, Box<[u8]>)>,
        call: &Call<'_>,
    ) {
        let is_shadow = met.limit.rule().shadow;
        match (shared, is_shadow) {
            (None, false) => self.enforced.push(met),
            (None, true) => self.shadow.push(met),
            (Some((shared, at, key)), _) => {
                let ask = SharedAsk {
                    limit: Arc::clone(shared.limit(at)),
                    key,
                    ask: met.limit.ask(met.algorithm, call),
                };
                let met = MetShared {
                    met,
                    shared,
                    at,
                    ask,
                };
                if is_shadow {
                    self.shared_shadow.push(met);
                } else {
                    self.shared.push(met);
                }
            }
        }
    }

    /// Has limits that nodes share decided here.
    pub(crate) fn keep_to_this_node(&mut self) {
        self.enforced
            .extend(self.shared.drain(..).map(|shared| shared.met));
        self.shadow
            .extend(self.shared_shadow.drain(..).map(|shared| shared.met));
    }

    /// The line of the first limit that refused, if all that refused have one.
    pub(crate) fn line(
        &self,
        admission: &Admission<'_>,
        call: &Call<'_>,
        came: Timestamp,
    ) -> Option<InLine> {
        let mut line = None;
        for (met, applied) in self.enforced.iter().zip(&admission.applied) {
            if applied.decision.is_allowed() {
                continue;
            }
            let queue = met.limit.rule().queue.as_ref()?;
            if !applied.decision.is_on_release() {
                return None;
            }
            let longest = call.max_wait.unwrap_or(queue.max_wait).min(queue.max_wait);
            let until = came.after(longest);
            if until <= call.now {
                return None;
            }
            line = line.or_else(|| {
                Some(InLine {
                    enforcer: Arc::clone(&met.enforcer),
                    key: met.hash,
                    ask: met.limit.ask_in_line(met.algorithm, call),
                    length: queue.length,
                    until,
                    counts: Arc::clone(met.limit.shared_counts()),
                })
            });
        }
        line
    }
}

impl<'a> Met<'a> {
    pub(crate) fn asked(&self, call: &Call<'_>) -> Asked<'_> {
        let ask = self.limit.ask(self.algorithm, call);
        Asked::new(&**self.enforcer, self.hash, ask)
    }

    pub(crate) fn check(&self, call: &Call<'_>) -> (Decision, Option<Receipt>) {
        let ask = self.limit.ask(self.algorithm, call);
        self.enforcer.check(self.hash, call.now, &ask)
    }

    pub(crate) fn peek(&self, call: &Call<'_>) -> Applied<'a> {
        let ask = self.limit.ask(self.algorithm, call);
        self.applied(self.enforcer.peek(self.hash, call.now, &ask))
    }

    pub(crate) const fn applied(&self, decision: Decision) -> Applied<'a> {
        Applied {
            limit: self.limit,
            algorithm: self.algorithm,
            decision,
        }
    }
}
