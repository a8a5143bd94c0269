//! `redis:`

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Field, OneOrMany};

/// The Redis that nodes share their limits through: one server, a Cluster, or one that Sentinels
/// watch.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(
    rename = "redis",
    expecting = "where Redis is, such as { url: \"redis://127.0.0.1:6379\" }"
)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Redis", extend("required" = ["url"]))]
pub(crate) struct RedisFile {
    /// `redis://HOST:PORT`, or `rediss://` over TLS, with user, password and database as usual.
    /// Of a Cluster some of its nodes, with `sentinel` the Sentinels.
    pub(crate) url: Field<OneOrMany<String>>,
    /// The name of the primary that the Sentinels at `url` watch.
    pub(crate) sentinel: Field<String>,
    /// Whether the servers at `url` are nodes of a Cluster. Default: no.
    pub(crate) cluster: Field<bool>,
    /// How many nodes to expect, until Redis has told how many there are: each grants its part of
    /// a limit meanwhile. Default: this node alone.
    pub(crate) nodes: Field<u64>,
    /// As whom to log in to the servers, where their URLs do not say; with `sentinel`, to the
    /// primary.
    pub(crate) user: Field<String>,
    /// A file with the password for that.
    pub(crate) password_file: Field<String>,
    /// A file of the certificates that servers are trusted by, instead of the usual ones.
    pub(crate) ca_file: Field<String>,
}
