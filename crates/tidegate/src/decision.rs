//! The answer to *may this request go ahead now?*

use core::cmp::Ordering;
use core::time::Duration;

/// What a limit answers. Flat: a denied request is a `Decision` too, never an `Err`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a decision that nobody looks at limits nothing"]
pub struct Decision {
    /// Allowed or denied, and the time that goes with it.
    pub verdict: Verdict,
    /// The most that the limit lets through at once after rest: the burst, the permits of a
    /// window, or the places of a concurrency limit.
    pub limit: u64,
    /// Permits that would be allowed now, without delay; never above `limit`.
    pub remaining: u64,
    /// Time until `remaining` is back at its most if nothing else comes; for a concurrency
    /// limit always zero (it is full again when what is inside has left).
    pub reset_after: Duration,
}

/// Allowed or denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The request may go ahead after `delay`; zero except for limits that pace or that let
    /// callers pay later, and for callers that offered to wait.
    Allowed {
        /// How long the caller has to wait first. Its permits are taken already.
        delay: Duration,
    },
    /// The request may not go ahead. Nothing was taken.
    Denied {
        /// When it might.
        retry: Retry,
    },
}

/// When a denied request may come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// After this time the same request is admitted if no other comes before it, and not one
    /// nanosecond earlier. Never zero.
    After(Duration),
    /// When somebody inside leaves: a concurrency limit has no time to give.
    OnRelease,
    /// Never: the request asks for more than the limit ever has.
    Never,
}

impl Decision {
    /// What stands in for the answer of a limit that has not been asked.
    #[cfg(feature = "std")]
    pub(crate) const NOT_ASKED: Self = Self {
        verdict: Verdict::Denied {
            retry: Retry::Never,
        },
        limit: 0,
        remaining: 0,
        reset_after: Duration::ZERO,
    };

    /// The answer of a store that another has taken over, where that cannot be asked instead: to
    /// come again at once.
    #[cfg(feature = "std")]
    pub(crate) const MOVED: Self = Self {
        verdict: Verdict::Denied {
            retry: Retry::After(Duration::from_nanos(1)),
        },
        limit: 0,
        remaining: 0,
        reset_after: Duration::from_nanos(1),
    };

    /// Whether the request may go ahead (perhaps after [`delay`](Self::delay)).
    pub const fn is_allowed(&self) -> bool {
        matches!(self.verdict, Verdict::Allowed { .. })
    }

    /// Whether the request was refused.
    pub const fn is_denied(&self) -> bool {
        !self.is_allowed()
    }

    /// How long an allowed request has to wait first; zero for a denied one.
    pub const fn delay(&self) -> Duration {
        match self.verdict {
            Verdict::Allowed { delay } => delay,
            Verdict::Denied { .. } => Duration::ZERO,
        }
    }

    /// When a denied request may come again; `None` for an allowed one.
    pub const fn retry(&self) -> Option<Retry> {
        match self.verdict {
            Verdict::Allowed { .. } => None,
            Verdict::Denied { retry } => Some(retry),
        }
    }

    /// Whether the request has to wait for somebody inside to leave.
    pub const fn is_on_release(&self) -> bool {
        matches!(self.retry(), Some(Retry::OnRelease))
    }

    /// The time after which a denied request would be admitted, where there is one.
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.verdict {
            Verdict::Denied {
                retry: Retry::After(wait),
            } => Some(wait),
            _ => None,
        }
    }

    /// This decision as told to a caller whose clock is `behind` the time it was made at: waits
    /// are as long as that caller's clock has to go on.
    #[cfg(feature = "std")]
    pub(crate) fn told_behind(self, behind: Duration) -> Self {
        if behind.is_zero() {
            return self;
        }
        let verdict = match self.verdict {
            Verdict::Denied {
                retry: Retry::After(wait),
            } => Verdict::Denied {
                retry: Retry::After(wait.saturating_add(behind)),
            },
            verdict => verdict,
        };
        let reset_after = match self.reset_after {
            Duration::ZERO => Duration::ZERO,
            reset => reset.saturating_add(behind),
        };
        Self {
            verdict,
            reset_after,
            ..self
        }
    }

    /// Orders decisions on one request by which of them a caller should be told: any denial
    /// before any allowance; among denials the longest wait, among allowances the least
    /// remaining. `Less` is told first.
    pub fn cmp_severity(&self, other: &Self) -> Ordering {
        match (self.retry(), other.retry()) {
            (Some(a), Some(b)) => b.cmp_wait(&a),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => self.remaining.cmp(&other.remaining),
        }
    }
}

impl Retry {
    /// Orders by wait: [`OnRelease`](Self::OnRelease) (nothing is known, so zero is the most
    /// that can be promised) before [`After`](Self::After) before [`Never`](Self::Never).
    pub fn cmp_wait(&self, other: &Self) -> Ordering {
        let rank = |retry: &Self| match *retry {
            Self::OnRelease => (0, Duration::ZERO),
            Self::After(wait) => (1, wait),
            Self::Never => (2, Duration::ZERO),
        };
        rank(self).cmp(&rank(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(retry: Retry) -> Decision {
        let verdict = Verdict::Denied { retry };
        Decision {
            verdict,
            limit: 1,
            remaining: 0,
            reset_after: Duration::ZERO,
        }
    }

    #[test]
    fn the_longest_wait_is_told_first() {
        let second = denied(Retry::After(Duration::from_secs(1)));
        let minute = denied(Retry::After(Duration::from_mins(1)));
        let never = denied(Retry::Never);
        let release = denied(Retry::OnRelease);
        let verdict = Verdict::Allowed {
            delay: Duration::ZERO,
        };
        let allowed = Decision { verdict, ..second };
        let mut all = [allowed, second, release, never, minute];
        all.sort_by(Decision::cmp_severity);
        assert_eq!(all, [never, minute, second, release, allowed]);
    }
}
