//! Limits that were asked in vain, and would be for a while: nobody asks Redis again before.
//!
//! Pure, and bounded. Permits come before the time that was told only where some are given back
//! or a key is reset: this node forgets a denial then; of what other nodes give back it knows
//! after [`LONGEST`] at most.

use std::collections::HashMap;
use std::time::Duration;

use tidegate::{Ask, Decision, Retry, Verdict};

use super::script::Asked;

/// How long a denial is believed at most.
const LONGEST: Duration = Duration::from_secs(1);
/// The most keys whose denials are remembered.
pub(crate) const MAX_KEYS: usize = 16_384;
/// The most denials (of different asks) of one key.
const MAX_ASKS: usize = 8;
/// How long a full cache waits before it looks again for what is over.
const SWEEP: Duration = Duration::from_millis(100);

/// The denials that a node remembers.
#[derive(Debug, Default)]
pub(crate) struct Denials {
    keys: HashMap<Asked, Vec<Denial>>,
    swept: Duration,
}

#[derive(Clone, Debug)]
struct Denial {
    ask: Ask,
    decision: Decision,
    at: Duration,
    until: Duration,
}

impl Denials {
    /// Remembers what a limit said to `ask`, which was sent at `at`, if that was a denial.
    pub(crate) fn remember(&mut self, limit: &Asked, ask: Ask, decision: Decision, at: Duration) {
        let wait = match decision.retry() {
            Some(Retry::After(wait)) => wait.min(LONGEST),
            Some(Retry::Never) => LONGEST,
            _ => return,
        };
        if self.keys.len() >= MAX_KEYS && !self.keys.contains_key(limit) {
            self.sweep(at);
            if self.keys.len() >= MAX_KEYS {
                return;
            }
        }
        let denials = self.keys.entry(limit.clone()).or_default();
        denials.retain(|denial| denial.ask != ask && at < denial.until);
        if denials.len() < MAX_ASKS {
            denials.push(Denial {
                ask,
                decision,
                at,
                until: at + wait,
            });
        }
    }

    /// What a limit would say to `ask`, where that is known.
    pub(crate) fn of(&self, limit: &Asked, ask: &Ask, now: Duration) -> Option<Decision> {
        let denials = self.keys.get(limit)?;
        let denial = denials.iter().find(|denial| denial.ask == *ask)?;
        if now >= denial.until {
            return None;
        }
        let passed = now.saturating_sub(denial.at);
        let retry = match denial.decision.retry()? {
            Retry::After(wait) => Retry::After(wait.saturating_sub(passed)),
            retry => retry,
        };
        Some(Decision {
            verdict: Verdict::Denied { retry },
            reset_after: denial.decision.reset_after.saturating_sub(passed),
            ..denial.decision
        })
    }

    /// Some of it may be free again.
    pub(crate) fn forget(&mut self, limit: &Asked) {
        self.keys.remove(limit);
    }

    fn sweep(&mut self, now: Duration) {
        if now < self.swept + SWEEP {
            return;
        }
        self.swept = now;
        self.keys.retain(|_, denials| {
            denials.retain(|denial| now < denial.until);
            !denials.is_empty()
        });
    }
}

#[cfg(test)]
mod tests;
