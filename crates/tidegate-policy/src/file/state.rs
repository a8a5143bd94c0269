//! `state:`

use schemars::JsonSchema;
use serde::Deserialize;

use super::{DurationText, Field};

/// Where the counts of the limits are kept that say `persist: true`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(
    rename = "state",
    expecting = "where counts are kept, such as { file: tidegate.state }"
)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "State", extend("required" = ["file"]))]
pub(crate) struct StateFile {
    /// The file, as seen from the folder of the policy. It is made, and replaced as a whole.
    pub(crate) file: Field<String>,
    /// How often it is written, besides when the node stops: what is counted in between is lost
    /// with a crash. Default: 10s.
    pub(crate) every: Field<DurationText>,
}
