//! RFC 9457 problem bodies.

use std::borrow::Cow;

use http::StatusCode;
use smallvec::SmallVec;
use tidegate::{Decision, Retry, Verdict};

use crate::headers::retry_after_seconds;

/// The media type of a problem body.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// The problem type of a refusal, as draft-ietf-httpapi-ratelimit-headers-10 registers it.
pub const QUOTA_EXCEEDED: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";

const QUOTA_EXCEEDED_TITLE: &str =
    "Request cannot be satisfied as assigned quota has been exceeded";

/// Why a request got no better answer, for a program to read.
///
/// ```
/// use http::StatusCode;
/// use tidegate_http::Problem;
///
/// let problem = Problem::of(StatusCode::NOT_FOUND).detail("no route of the policy matches");
/// assert_eq!(
///     String::from_utf8(problem.to_json())?,
///     r#"{"type":"about:blank","title":"Not Found","status":404,"#.to_owned()
///         + r#""detail":"no route of the policy matches"}"#,
/// );
/// # Ok::<(), std::string::FromUtf8Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem<'a> {
    type_uri: &'static str,
    title: &'static str,
    status: StatusCode,
    detail: Cow<'a, str>,
    violated: SmallVec<[&'a str; 4]>,
}

impl<'a> Problem<'a> {
    /// A problem that its status says all about.
    pub fn of(status: StatusCode) -> Self {
        Self {
            type_uri: "about:blank",
            title: status.canonical_reason().unwrap_or("Error"),
            status,
            detail: Cow::Borrowed(""),
            violated: SmallVec::new(),
        }
    }

    /// The refusal of a request by limits: `violated` are the names of those that refused it,
    /// `told` is the one that `decision` is of.
    pub fn quota_exceeded(
        status: StatusCode,
        violated: impl IntoIterator<Item = &'a str>,
        told: &str,
        decision: &Decision,
    ) -> Self {
        Self {
            type_uri: QUOTA_EXCEEDED,
            title: QUOTA_EXCEEDED_TITLE,
            status,
            detail: Cow::Owned(refusal(told, decision)),
            violated: violated.into_iter().collect(),
        }
    }

    /// The same, with a sentence about this one occurrence.
    #[must_use]
    pub fn detail(self, detail: impl Into<Cow<'a, str>>) -> Self {
        Self {
            detail: detail.into(),
            ..self
        }
    }

    /// The status that goes with it.
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// The body.
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256 + self.detail.len());
        // Types and titles are ours: nothing in them needs escaping.
        out.extend_from_slice(b"{\"type\":\"");
        out.extend_from_slice(self.type_uri.as_bytes());
        out.extend_from_slice(b"\",\"title\":\"");
        out.extend_from_slice(self.title.as_bytes());
        out.extend_from_slice(b"\",\"status\":");
        out.extend_from_slice(self.status.as_str().as_bytes());
        if !self.detail.is_empty() {
            out.extend_from_slice(b",\"detail\":");
            push_json(&mut out, &self.detail);
        }
        if !self.violated.is_empty() {
            out.extend_from_slice(b",\"violated-policies\":[");
            for (index, name) in self.violated.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                push_json(&mut out, name);
            }
            out.push(b']');
        }
        out.push(b'}');
        out
    }
}

fn push_json(out: &mut Vec<u8>, text: &str) {
    let is_plain = |byte: u8| byte >= 0x20 && byte != b'"' && byte != b'\\';
    if text.bytes().all(is_plain) {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else {
        serde_json::to_writer(out, text).expect("a str is JSON, and a Vec takes all of it");
    }
}

fn refusal(limit: &str, decision: &Decision) -> String {
    match (decision.verdict, retry_after_seconds(decision)) {
        (
            Verdict::Denied {
                retry: Retry::OnRelease,
            },
            _,
        ) => format!(
            "all {} places of `{limit}` are taken; one is free when a request in flight ends",
            decision.limit
        ),
        (_, Some(seconds)) => format!("`{limit}` allows this request in {seconds} s"),
        (_, None) => format!("`{limit}` never allows this request: it asks for too much at once"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[track_caller]
    fn check(problem: &Problem<'_>, json: &str) {
        assert_eq!(String::from_utf8(problem.to_json()).unwrap(), json);
        serde_json::from_slice::<serde_json::Value>(&problem.to_json()).unwrap();
    }

    fn denied(retry: Retry) -> Decision {
        let verdict = Verdict::Denied { retry };
        Decision {
            verdict,
            limit: 5,
            remaining: 0,
            reset_after: Duration::ZERO,
        }
    }

    #[test]
    fn a_refusal_names_the_limits_and_the_wait() {
        let decision = denied(Retry::After(Duration::from_millis(5_400)));
        let status = StatusCode::TOO_MANY_REQUESTS;
        check(
            &Problem::quota_exceeded(status, ["per-client", "a\"b"], "per-client", &decision),
            "{\"type\":\"https://iana.org/assignments/http-problem-types#quota-exceeded\",\
             \"title\":\"Request cannot be satisfied as assigned quota has been exceeded\",\
             \"status\":429,\"detail\":\"`per-client` allows this request in 6 s\",\
             \"violated-policies\":[\"per-client\",\"a\\\"b\"]}",
        );
    }

    #[test]
    fn the_detail_says_what_there_is_to_say() {
        let detail = |retry| refusal("slots", &denied(retry));
        assert_eq!(
            detail(Retry::OnRelease),
            "all 5 places of `slots` are taken; one is free when a request in flight ends"
        );
        assert_eq!(
            detail(Retry::Never),
            "`slots` never allows this request: it asks for too much at once"
        );
    }

    #[test]
    fn without_detail_there_is_none() {
        check(
            &Problem::of(StatusCode::BAD_GATEWAY),
            r#"{"type":"about:blank","title":"Bad Gateway","status":502}"#,
        );
    }
}
