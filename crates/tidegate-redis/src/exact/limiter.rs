//! One limit in Redis, as library users hold it.

use std::sync::Arc;

use tidegate::{Algorithm, Ask, Decision, Limit};

use super::checked::ExactReceipt;
use super::numbers::{Kind, NotShared, Numbers};
use super::script::Asked;
use super::{Answered, Exact};
use crate::call::{Scripts, Unavailable};
use crate::key::{Subject, key_of};

/// One limit that all nodes share, of as many subjects as there are. Clones are the same.
///
/// Its methods are used from within a tokio runtime.
#[derive(Clone, Debug)]
pub struct ExactLimiter {
    exact: Exact,
    name: Arc<str>,
    numbers: Numbers,
}

impl ExactLimiter {
    /// A limiter of this name and algorithm (or quota: a token bucket), with an [`Exact`] of its
    /// own. Limiters that should be decided as one are made by one [`Exact::limiter`] instead.
    ///
    /// # Errors
    /// [`NotShared`] where the algorithm stays local, or its numbers are beyond what Redis counts
    /// exactly.
    pub fn new(
        scripts: Arc<dyn Scripts>,
        name: &str,
        algorithm: impl Into<Algorithm>,
    ) -> Result<Self, NotShared> {
        let limit = Limit::new(name, algorithm.into()).map_err(NotShared::Quota)?;
        Exact::new(scripts).limiter(&limit)
    }

    pub(super) fn of(exact: Exact, name: &str, numbers: Numbers) -> Self {
        Self {
            exact,
            name: name.into(),
            numbers,
        }
    }

    /// Takes what is asked for, if all of it is there.
    ///
    /// Waits in this answer are as of Redis's time of the call, to one tick of the limit.
    ///
    /// # Errors
    /// [`Unavailable`] where Redis does not answer in time: whether it was taken is not known.
    ///
    /// # Cancel safety
    /// Dropping the future gives back what was granted.
    pub async fn check(
        &self,
        subject: impl Into<Subject>,
        ask: impl Into<Ask>,
    ) -> Result<Decision, Unavailable> {
        let (decision, _) = self.check_with_receipt(subject, ask).await?;
        Ok(decision)
    }

    /// [`check`](Self::check), and by what it can be [given back](Self::give_back) if something
    /// was taken.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    ///
    /// # Cancel safety
    /// As [`check`](Self::check).
    pub async fn check_with_receipt(
        &self,
        subject: impl Into<Subject>,
        ask: impl Into<Ask>,
    ) -> Result<(Decision, Option<ExactReceipt>), Unavailable> {
        let limits: Arc<[_]> = Arc::new([self.asked(&subject.into())]);
        let Answered { said, receipt } = self.exact.driver.check(&limits, ask.into()).await?;
        Ok((only(&said)?, receipt))
    }

    /// What the answer would be. Takes nothing.
    ///
    /// # Errors
    /// [`Unavailable`] where Redis does not answer in time.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn peek(
        &self,
        subject: impl Into<Subject>,
        ask: impl Into<Ask>,
    ) -> Result<Decision, Unavailable> {
        let limits = Arc::new([self.asked(&subject.into())]);
        let answer = self.exact.driver.peek(limits, ask.into()).await?;
        only(&answer.said)
    }

    /// Gives back what a check took, as far as time has not done so already.
    ///
    /// # Errors
    /// As [`Exact::give_back`].
    ///
    /// # Cancel safety
    /// As [`Exact::give_back`].
    pub async fn give_back(&self, receipt: ExactReceipt) -> Result<(), Unavailable> {
        self.exact.give_back(receipt).await
    }

    /// Forgets all that was taken for this subject.
    ///
    /// # Errors
    /// [`Unavailable`] where Redis does not answer in time: whether it was forgotten is not known.
    ///
    /// # Cancel safety
    /// Dropping the future may have forgotten it, or not.
    pub async fn reset(&self, subject: impl Into<Subject>) -> Result<(), Unavailable> {
        self.exact
            .driver
            .reset(&[self.asked(&subject.into())])
            .await
    }

    /// The numbers that Redis counts with.
    pub const fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    /// Where the state of this subject is, and with which numbers.
    pub fn asked(&self, subject: &Subject) -> Asked {
        // A limit that becomes a log, or was one, begins anew: its value is of another type.
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

/// The answer of a check of one limit.
fn only(said: &[(usize, Decision)]) -> Result<Decision, Unavailable> {
    let first = said.first().map(|(_, decision)| *decision);
    first.ok_or_else(|| Unavailable::BadAnswer("no decision".to_owned()))
}
