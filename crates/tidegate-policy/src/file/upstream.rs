//! `upstreams:`

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Field, OneOrMany};

/// An upstream: exactly one of `servers` and `builtin`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(
    rename = "an upstream",
    expecting = "an upstream such as { servers: [\"127.0.0.1:9000\"] }"
)]
#[serde(default, deny_unknown_fields)]
#[schemars(
    rename = "Upstream",
    extend("oneOf" = [{ "required": ["servers"] }, { "required": ["builtin"] }])
)]
pub(crate) struct UpstreamFile {
    /// HTTP servers, each `host:port`.
    pub(crate) servers: Field<OneOrMany<String>>,
    /// How requests are spread over the servers.
    pub(crate) balance: Field<BalanceName>,
    /// Something that tidegate answers itself.
    pub(crate) builtin: Field<BuiltinName>,
}

/// How requests are spread over the servers of an upstream.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(
    rename = "balance",
    rename_all = "snake_case",
    expecting = "round_robin"
)]
#[schemars(rename = "Balance")]
pub(crate) enum BalanceName {
    /// One after the other.
    RoundRobin,
}

/// Something that tidegate answers itself.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename = "builtin", rename_all = "snake_case", expecting = "echo")]
#[schemars(rename = "Builtin")]
pub(crate) enum BuiltinName {
    /// Answers with what it was asked, as JSON.
    Echo,
}
