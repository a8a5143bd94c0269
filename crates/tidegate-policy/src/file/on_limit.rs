//! `on_limit:`

use schemars::JsonSchema;
use serde::Deserialize;

use super::{DurationText, Field, Map, OneOrMany, Scalar};

/// What becomes of a request that is over the limit.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(
    rename = "on_limit",
    expecting = "what becomes of a request, such as { queue: { length: 100, max_wait: 200ms } }"
)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "OnLimit", extend("minProperties" = 1))]
pub(crate) struct OnLimitFile {
    /// It waits in line. Of `concurrency`, `token_bucket`, `fixed_window`, `sliding_window`,
    /// `sliding_log`, `sentinel_queue` and `sentinel_warm_up_queue`.
    pub(crate) queue: Field<QueueFile>,
    /// It is kept waiting before it is answered.
    pub(crate) tarpit: Field<TarpitFile>,
    /// It is answered like this. Default: 429 and a problem in JSON.
    pub(crate) reject: Field<AnswerFile>,
    /// It is sent elsewhere.
    pub(crate) redirect: Field<RedirectFile>,
    /// It is answered by something cheaper: another upstream, or a fixed answer.
    pub(crate) degrade: Field<AnswerFile>,
}

/// A line to wait in, first come, first served.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(
    rename = "a queue",
    expecting = "a queue such as { length: 100, max_wait: 200ms }"
)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Queue")]
pub(crate) struct QueueFile {
    /// Most permits that wait. Default: 100. Sentinel's bound the wait only.
    pub(crate) length: Field<u64>,
    /// Longest wait. Default: 30s; of Sentinel's 500ms.
    pub(crate) max_wait: Field<DurationText>,
    /// The order in which they leave. Default: `fifo`, or `priority` where it says who is `first`.
    pub(crate) order: Field<QueueOrder>,
    /// Of `priority`: one part of requests, such as `header:plan`, and its values, from those who
    /// leave first; all others leave last.
    pub(crate) first: Field<Map<OneOrMany<Scalar>>>,
}

/// The order in which those who wait leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(
    rename = "order",
    rename_all = "snake_case",
    expecting = "fifo or priority"
)]
#[schemars(rename = "Order")]
pub(crate) enum QueueOrder {
    /// As they came.
    #[default]
    Fifo,
    /// Of `concurrency`: by what `first` says; among equals as they came.
    Priority,
}

/// Keeping those waiting who ask too much.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(
    rename = "a tarpit",
    expecting = "a tarpit such as { delay: 5s, length: 1000 }"
)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Tarpit", extend("required" = ["delay"]))]
pub(crate) struct TarpitFile {
    /// For how long.
    pub(crate) delay: Field<DurationText>,
    /// Most requests of this limit that are kept waiting at once; others are answered at once.
    /// Default: 1000.
    pub(crate) length: Field<u64>,
}

/// A redirect.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(
    rename = "a redirect",
    expecting = "a redirect such as { to: \"https://example.com/busy\" }"
)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Redirect", extend("required" = ["to"]))]
pub(crate) struct RedirectFile {
    /// A URL or a path. `{limit}`, `{retry_after}` (seconds) and `{uri}` (what was asked for,
    /// percent-encoded) are filled in.
    pub(crate) to: Field<String>,
    /// 302, 303 or 307. Default: 302.
    pub(crate) status: Field<u64>,
}

/// An answer: of several bodies the one that the client accepts best.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(
    rename = "an answer",
    expecting = "an answer such as { status: 503, html: \"<h1>Busy</h1>\" }"
)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Answer")]
pub(crate) struct AnswerFile {
    /// Of `degrade`: this upstream answers, and nothing else is said here.
    pub(crate) upstream: Field<String>,
    /// The status. Default: 429, of `degrade` 200.
    pub(crate) status: Field<u64>,
    /// Fields of its header.
    pub(crate) headers: Field<Map<Scalar>>,
    /// A body of `application/json`. In all bodies `{limit}` and `{retry_after}` (seconds) are
    /// filled in.
    pub(crate) json: Field<String>,
    /// A body of `text/html`.
    pub(crate) html: Field<String>,
    /// A body of `text/plain`.
    pub(crate) text: Field<String>,
    /// Files with bodies; the name's ending says of which type. Paths are as seen from the folder
    /// of the policy.
    pub(crate) file: Field<OneOrMany<String>>,
}
