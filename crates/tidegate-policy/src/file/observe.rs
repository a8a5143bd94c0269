//! `gateway.access_log`, `gateway.debug_header` and `gateway.headers`

use schemars::JsonSchema;
use serde::Deserialize;

use super::{DurationText, Field, OneOrMany, SizeText};

/// The access log.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(
    rename = "access_log",
    expecting = "a file, `stdout`, or a map such as { path: access.log, format: json }"
)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "AccessLog", extend("required" = ["path"]))]
pub(crate) struct AccessLogFile {
    /// The file, or `stdout`.
    pub(crate) path: Field<String>,
    /// How a line is written. Default: `json`.
    pub(crate) format: Field<LogFormatName>,
    /// Of `json`: request headers whose values are logged. Default: none.
    pub(crate) headers: Field<OneOrMany<String>>,
    /// Query parameters whose values are not logged; `*` for the whole query. Default: none.
    pub(crate) hide_query: Field<OneOrMany<String>>,
    /// Which requests are logged, beside slow ones. Default: all.
    pub(crate) only: Field<OneOrMany<LogOnlyName>>,
    /// Requests that take this long are logged, whatever `only` says. Default: as `only` says.
    pub(crate) slow: Field<DurationText>,
    /// Most bytes that wait to be written; lines beyond are dropped and counted. Default: 8MiB.
    pub(crate) buffer: Field<SizeText>,
}

/// How a line of the access log is written.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(
    rename = "format",
    rename_all = "snake_case",
    expecting = "json, combined or combined_limits"
)]
#[schemars(rename = "LogFormat")]
pub(crate) enum LogFormatName {
    /// A JSON object.
    Json,
    /// As nginx's `combined`.
    Combined,
    /// The same, and what limits had to do with it.
    CombinedLimits,
}

/// Which requests are logged.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(
    rename = "only",
    rename_all = "snake_case",
    expecting = "refused or errors"
)]
#[schemars(rename = "LogOnly")]
pub(crate) enum LogOnlyName {
    /// Those that a limit refused, or would have if it were no shadow.
    Refused,
    /// Those that were answered with 5xx, or whose answer did not end.
    Errors,
}

impl super::field::ListItem for LogOnlyName {
    const EXPECTED: &'static str = "refused or errors, or a list of them";
}

/// Who may ask what each limit answered.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(
    rename = "debug_header",
    expecting = "who may ask, such as { from: 10.0.0.0/8 }"
)]
#[serde(default, deny_unknown_fields)]
#[schemars(
    rename = "DebugHeader",
    extend("anyOf" = [{ "required": ["from"] }, { "required": ["token"] }])
)]
pub(crate) struct DebugHeaderFile {
    /// Clients, by address or network.
    pub(crate) from: Field<OneOrMany<String>>,
    /// Or whoever sends this text: 16 to 256 visible ASCII characters.
    pub(crate) token: Field<String>,
}

/// What answers tell clients of limits.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(
    rename = "headers",
    expecting = "a map such as { rate_limit: true, x_rate_limit: true }"
)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Headers")]
pub(crate) struct HeadersFile {
    /// `RateLimit` and `RateLimit-Policy`, as the newest draft of the IETF has them.
    /// Default: true.
    pub(crate) rate_limit: Field<bool>,
    /// `RateLimit-Limit`, `-Remaining` and `-Reset`, as drafts up to 06 had them.
    /// Default: false.
    pub(crate) rate_limit_draft_6: Field<bool>,
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`. Default: false.
    pub(crate) x_rate_limit: Field<bool>,
    /// What `X-RateLimit-Reset` is. Default: `seconds`.
    pub(crate) x_rate_limit_reset: Field<ResetName>,
    /// `Retry-After` in refusals. Default: true.
    pub(crate) retry_after: Field<bool>,
}

/// What `X-RateLimit-Reset` is.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(
    rename = "x_rate_limit_reset",
    rename_all = "snake_case",
    expecting = "seconds or epoch"
)]
#[schemars(rename = "Reset")]
pub(crate) enum ResetName {
    /// Seconds from now.
    Seconds,
    /// Unix time, as GitHub has it.
    Epoch,
}
