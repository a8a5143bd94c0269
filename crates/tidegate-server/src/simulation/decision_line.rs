//! A decision as one line of JSON.

use std::time::Duration;

use serde::Serialize;
use tidegate::{Decision, Retry};
use tidegate_node::Admission;

/// What was decided on one request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DecisionLine {
    /// When the request came, as the trace has it.
    pub at_ns: u64,
    /// What became of it.
    pub outcome: OutcomeWord,
    /// The limit that the caller is told of; `None` where none applied.
    pub limit: Option<String>,
    /// How long it waits first.
    pub delay_ns: u64,
    /// The most of that limit at once.
    pub burst: Option<u64>,
    /// What remains of it.
    pub remaining: Option<u64>,
    /// When it may come again; `None` where it was allowed.
    pub retry: Option<RetryWord>,
    /// When that limit is full again.
    pub reset_after_ns: Option<u64>,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeWord {
    /// It went ahead at once.
    Allowed,
    /// It was refused.
    Denied,
    /// It went ahead after a delay.
    Delayed,
}

/// When a refused request may come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", untagged)]
pub enum RetryWord {
    /// After so many nanoseconds.
    After {
        /// How many.
        after_ns: u64,
    },
    /// When something is known only by its name: `on_release` or `never`.
    Word(&'static str),
}

impl DecisionLine {
    pub(super) fn of(at_ns: u64, admission: &Admission<'_>) -> Self {
        let delay = admission.waited() + admission.delay();
        let outcome = match (admission.is_allowed(), delay.is_zero()) {
            (true, true) => OutcomeWord::Allowed,
            (true, false) => OutcomeWord::Delayed,
            (false, _) => OutcomeWord::Denied,
        };
        let decision = admission.decision();
        let retry = decision.and_then(Decision::retry).map(|retry| match retry {
            Retry::After(wait) => RetryWord::After {
                after_ns: nanos(wait),
            },
            Retry::OnRelease => RetryWord::Word("on_release"),
            Retry::Never => RetryWord::Word("never"),
        });
        Self {
            at_ns,
            outcome,
            limit: admission.limit().map(ToOwned::to_owned),
            delay_ns: nanos(delay),
            burst: decision.map(|decision| decision.limit),
            remaining: decision.map(|decision| decision.remaining),
            retry,
            reset_after_ns: decision.map(|decision| nanos(decision.reset_after)),
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
