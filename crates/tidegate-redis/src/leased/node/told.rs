//! What callers are told.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tidegate::{Decision, Retry, Timestamp, Verdict};

use super::LeaseNode;

impl LeaseNode {
    pub(super) fn allowed(&self, now: Timestamp, remaining: u64) -> Decision {
        let delay = Duration::ZERO;
        self.decision(now, Verdict::Allowed { delay }, remaining)
    }

    pub(super) fn denied(&self, now: Timestamp, retry: Retry) -> Decision {
        self.decision(now, Verdict::Denied { retry }, 0)
    }

    #[inline]
    fn decision(&self, now: Timestamp, verdict: Verdict, remaining: u64) -> Decision {
        let missing = self.terms.burst().saturating_sub(remaining);
        let reset_after = match self.terms.window_micros {
            Some(_) => {
                let ends = self.deadline.load(Ordering::Relaxed);
                ends.saturating_sub(now.as_nanos())
            }
            None => missing.saturating_mul(self.terms.nanos_per_permit()),
        };
        Decision {
            verdict,
            limit: self.terms.burst(),
            remaining,
            reset_after: Duration::from_nanos(reset_after),
        }
    }
}
