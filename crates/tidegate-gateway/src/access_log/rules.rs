//! What a version of the policy says of the access log.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;
use tidegate_http::access_log::{Decided, Ended, Entry, Hide};
use tidegate_http::access_log::{combined, combined_limits, json};
use tidegate_policy::{AccessLog, HideQuery, LogFormat, LogOnly, LogTarget};

/// Which requests are logged, where to and how.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(super) target: Arc<LogTarget>,
    format: LogFormat,
    /// Headers whose values are logged.
    pub(super) headers: Box<[HeaderName]>,
    pub(super) hide: Hide,
    only: LogOnly,
    pub(super) max_waiting: usize,
}

impl Rules {
    pub(crate) fn new(log: &AccessLog) -> Self {
        let headers = log.headers.iter();
        Self {
            target: Arc::new(log.target.clone()),
            format: log.format,
            headers: headers
                .filter_map(|name| HeaderName::from_bytes(name.as_bytes()).ok())
                .collect(),
            hide: match &log.hide_query {
                HideQuery::Values(names) => Hide::values(names.iter().map(String::as_str)),
                HideQuery::Whole => Hide::whole(),
            },
            only: log.only,
            max_waiting: log.buffer,
        }
    }

    /// Whether this one is logged.
    pub(super) fn takes(&self, entry: &Entry<'_>) -> bool {
        if self.only.is_all() {
            return true;
        }
        let is_refused = matches!(entry.decision, Some(Decided::Denied | Decided::Shadow));
        let is_error = entry.status >= 500 || entry.ended != Ended::Complete;
        let is_slow = |slow: Duration| entry.duration >= slow;
        (self.only.refused && is_refused)
            || (self.only.errors && is_error)
            || self.only.slow.is_some_and(is_slow)
    }

    /// Whether the name of a user is logged.
    pub(super) fn wants_user(&self) -> bool {
        self.format != LogFormat::Json
    }

    pub(super) fn write(&self, entry: &Entry<'_>, out: &mut Vec<u8>) {
        match self.format {
            LogFormat::Json => json(entry, out),
            LogFormat::Combined => combined(entry, out),
            LogFormat::CombinedLimits => combined_limits(entry, out),
        }
    }
}
