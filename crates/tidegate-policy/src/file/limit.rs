//! `limits:`

use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    BandwidthText, BurstText, DirectionName, DurationText, Field, Map, OnLimitFile, OneOrMany,
    RateText, Scalar, SizeText,
};

/// A limit: exactly one of `rate`, `concurrency` and `bandwidth`, and by what it counts.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(
    rename = "a limit",
    expecting = "a limit such as { rate: 100/min, key: [client_ip] }"
)]
#[serde(default, deny_unknown_fields)]
#[schemars(
    rename = "Limit",
    extend("oneOf" = [
        { "required": ["rate"] },
        { "required": ["concurrency"] },
        { "required": ["bandwidth"] },
    ])
)]
pub(crate) struct LimitFile {
    /// Permits over time: `100/min`, `10/s`, `3 per 5s`. Exact. `0/s` refuses everything. Or a
    /// list, of which all hold.
    pub(crate) rate: Field<OneOrMany<RateText>>,
    /// Most requests in flight at once.
    pub(crate) concurrency: Field<u64>,
    /// Bytes over time: `100KB/s`, `1.5MiB/s`. Bodies are held back to it, smoothly.
    pub(crate) bandwidth: Field<BandwidthText>,
    /// Of `bandwidth`: the first part of each body, which passes at once. Default: 0.
    pub(crate) after: Field<SizeText>,
    /// Of `bandwidth`: which bodies. Default: `responses`.
    pub(crate) direction: Field<DirectionName>,
    /// Most permits at once after rest, including the first. Default: the permits of one period.
    /// As many as there are rates. Of `bandwidth` a size; default: 50 ms of it.
    pub(crate) burst: Field<OneOrMany<BurstText>>,
    /// How a rate is counted.
    pub(crate) algorithm: Field<AlgorithmName>,
    /// Of `smooth_warm_up` and Sentinel's warm-ups: the time from cold to warm.
    pub(crate) warm_up: Field<DurationText>,
    /// Of `smooth_warm_up` and Sentinel's warm-ups: how many times slower a cold limit is.
    /// Default: 3.
    pub(crate) cold_factor: Field<u64>,
    /// Of `smooth_bursty` and `smooth_warm_up`: how far ahead permits may be granted.
    /// Default: 1h, or as much as the dearest request needs.
    pub(crate) max_debt: Field<DurationText>,
    /// Of `sliding_window`: how many parts are counted. Default: 10.
    pub(crate) parts: Field<u64>,
    /// Of `token_bucket`: how permits come back. Default: `greedy`.
    pub(crate) refill: Field<RefillName>,
    /// Of `token_bucket`: permits of a key that is seen for the first time. Default: the burst.
    /// As many as there are rates.
    pub(crate) initial: Field<OneOrMany<u64>>,
    /// Of `fixed_window`: when windows begin. Default: `epoch`.
    pub(crate) align: Field<AlignName>,
    /// Of `nginx`: how many requests beyond the rate are not delayed. Default: 0.
    pub(crate) delay: Field<u64>,
    /// Of `nginx`: none is delayed.
    pub(crate) nodelay: Field<bool>,
    /// What becomes of a request that is over the limit. Default: it is refused.
    pub(crate) on_limit: Field<OnLimitFile>,
    /// What stays for each key when the limit's numbers change. Default: `keep_used`.
    pub(crate) on_change: Field<OnChangeName>,
    /// What is counted apart: `client_ip`, `method`, `host`, `path`, `route`, `header:NAME`,
    /// `cookie:NAME`, `query:NAME`. Without it all requests share one count.
    pub(crate) key: Field<OneOrMany<String>>,
    /// What becomes of a request that lacks a part of the key. Default: `shared`.
    pub(crate) on_missing: Field<OnMissingName>,
    /// Whom the limit does not apply to: parts of requests, and values of which they have one.
    pub(crate) exempt: Field<Map<OneOrMany<Scalar>>>,
    /// Evaluated and counted, never enforced.
    pub(crate) shadow: Field<bool>,
    /// Most keys remembered at once. Default: 1000000.
    pub(crate) max_keys: Field<u64>,
    /// Whether the count survives a restart, in the file that `state` names. Default: no.
    pub(crate) persist: Field<bool>,
    /// Where the count is kept: in each node for itself, or in Redis for all nodes together.
    /// Default: `local`.
    pub(crate) store: Field<StoreName>,
    /// How nodes share it. Of leases: `strict` (the default) or `optimistic`. Of `concurrency`:
    /// `node_share` (the default), `slots` or `double_window`.
    pub(crate) scheme: Field<SchemeName>,
    /// What holds while Redis does not answer. Default: `local_share`.
    pub(crate) on_unavailable: Field<OnUnavailableName>,
    /// What holds when the time of the local share is over. Default: `closed`.
    pub(crate) then: Field<ThenName>,
    /// Other numbers for some keys; the first that matches wins.
    pub(crate) overrides: Field<Vec<Field<OverrideFile>>>,
}

/// Where a limit's count is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(
    rename = "store",
    rename_all = "snake_case",
    expecting = "local, exact, leased or auto"
)]
#[schemars(rename = "Store")]
pub(crate) enum StoreName {
    /// In each node for itself.
    #[default]
    Local,
    /// In Redis, which decides each time.
    Exact,
    /// In Redis, which leases permits to the nodes.
    Leased,
    /// Leased for keys that are asked for often, exact for the others.
    Auto,
}

impl StoreName {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Exact => "exact",
            Self::Leased => "leased",
            Self::Auto => "auto",
        }
    }
}

/// How nodes share a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(
    rename = "scheme",
    rename_all = "snake_case",
    expecting = "strict, optimistic, node_share, slots or double_window"
)]
#[schemars(rename = "Scheme")]
pub(crate) enum SchemeName {
    /// Of leases: never more than the limit.
    Strict,
    /// Of leases: nodes that reach nobody go on, all with their shares.
    Optimistic,
    /// Of `concurrency`: each node has a share of the places.
    NodeShare,
    /// Of `concurrency`: each place is an entry of its own.
    Slots,
    /// Of `concurrency`: two counters.
    DoubleWindow,
}

impl SchemeName {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Optimistic => "optimistic",
            Self::NodeShare => "node_share",
            Self::Slots => "slots",
            Self::DoubleWindow => "double_window",
        }
    }
}

/// What holds while Redis does not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(
    rename = "on_unavailable",
    rename_all = "snake_case",
    expecting = "local_share, open or closed"
)]
#[schemars(rename = "OnUnavailable")]
pub(crate) enum OnUnavailableName {
    /// Each node grants its share.
    #[default]
    LocalShare,
    /// Everything passes.
    Open,
    /// Nothing passes.
    Closed,
}

/// What holds when the time of the local share is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(
    rename = "then",
    rename_all = "snake_case",
    expecting = "open or closed"
)]
#[schemars(rename = "Then")]
pub(crate) enum ThenName {
    /// Everything passes.
    Open,
    /// Nothing passes.
    #[default]
    Closed,
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
    /// So many in every window, counted in parts.
    SlidingWindow,
    /// About so many in any window, from two counters: 24 bytes a key.
    SlidingCounter,
    /// nginx's `limit_req`, number by number (`burst` includes the first request here).
    Nginx,
    /// Sentinel's warm-up: a third of itself after rest.
    SentinelWarmUp,
    /// Sentinel's uniform queueing: one at a time, at an even pace.
    SentinelQueue,
    /// Sentinel's warm-up with queueing: one at a time, slowly after rest.
    SentinelWarmUpQueue,
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
            Self::SlidingWindow => "sliding_window",
            Self::SlidingCounter => "sliding_counter",
            Self::Nginx => "nginx",
            Self::SentinelWarmUp => "sentinel_warm_up",
            Self::SentinelQueue => "sentinel_queue",
            Self::SentinelWarmUpQueue => "sentinel_warm_up_queue",
            Self::SmoothBursty => "smooth_bursty",
            Self::SmoothWarmUp => "smooth_warm_up",
        }
    }
}

/// How the permits of a token bucket come back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(
    rename = "refill",
    rename_all = "snake_case",
    expecting = "greedy, interval or aligned"
)]
#[schemars(rename = "Refill")]
pub(crate) enum RefillName {
    /// One by one, evenly.
    #[default]
    Greedy,
    /// All of a period at once, a period after a full bucket was first asked.
    Interval,
    /// All of a period at once, at the multiples of the period since the epoch.
    Aligned,
}

/// When the windows of a fixed window begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(
    rename = "align",
    rename_all = "snake_case",
    expecting = "epoch, first or calendar"
)]
#[schemars(rename = "Align")]
pub(crate) enum AlignName {
    /// At the multiples of the period since the epoch.
    #[default]
    Epoch,
    /// With the first request of a key after its window before.
    First,
    /// With the days, weeks (from Monday), months and years of the calendar, in UTC.
    Calendar,
}

/// What stays for each key when the limit's numbers change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(
    rename = "on_change",
    rename_all = "snake_case",
    expecting = "keep_used, keep_remaining, proportional, add_growth or reset"
)]
#[schemars(rename = "OnChange")]
pub(crate) enum OnChangeName {
    /// What was used, also where that is more than there is now.
    #[default]
    KeepUsed,
    /// What was left, as far as the limit has so many.
    KeepRemaining,
    /// The part of the limit that was left.
    Proportional,
    /// What was left, and what the limit has grown by.
    AddGrowth,
    /// Nothing: the key is as good as new.
    Reset,
}

/// What becomes of a request that lacks a part of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(
    rename = "on_missing",
    rename_all = "snake_case",
    expecting = "deny, pass, pass_if_empty or shared"
)]
#[schemars(rename = "OnMissing")]
pub(crate) enum OnMissingName {
    /// It is refused.
    Deny,
    /// The limit does not apply to it.
    Pass,
    /// The part counts as empty, and the limit does not apply where all parts are empty (nginx's
    /// way).
    PassIfEmpty,
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
    /// Permits over time; as many as the limit has rates.
    pub(crate) rate: Field<OneOrMany<RateText>>,
    /// Most permits at once after rest; as many as the limit has rates. Of `bandwidth` a size.
    pub(crate) burst: Field<OneOrMany<BurstText>>,
    /// Most requests in flight at once.
    pub(crate) concurrency: Field<u64>,
    /// Bytes over time.
    pub(crate) bandwidth: Field<BandwidthText>,
}
