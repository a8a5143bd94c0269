//! What a policy file looks like: the one description that reading and the JSON Schema share.
//!
//! Every value is a [`Field`], which may be absent or wrong without ending the reading. What
//! the texts mean is found out in `compile`.

mod bandwidth;
mod field;
mod gateway;
mod limit;
mod observe;
mod on_limit;
mod redis;
mod state;
mod text;
mod upstream;

use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) use self::bandwidth::{BurstText, DirectionName};
pub(crate) use self::field::{Field, Map, MapOrText, OneOrMany};
pub(crate) use self::gateway::{
    AccessFile, AdminFile, GatewayFile, MatchFile, RouteFile, WhenFullName,
};
pub(crate) use self::limit::{
    AlgorithmName, AlignName, LimitFile, OnChangeName, OnMissingName, OnUnavailableName,
    OverrideFile, RefillName, SchemeName, StoreName, ThenName,
};
pub(crate) use self::observe::{
    AccessLogFile, DebugHeaderFile, HeadersFile, LogFormatName, LogOnlyName, ResetName,
};
pub(crate) use self::on_limit::{
    AnswerFile, OnLimitFile, QueueFile, QueueOrder, RedirectFile, TarpitFile,
};
pub(crate) use self::redis::RedisFile;
pub(crate) use self::state::StateFile;
pub(crate) use self::text::{
    BandwidthText, DurationText, RateText, Scalar, SizePerSecondText, SizeText,
};
pub(crate) use self::upstream::{BalanceName, BuiltinName, UpstreamFile};

/// A tidegate policy.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(
    rename = "a policy",
    expecting = "a map with limits, redis, state, upstreams, gateway and admin"
)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Policy")]
pub(crate) struct PolicyFile {
    /// Which edition of the policy this is, counting up. While nodes have different editions, what
    /// they share is counted by the newest. Default: none is newer than another.
    pub(crate) version: Field<u64>,
    /// Limits by name. A route names those that hold for it.
    pub(crate) limits: Field<Map<LimitFile>>,
    /// Where requests go, by name.
    pub(crate) upstreams: Field<Map<UpstreamFile>>,
    /// The reverse proxy.
    pub(crate) gateway: Field<GatewayFile>,
    /// What nodes share their limits through.
    pub(crate) redis: Field<RedisFile>,
    /// Where the counts of limits are kept that survive a restart.
    pub(crate) state: Field<StateFile>,
    /// The admin port: health, metrics, limits.
    pub(crate) admin: Field<AdminFile>,
}
