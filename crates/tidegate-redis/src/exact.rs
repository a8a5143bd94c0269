//! Exact mode: every decision is made in Redis, by one script, for all limits of a slot at once.
//!
//! Nothing is granted that one limiter in one place would not grant, whatever the number of nodes
//! and whatever their clocks say: the time is Redis's own. A call decides for all who wait for
//! the same limits of a node, so that a node has at most one call for them in flight, however many
//! callers there are.

mod numbers;
mod script;

use std::sync::Arc;
use std::time::Duration;

use tidegate::{Algorithm, Ask, Decision, Limit};

pub use self::numbers::{Kind, NotShared, Numbers};
pub use self::script::{
    Asked, EXACT, Granted, Group, Reply, Said, What, decide, forget, give_back,
};
use crate::call::{Scripts, Unavailable};
use crate::key::{Subject, key_of};

/// How long a call may take where nothing else is said.
pub const DEFAULT_BUDGET: Duration = Duration::from_millis(25);

/// The door to exact limits on one Redis (or cluster): makes [`ExactLimiter`]s, and decides
/// several of them as one. Clones are the same.
#[derive(Clone, Debug)]
pub struct Exact {
    scripts: Arc<dyn Scripts>,
    budget: Duration,
}

/// One limit in Redis, of as many subjects as there are.
#[derive(Clone, Debug)]
pub struct ExactLimiter {
    exact: Exact,
    name: String,
    numbers: Numbers,
}

impl Exact {
    /// Exact limits behind these scripts.
    pub fn new(scripts: Arc<dyn Scripts>) -> Self {
        Self {
            scripts,
            budget: DEFAULT_BUDGET,
        }
    }

    /// The limiter of this limit. Those of one name share their state, on all nodes.
    ///
    /// # Errors
    /// [`NotShared`] where the algorithm stays local, or its numbers are beyond what Redis counts
    /// exactly.
    pub fn limiter(&self, limit: &Limit) -> Result<ExactLimiter, NotShared> {
        Ok(ExactLimiter {
            exact: self.clone(),
            name: limit.name().to_owned(),
            numbers: Numbers::of(limit.algorithm())?,
        })
    }
}

impl ExactLimiter {
    /// A limiter of this name and algorithm (or quota: a token bucket).
    ///
    /// # Errors
    /// As [`Exact::limiter`].
    pub fn new(
        scripts: Arc<dyn Scripts>,
        name: &str,
        algorithm: impl Into<Algorithm>,
    ) -> Result<Self, NotShared> {
        let limit = Limit::new(name, algorithm.into()).map_err(NotShared::Quota)?;
        Exact::new(scripts).limiter(&limit)
    }

    /// Takes what is asked for, if all of it is there.
    ///
    /// # Errors
    /// [`Unavailable`] where Redis does not answer in time: whether it was taken is not known.
    pub async fn check(
        &self,
        subject: impl Into<Subject>,
        ask: impl Into<Ask>,
    ) -> Result<Decision, Unavailable> {
        let ask = ask.into();
        let limits = [self.asked(&subject.into())];
        let groups = [Group { requests: 1, ask }];
        let call = decide(What::Check, &limits, &groups);
        let answer = self.exact.scripts.call(call, self.exact.budget).await?;
        let reply = Reply::read(&answer, 1, 1)?;
        let granted = reply.groups.first().and_then(|group| {
            let after = (group.requests > 0).then_some(0);
            let said = group.limits.first()?;
            Some(said.decision(self.numbers.most, after, ask.permits()))
        });
        granted.ok_or_else(|| Unavailable::BadAnswer(format!("{answer:?}")))
    }

    fn asked(&self, subject: &Subject) -> Asked {
        let family = match self.numbers.kind {
            Kind::Log => "tgl",
            _ => "tg",
        };
        Asked {
            key: key_of(family, subject, &self.name),
            numbers: self.numbers,
        }
    }
}
