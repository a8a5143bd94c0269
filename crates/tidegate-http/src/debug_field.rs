//! What each limit said of a request, as a header for whoever looks for a fault.

use std::time::Duration;

use http::{HeaderName, HeaderValue};
use tidegate::{Decision, Retry, Verdict};

use crate::structured_field::Field;

/// `x-tidegate-debug`: in a request it asks, in an answer it tells.
pub const DEBUG: HeaderName = HeaderName::from_static("x-tidegate-debug");

/// What one limit said.
#[derive(Clone, Copy, Debug)]
pub struct Said<'a> {
    /// The limit's name.
    pub name: &'a str,
    /// What it said.
    pub decision: Decision,
    /// Whether it enforces nothing.
    pub shadow: bool,
    /// Whether it is the one that the client is told of.
    pub told: bool,
}

/// The route, and what each limit said, as a List of structured fields (RFC 9651). Times are whole
/// milliseconds, rounded up.
///
/// ```
/// use std::time::Duration;
/// use tidegate::{Decision, Verdict};
/// use tidegate_http::debug_field::{Said, debug_field};
///
/// let decision = Decision {
///     verdict: Verdict::Allowed { delay: Duration::ZERO },
///     limit: 20,
///     remaining: 19,
///     reset_after: Duration::from_millis(600),
/// };
/// let said = Said { name: "per-client", decision, shadow: false, told: true };
/// assert_eq!(
///     debug_field("all", [said]),
///     "\"all\";route, \"per-client\";decision=allowed;limit=20;remaining=19;reset_ms=600;told",
/// );
/// ```
pub fn debug_field<'a>(route: &str, limits: impl IntoIterator<Item = Said<'a>>) -> HeaderValue {
    let mut field = Field::new();
    field.push_string(route);
    field.push(";route");
    for said in limits {
        field.push(", ");
        field.push_string(said.name);
        let decision = &said.decision;
        match decision.verdict {
            Verdict::Allowed { delay } if delay.is_zero() => field.push(";decision=allowed"),
            Verdict::Allowed { .. } => field.push(";decision=delayed"),
            Verdict::Denied { .. } => field.push(";decision=denied"),
        }
        field.push_integer(";limit=", decision.limit);
        field.push_integer(";remaining=", decision.remaining);
        field.push_integer(";reset_ms=", millis_up(decision.reset_after));
        match decision.verdict {
            Verdict::Allowed { delay } if delay.is_zero() => {}
            Verdict::Allowed { delay: wait }
            | Verdict::Denied {
                retry: Retry::After(wait),
            } => field.push_integer(";wait_ms=", millis_up(wait)),
            Verdict::Denied {
                retry: Retry::OnRelease,
            } => field.push(";on_release"),
            Verdict::Denied {
                retry: Retry::Never,
            } => field.push(";never"),
        }
        if said.shadow {
            field.push(";shadow");
        }
        if said.told {
            field.push(";told");
        }
    }
    field.finish()
}

fn millis_up(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(verdict: Verdict, told: &str) {
        let decision = Decision {
            verdict,
            limit: 5,
            remaining: 0,
            reset_after: Duration::from_nanos(1),
        };
        let said = Said {
            name: "a\"b",
            decision,
            shadow: true,
            told: false,
        };
        let expected = format!("\"r\";route, \"a\\\"b\";decision={told};shadow");
        assert_eq!(debug_field("r", [said]), expected);
    }

    #[test]
    fn it_says_what_waiting_helps() {
        let numbers = ";limit=5;remaining=0;reset_ms=1";
        let wait = Duration::from_micros(1_500);
        let after = Retry::After(wait);
        check(
            Verdict::Denied { retry: after },
            &format!("denied{numbers};wait_ms=2"),
        );
        let retry = Retry::OnRelease;
        check(
            Verdict::Denied { retry },
            &format!("denied{numbers};on_release"),
        );
        let retry = Retry::Never;
        check(Verdict::Denied { retry }, &format!("denied{numbers};never"));
        check(
            Verdict::Allowed { delay: wait },
            &format!("delayed{numbers};wait_ms=2"),
        );
    }
}
