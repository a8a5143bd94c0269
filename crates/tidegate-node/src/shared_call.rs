//! What a request waits for before it can be decided on: a place in line, or the answer of limits
//! that nodes share.

use std::fmt;
use std::sync::Arc;

use tidegate::{Decision, SharedAnswers, SharedAsk, SharedStore, Timer, Timestamp};

use crate::decide::Turn;
use crate::in_line::InLine;

/// What to do about a request that has not been decided on: wait, and ask again.
///
/// It borrows nothing, so that nothing is held meanwhile: policies may change.
#[derive(Debug)]
#[must_use = "the request has not been decided on"]
pub enum Pending {
    /// For a place of a concurrency limit.
    InLine(InLine),
    /// For what nodes share.
    Shared(Box<SharedCall>),
}

impl Pending {
    /// Until when it waits at most, if that is up to this node.
    pub const fn until(&self) -> Option<Timestamp> {
        match self {
            Self::InLine(line) => Some(line.until()),
            Self::Shared(_) => None,
        }
    }

    /// Waits. Returns with what the request is asked about again.
    ///
    /// Cancel safe: dropped, the request is out of the line, and has taken nothing that it does
    /// not give back.
    pub async fn wait(self, timer: &dyn Timer) -> Turn {
        match self {
            Self::InLine(line) => line.wait(timer).await.map_or(Turn::Last, Turn::With),
            Self::Shared(call) => Turn::Shared(Box::new(call.ask().await)),
        }
    }
}

/// Limits that nodes share are to be asked.
pub struct SharedCall {
    pub(crate) store: Arc<dyn SharedStore>,
    pub(crate) enforced: Vec<SharedAsk>,
    pub(crate) shadow: Vec<SharedAsk>,
    /// What the request came with.
    pub(crate) turn: Turn,
}

impl fmt::Debug for SharedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the keys: what is in them may be secret.
        f.debug_struct("SharedCall")
            .field("enforced", &self.enforced.len())
            .field("shadow", &self.shadow.len())
            .finish_non_exhaustive()
    }
}

impl SharedCall {
    async fn ask(self) -> SharedTurn {
        let enforced = if self.enforced.is_empty() {
            SharedAnswers {
                decisions: Vec::new(),
                taken: None,
            }
        } else {
            self.store.check_all(self.enforced.clone()).await
        };
        // Shadow limits take of those who go ahead only, and each for itself.
        let goes_ahead = enforced
            .decisions
            .iter()
            .all(|decision| decision.as_ref().is_ok_and(Decision::is_allowed));
        // Given back, if nobody waits for this any more.
        let mut answers = SharedTurn {
            turn: self.turn,
            asked: self.enforced,
            answers: Some(enforced),
            shadow_asked: self.shadow,
            shadow: Vec::new(),
        };
        for ask in &answers.shadow_asked {
            let answer = if goes_ahead {
                self.store.check_all(vec![ask.clone()]).await
            } else {
                let decision = self.store.peek(ask.clone()).await;
                SharedAnswers {
                    decisions: vec![decision],
                    taken: None,
                }
            };
            answers.shadow.push(answer);
        }
        answers
    }
}

/// What limits that nodes share have answered. Dropping it gives back what was taken.
#[derive(Debug)]
pub struct SharedTurn {
    pub(crate) turn: Turn,
    pub(crate) asked: Vec<SharedAsk>,
    pub(crate) answers: Option<SharedAnswers>,
    pub(crate) shadow_asked: Vec<SharedAsk>,
    pub(crate) shadow: Vec<SharedAnswers>,
}

impl SharedTurn {
    /// Whether this is the answer to these asks: a policy may have changed meanwhile.
    pub(crate) fn is_to(&self, enforced: &[SharedAsk], shadow: &[SharedAsk]) -> bool {
        let same = |asked: &[SharedAsk], now: &[SharedAsk]| {
            asked.len() == now.len()
                && asked.iter().zip(now).all(|(asked, now)| {
                    asked.limit == now.limit && asked.key == now.key && asked.ask == now.ask
                })
        };
        same(&self.asked, enforced) && same(&self.shadow_asked, shadow)
    }
}

impl Drop for SharedTurn {
    fn drop(&mut self) {
        let shadow = self.shadow.drain(..).filter_map(|answers| answers.taken);
        let enforced = self.answers.take().and_then(|answers| answers.taken);
        for taken in shadow.chain(enforced) {
            taken.give_back();
        }
    }
}
