//! `limits:`

use schemars::JsonSchema;
use serde::Deserialize;

use super::{DurationText, Field, Map, OneOrMany, RateText, Scalar};

/// A limit: exactly one of `rate` and `concurrency`, and by what it counts.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(
    rename = "a limit",
    expecting = "a limit such as { rate: 100/min, key: [client_ip] }"
)]
#[serde(default, deny_unknown_fields)]
#[schemars(
    rename = "Limit",
    extend("oneOf" = [{ "required": ["rate"] }, { "required": ["concurrency"] }])
)]
pub(crate) struct LimitFile {
    /// Permits over time: `100/min`, `10/s`, `3 per 5s`. Exact. `0/s` refuses everything.
    pub(crate) rate: Field<RateText>,
    /// Most requests in flight at once.
    pub(crate) concurrency: Field<u64>,
    /// Most permits at once after rest, including the first. Default: the permits of one period.
    pub(crate) burst: Field<u64>,
    /// How a rate is counted.
    pub(crate) algorithm: Field<AlgorithmName>,
    /// Of `smooth_warm_up`: the time from cold to warm.
    pub(crate) warm_up: Field<DurationText>,
    /// Of `smooth_warm_up`: how many times slower a cold limit is. Default: 3.
    pub(crate) cold_factor: Field<u64>,
    /// Of `smooth_bursty` and `smooth_warm_up`: how far ahead permits may be granted.
    /// Default: 1h.
    pub(crate) max_debt: Field<DurationText>,
    /// What is counted apart: `client_ip`, `method`, `host`, `path`, `route`, `header:NAME`,
    /// `cookie:NAME`, `query:NAME`. Without it all requests share one count.
    pub(crate) key: Field<OneOrMany<String>>,
    /// What becomes of a request that lacks a part of the key. Default: `shared`.
    pub(crate) on_missing: Field<OnMissingName>,
    /// Evaluated and counted, never enforced.
    pub(crate) shadow: Field<bool>,
    /// Most keys remembered at once. Default: 1000000.
    pub(crate) max_keys: Field<u64>,
    /// Other numbers for some keys; the first that matches wins.
    pub(crate) overrides: Field<Vec<Field<OverrideFile>>>,
}

/// How a rate is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(
    rename = "algorithm",
    rename_all = "snake_case",
    expecting = "an algorithm"
)]
#[schemars(rename = "Algorithm")]
pub(crate) enum AlgorithmName {
    /// The default: permits flow back evenly. The same as GCRA and as a leaky bucket that
    /// meters.
    #[default]
    TokenBucket,
    /// So many in each window, aligned to the clock; across an edge twice as many.
    FixedWindow,
    /// So many in every window, exactly; remembers each permit.
    SlidingLog,
    /// Guava's smooth bursty: granted at once, paid by who comes next.
    SmoothBursty,
    /// Guava's smooth warm-up: slow after rest.
    SmoothWarmUp,
}

impl AlgorithmName {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::TokenBucket => "token_bucket",
            Self::FixedWindow => "fixed_window",
            Self::SlidingLog => "sliding_log",
            Self::SmoothBursty => "smooth_bursty",
            Self::SmoothWarmUp => "smooth_warm_up",
        }
    }
}

/// What becomes of a request that lacks a part of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(
    rename = "on_missing",
    rename_all = "snake_case",
    expecting = "deny, pass or shared"
)]
#[schemars(rename = "OnMissing")]
pub(crate) enum OnMissingName {
    /// It is refused.
    Deny,
    /// The limit does not apply to it.
    Pass,
    /// All who lack the part share one key.
    Shared,
}

/// Other numbers for the keys that match; what is not said is as in the limit.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(
    rename = "an override",
    expecting = "an override such as { match: { client_ip: 192.0.2.1 }, rate: 1000/min }"
)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Override", extend("required" = ["match"]))]
pub(crate) struct OverrideFile {
    /// Parts of the limit's key and their values; a part that is not named matches anything.
    #[serde(rename = "match")]
    pub(crate) matches: Field<Map<Scalar>>,
    /// Permits over time.
    pub(crate) rate: Field<RateText>,
    /// Most permits at once after rest.
    pub(crate) burst: Field<u64>,
    /// Most requests in flight at once.
    pub(crate) concurrency: Field<u64>,
}
