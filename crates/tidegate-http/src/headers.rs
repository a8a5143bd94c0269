//! A decision as response headers.
//!
//! - `RateLimit-Policy` says the quota of every limit that was asked: `q` permits per `w`
//!   seconds.
//! - `RateLimit` speaks of the burst of the limit that is told: `r` permits are there now, more
//!   come in `t` seconds.
//! - `Retry-After` says when a refused request may come again.
//! - `X-RateLimit-Limit`, `-Remaining` and `-Reset` speak of the burst as well: how large it is,
//!   what is left of it, and when it is whole: in seconds, or as Unix time.
//! - `RateLimit-Limit`, `-Remaining` and `-Reset` say the same, in seconds: they are what the
//!   IETF's drafts up to 06 had.
//!
//! The first two are of draft-ietf-httpapi-ratelimit-headers-10. Which limit is told is the
//! node's to say: of a refusal the one with the longest wait, else the one with the least left.
//! Times are whole seconds from now, or since 1970, rounded up; nothing is ever an HTTP date.

use std::time::Duration;

use http::{HeaderName, HeaderValue};
use tidegate::{Algorithm, Decision, Retry, Timestamp, Verdict};

use crate::seconds::whole_seconds_up;
use crate::structured_field::Field;

/// `ratelimit`.
pub const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
/// `ratelimit-policy`.
pub const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
/// `x-ratelimit-limit`.
pub const X_RATE_LIMIT_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
/// `x-ratelimit-remaining`.
pub const X_RATE_LIMIT_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
/// `x-ratelimit-reset`.
pub const X_RATE_LIMIT_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// `ratelimit-limit`.
pub const RATE_LIMIT_LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
/// `ratelimit-remaining`.
pub const RATE_LIMIT_REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
/// `ratelimit-reset`.
pub const RATE_LIMIT_RESET: HeaderName = HeaderName::from_static("ratelimit-reset");

/// Seconds until a refused request may come again: what `Retry-After` carries.
///
/// [`Retry::After`] is its wait, rounded up and never 0. [`Retry::OnRelease`] has no time of
/// its own: 1, the shortest that can be said, since a place may be free at once. [`Retry::Never`]
/// has none, and so has an allowed request.
pub fn retry_after_seconds(decision: &Decision) -> Option<u64> {
    match decision.verdict {
        Verdict::Allowed { .. }
        | Verdict::Denied {
            retry: Retry::Never,
        } => None,
        Verdict::Denied {
            retry: Retry::After(wait),
        } => Some(whole_seconds_up(wait).max(1)),
        Verdict::Denied {
            retry: Retry::OnRelease,
        } => Some(1),
    }
}

/// `Retry-After`, where there is something to say: see [`retry_after_seconds`].
pub fn retry_after(decision: &Decision) -> Option<HeaderValue> {
    retry_after_seconds(decision).map(HeaderValue::from)
}

/// `RateLimit` for one limit: `"per-client";r=19;t=3`.
///
/// `t` is when more permits are there: for a refusal that has a time the same as
/// `Retry-After`, else the time until all of them are back. It is left out where no time is
/// known (a concurrency limit) or nothing is missing.
pub fn rate_limit(name: &str, decision: &Decision) -> HeaderValue {
    let mut field = Field::new();
    field.push_string(name);
    field.push_integer(";r=", decision.remaining);
    let seconds = match decision.retry_after() {
        Some(_) => retry_after_seconds(decision).unwrap_or(0),
        None => whole_seconds_up(decision.reset_after),
    };
    if seconds > 0 {
        field.push_integer(";t=", seconds);
    }
    field.finish()
}

/// `RateLimit-Policy` for all limits that were asked: `"per-client";q=100;w=60`. `None` without
/// any.
///
/// `w` has no fractions: below one second it is left out, and a longer window that is no whole
/// number of seconds is rounded up, so that a client which keeps to `q` per `w` keeps to the
/// limit. A concurrency limit is `"slots";q=5;qu="concurrent-requests"`.
pub fn rate_limit_policy<'a>(
    limits: impl IntoIterator<Item = (&'a str, &'a Algorithm)>,
) -> Option<HeaderValue> {
    let mut field = Field::new();
    for (name, algorithm) in limits {
        let Some(quota) = Advertised::of(algorithm) else {
            continue;
        };
        if !field.is_empty() {
            field.push(", ");
        }
        field.push_string(name);
        field.push_integer(";q=", quota.permits);
        match quota.window {
            None => field.push(";qu=\"concurrent-requests\""),
            Some(window) if window >= Duration::from_secs(1) => {
                field.push_integer(";w=", whole_seconds_up(window));
            }
            Some(_) => {}
        }
    }
    (!field.is_empty()).then(|| field.finish())
}

/// `X-RateLimit-Limit`, `-Remaining` and `-Reset`: the burst, what is left of it, and the
/// seconds until it is whole again. For a refusal the last is at least `Retry-After`.
pub fn x_rate_limit(decision: &Decision) -> Triple {
    let names = [
        X_RATE_LIMIT_LIMIT,
        X_RATE_LIMIT_REMAINING,
        X_RATE_LIMIT_RESET,
    ];
    triple(names, decision, reset_seconds(decision))
}

/// The same with the time at which it is whole again, in Unix seconds, as GitHub has it: no earlier
/// than those of [`x_rate_limit`] from `now` on.
pub fn x_rate_limit_epoch(decision: &Decision, now: Timestamp) -> Triple {
    let names = [
        X_RATE_LIMIT_LIMIT,
        X_RATE_LIMIT_REMAINING,
        X_RATE_LIMIT_RESET,
    ];
    let reset = Duration::from_secs(retry_after_seconds(decision).unwrap_or(0));
    let reset = decision.reset_after.max(reset);
    let since_epoch = now.after(reset).since(Timestamp::EPOCH);
    triple(names, decision, whole_seconds_up(since_epoch))
}

/// `RateLimit-Limit`, `-Remaining` and `-Reset` of the drafts up to 06, with what
/// [`x_rate_limit`] says.
pub fn rate_limit_draft_6(decision: &Decision) -> Triple {
    let names = [RATE_LIMIT_LIMIT, RATE_LIMIT_REMAINING, RATE_LIMIT_RESET];
    triple(names, decision, reset_seconds(decision))
}

/// Three fields of an answer.
pub type Triple = [(HeaderName, HeaderValue); 3];

fn triple(names: [HeaderName; 3], decision: &Decision, reset: u64) -> Triple {
    let [limit, remaining, at] = names;
    [
        (limit, HeaderValue::from(decision.limit)),
        (remaining, HeaderValue::from(decision.remaining)),
        (at, HeaderValue::from(reset)),
    ]
}

fn reset_seconds(decision: &Decision) -> u64 {
    let reset = whole_seconds_up(decision.reset_after);
    reset.max(retry_after_seconds(decision).unwrap_or(0))
}

/// What `RateLimit-Policy` says of an algorithm.
struct Advertised {
    permits: u64,
    /// `None`: no window, places.
    window: Option<Duration>,
}

impl Advertised {
    /// `None` for an algorithm that came later than this crate.
    fn of(algorithm: &Algorithm) -> Option<Self> {
        let (permits, window) = match *algorithm {
            Algorithm::TokenBucket(quota)
            | Algorithm::IntervalBucket { quota, .. }
            | Algorithm::SmoothBursty { quota, .. }
            | Algorithm::SmoothWarmUp { quota, .. } => (quota.permits(), Some(quota.period())),
            Algorithm::FixedWindow { permits, window }
            | Algorithm::WindowFromFirst { permits, window }
            | Algorithm::SlidingWindow {
                permits, window, ..
            }
            | Algorithm::SlidingCounter { permits, window }
            | Algorithm::SlidingLog { permits, window } => (permits, Some(window)),
            Algorithm::Nginx {
                requests,
                per_minute,
                ..
            } => {
                let seconds = if per_minute { 60 } else { 1 };
                (requests, Some(Duration::from_secs(seconds)))
            }
            Algorithm::SentinelWarmUp { count, .. }
            | Algorithm::SentinelWarmUpQueue { count, .. } => (count, Some(Duration::from_secs(1))),
            Algorithm::CalendarWindow { permits, unit } => (permits, Some(unit.longest())),
            Algorithm::RedisCell {
                count,
                period_seconds,
                ..
            } => (count, Some(Duration::from_secs(period_seconds))),
            Algorithm::Concurrency { max } => (max, None),
            _ => return None,
        };
        Some(Self { permits, window })
    }
}

#[cfg(test)]
mod tests;
