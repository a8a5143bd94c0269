//! A request that has ended, as a line of an access log.
//!
//! - [`json`]: one object a line.
//! - [`combined`]: nginx's `combined`, byte for byte, with times in UTC.
//! - [`combined_limits`]: the same, and behind it what limits had to do with it:
//!   `limit="per-client" decision=delayed waited=0.500 time=0.502 id="-"`.
//!
//! What a client sent is escaped, so that no request can write a line of its own; what it sent
//! more than [`MAX_VALUE`] bytes of is cut there.

mod combined;
mod json;
mod query;
mod text;

use std::borrow::Cow;
use std::net::IpAddr;
use std::time::Duration;

use http::Version;
use tidegate::Timestamp;

pub use self::combined::{basic_user, combined, combined_limits};
pub use self::json::json;
pub use self::query::Hide;

/// The most that is logged of a target, and of a header's value, in bytes before escaping.
pub const MAX_VALUE: usize = 16 * 1024;

/// A request that has ended.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// When it ended.
    pub at: Timestamp,
    /// The client, found through trusted proxies.
    pub client: IpAddr,
    /// Who sent it.
    pub peer: IpAddr,
    /// What was asked; `None` where that could not be read.
    pub asked: Option<Asked<'a>>,
    /// The status of the answer.
    pub status: u16,
    /// Bytes of the answer's body that were sent.
    pub bytes_sent: u64,
    /// Bytes of the request's body that came.
    pub bytes_received: u64,
    /// From the request's header to its end.
    pub duration: Duration,
    /// How much of that it waited for limits.
    pub waited: Duration,
    /// Which server was asked.
    pub upstream: Option<Upstream<'a>>,
    /// The route that it took.
    pub route: Option<&'a str>,
    /// What limits said; `None` where they were not asked.
    pub decision: Option<Decided>,
    /// The limit that decided.
    pub limit: Option<&'a str>,
    /// What was left of that.
    pub remaining: Option<u64>,
    /// The request's id.
    pub id: Option<&'a [u8]>,
    /// How it ended.
    pub ended: Ended,
}

/// What was asked.
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    /// The method.
    pub method: &'a str,
    /// The target as it came, or with parts of the query hidden.
    pub target: Cow<'a, str>,
    /// The version.
    pub version: Version,
    /// `Host`.
    pub host: Option<&'a [u8]>,
    /// `Referer`, with the same parts hidden.
    pub referer: Option<Cow<'a, [u8]>>,
    /// `User-Agent`.
    pub user_agent: Option<&'a [u8]>,
    /// `Authorization`, of which the name of the user is logged by [`combined`].
    pub authorization: Option<&'a [u8]>,
    /// Headers that are logged by [`json`].
    pub headers: &'a [(&'a str, &'a [u8])],
}

/// The server that was asked.
#[derive(Clone, Copy, Debug)]
pub struct Upstream<'a> {
    /// The upstream's name.
    pub name: &'a str,
    /// The server's address.
    pub server: &'a str,
    /// From when a connection was asked for to the header of the answer; `None` where none came.
    pub duration: Option<Duration>,
}

/// What limits said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decided {
    /// It goes ahead at once.
    Allowed,
    /// It goes ahead after a while.
    Delayed,
    /// It was refused.
    Denied,
    /// It goes ahead, and would not have if a shadow limit were none.
    Shadow,
    /// It went away while it was waiting for an answer.
    Waiting,
}

impl Decided {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Delayed => "delayed",
            Self::Denied => "denied",
            Self::Shadow => "shadow",
            Self::Waiting => "waiting",
        }
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was answered, and all of the answer was handed over.
    Complete,
    /// The client went away before that.
    ClientGone,
    /// The upstream server broke off within its answer.
    UpstreamBrokeOff,
    /// Somebody was too slow.
    TimedOut,
    /// It could not be read.
    Unreadable,
}

impl Ended {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::ClientGone => "client_gone",
            Self::UpstreamBrokeOff => "upstream_broke_off",
            Self::TimedOut => "timed_out",
            Self::Unreadable => "unreadable",
        }
    }
}

#[cfg(test)]
mod tests;
