//! What the gateway tells of requests: the access log, ids, the debug header, and headers about
//! limits.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;

/// A line for each request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLog {
    /// Where to.
    pub target: LogTarget,
    /// How a line is written.
    pub format: LogFormat,
    /// Request headers, in lower case, whose values are in a line of JSON.
    pub headers: Vec<String>,
    /// What is not told of queries.
    pub hide_query: HideQuery,
    /// Which requests are logged.
    pub only: LogOnly,
    /// Most bytes that wait to be written.
    pub buffer: usize,
}

/// Where a log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogTarget {
    /// Standard output.
    Stdout,
    /// The end of a file.
    File(PathBuf),
}

/// How a line of the access log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// A JSON object.
    Json,
    /// As nginx's `combined`.
    Combined,
    /// The same, and what limits had to do with it.
    CombinedLimits,
}

/// What is not told of queries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HideQuery {
    /// The values of these parameters.
    Values(Vec<String>),
    /// Everything.
    Whole,
}

/// Which requests are logged: those of which something here holds, or all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogOnly {
    /// Those that a limit refused, or would have if it were no shadow.
    pub refused: bool,
    /// Those that were answered with 5xx, or whose answer did not end.
    pub errors: bool,
    /// Those that took this long.
    pub slow: Option<Duration>,
}

impl LogOnly {
    /// Whether all requests are logged.
    pub const fn is_all(&self) -> bool {
        !self.refused && !self.errors && self.slow.is_none()
    }
}

/// Who may ask what each limit answered.
#[derive(Clone, PartialEq, Eq)]
pub struct DebugHeader {
    /// These clients.
    pub from: Vec<IpNet>,
    /// Whoever sends this.
    pub token: Option<String>,
}

impl fmt::Debug for DebugHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the token: it is a secret.
        f.debug_struct("DebugHeader")
            .field("from", &self.from)
            .finish_non_exhaustive()
    }
}

/// What answers tell clients of limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a header that is there or not"
)]
pub struct LimitHeaders {
    /// `RateLimit` and `RateLimit-Policy`.
    pub rate_limit: bool,
    /// `RateLimit-Limit`, `-Remaining` and `-Reset`, as drafts up to 06 had them.
    pub rate_limit_draft_6: bool,
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`.
    pub x_rate_limit: bool,
    /// What `X-RateLimit-Reset` is.
    pub x_rate_limit_reset: Reset,
    /// `Retry-After` in refusals.
    pub retry_after: bool,
}

impl Default for LimitHeaders {
    fn default() -> Self {
        Self {
            rate_limit: true,
            rate_limit_draft_6: false,
            x_rate_limit: false,
            x_rate_limit_reset: Reset::Seconds,
            retry_after: true,
        }
    }
}

/// What `X-RateLimit-Reset` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// Seconds from now.
    Seconds,
    /// Unix time.
    Epoch,
}
