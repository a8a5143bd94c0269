//! A node's answer to one request.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;
use tidegate::{Algorithm, Clock, Decision, Enforcer, Receipt, SharedTaken, Timestamp};
use tidegate_policy::{BodyOf, KeyPart};

use crate::counts::InWait;
use crate::enforced_limit::EnforcedLimit;
use crate::paced_limit::PacedLimit;
use crate::pacer::Pacer;

/// One limit's part in an answer.
#[derive(Clone, Copy, Debug)]
pub struct Applied<'a> {
    /// The limit.
    pub limit: &'a EnforcedLimit,
    /// The numbers that held for this key (the limit's own, or an override's).
    pub algorithm: &'a Algorithm,
    /// What it decided.
    pub decision: Decision,
}

/// What a node decided on a request: which limits it met, and what each said.
///
/// What was taken is in its [`Hold`]: keep that until the request has ended.
#[derive(Debug, Default)]
#[must_use]
pub struct Admission<'a> {
    pub(crate) applied: SmallVec<[Applied<'a>; 4]>,
    pub(crate) shadow: SmallVec<[Applied<'a>; 2]>,
    pub(crate) hold: Hold,
    pub(crate) missing: Option<&'a KeyPart>,
    /// How long it has waited for a place.
    pub(crate) waited: Duration,
    /// What holds its bodies back, of which version of the policy.
    pub(crate) paced: Vec<PacedLimit>,
    pub(crate) revision: u64,
}

impl<'a> Admission<'a> {
    /// Whether the request may go ahead, after [`delay`](Self::delay).
    pub fn is_allowed(&self) -> bool {
        self.applied
            .iter()
            .all(|applied| applied.decision.is_allowed())
    }

    /// How long an allowed request waits first: the longest delay of its limits.
    pub fn delay(&self) -> Duration {
        if !self.is_allowed() {
            return Duration::ZERO;
        }
        self.applied
            .iter()
            .map(|applied| applied.decision.delay())
            .max()
            .unwrap_or_default()
    }

    /// How long it has waited in line already, for a place that it has got.
    pub const fn waited(&self) -> Duration {
        self.waited
    }

    /// The limit whose decision the caller is told: the denial with the longest wait, or else
    /// the allowance with the least remaining. `None` where no limit applied.
    pub fn told(&self) -> Option<&Applied<'a>> {
        self.applied
            .iter()
            .min_by(|a, b| a.decision.cmp_severity(&b.decision))
    }

    /// The decision that the caller is told.
    pub fn decision(&self) -> Option<&Decision> {
        self.told().map(|applied| &applied.decision)
    }

    /// The name of the limit that the caller is told of.
    pub fn limit(&self) -> Option<&'a str> {
        self.told().map(|applied| applied.limit.name())
    }

    /// The part of a key that the request lacks, if it is refused for that.
    pub fn missing_part(&self) -> Option<&'a KeyPart> {
        self.missing
    }

    /// All enforced limits that the request met, in the order of the route.
    pub fn applied(&self) -> &[Applied<'a>] {
        &self.applied
    }

    /// The shadow limits that it met; they enforce nothing.
    pub fn shadow(&self) -> &[Applied<'a>] {
        &self.shadow
    }

    /// Name, numbers and decision of each enforced limit.
    pub fn policies(&self) -> impl Iterator<Item = (&'a str, &'a Algorithm, Decision)> {
        self.applied
            .iter()
            .map(|one| (one.limit.name(), one.algorithm, one.decision))
    }

    /// Whether a limit of bandwidth holds a body of the request back.
    pub const fn is_paced(&self) -> bool {
        !self.paced.is_empty()
    }

    /// What says when the pieces of such a body of a request that goes ahead may pass; `None`
    /// where no limit of bandwidth holds it back. To be asked for once for each body.
    pub fn pacer(&self, body: BodyOf) -> Option<Pacer> {
        let of_body = self.paced.iter().filter(|one| one.holds_back(body));
        let limits: Vec<_> = of_body.map(PacedLimit::for_another).collect();
        (!limits.is_empty()).then(|| Pacer::new(body, limits, self.revision))
    }

    /// What has to be held until the request has ended.
    pub fn into_hold(self) -> Hold {
        self.hold
    }
}

/// What a request has taken and may have to give back. It borrows nothing, so that it can go
/// with the body of an answer.
///
/// Dropping it gives back the places of concurrency limits; and, of a request that was delayed
/// and whose wait was given up, everything, until [`go_ahead`](Self::go_ahead) says that the
/// wait is over.
#[derive(Default)]
#[must_use = "dropping it gives back what the request holds"]
pub struct Hold {
    pub(crate) taken: SmallVec<[(Enforcer, Receipt); 2]>,
    /// What was taken of limits that nodes share.
    others: Vec<Box<dyn SharedTaken>>,
    has_gone_ahead: bool,
    /// Counted as waiting until it goes ahead. Boxed because most never wait.
    pub(crate) in_wait: Option<Box<InWait>>,
    pub(crate) clock: Option<Arc<dyn Clock>>,
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold")
            .field("taken", &self.taken.len())
            .finish_non_exhaustive()
    }
}

impl Hold {
    /// Says that the request has waited its delay and goes ahead: from here on rate limits keep
    /// what they took.
    pub fn go_ahead(&mut self) {
        self.taken.retain(|(enforcer, _)| enforcer.is_gate());
        self.others.retain(|taken| taken.has_places());
        self.has_gone_ahead = true;
        self.in_wait = None;
    }

    /// Holds what was taken of limits that nodes share, too: of a request that has gone ahead
    /// only places.
    pub(crate) fn add_others(&mut self, others: Vec<Box<dyn SharedTaken>>) {
        self.others.extend(others);
        if self.has_gone_ahead {
            self.go_ahead();
        }
    }

    /// Whether nothing would be given back.
    pub fn is_empty(&self) -> bool {
        self.taken.is_empty() && self.others.is_empty()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if !self.has_gone_ahead {
            for taken in self.others.drain(..) {
                taken.give_back();
            }
        }
        if self.taken.is_empty() {
            return;
        }
        // Gates do not look at the time; the others come with a clock.
        let now = self.clock.as_ref().map_or(Timestamp::EPOCH, Clock::now);
        for (enforcer, receipt) in self.taken.drain(..) {
            let returned = enforcer.give_back(receipt, now);
            debug_assert!(
                returned.is_ok(),
                "a receipt goes back to where it came from"
            );
        }
    }
}
