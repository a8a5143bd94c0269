//! What a node tells Prometheus. Labels are names of limits, never keys.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use tidegate::store::StoreStats;
use tidegate_policy::BodyOf;

use crate::counts::Outcome;
use crate::enforced_limit::EnforcedLimit;
use crate::node::{Node, PolicyStatus};
use crate::waits::WaitsSnapshot;

/// Longest text of a label.
const MAX_LABEL: usize = 256;

/// Reads a node's counters when they are asked for; nothing of it is on the decision path.
#[derive(Debug)]
pub struct NodeMetrics(Arc<Node>);

/// Every metric of a node: its name, and its help.
#[derive(Clone, Copy, Debug)]
enum Metric {
    Decisions,
    Waiting,
    Waits,
    InUse,
    BandwidthBytes,
    BandwidthHeldBack,
    Unavailable,
    StoreKeys,
    StoreMaxKeys,
    StoreEvictions,
    StorePermitsReleased,
    StoreOverflowed,
    PolicyRevision,
    PolicyLoaded,
    PolicyReloads,
    PolicyLastReloadOk,
    PolicyProblem,
}

impl Metric {
    const fn name_and_help(self) -> (&'static str, &'static str) {
        match self {
            Self::Decisions => ("tidegate_decisions", "Decisions by limit and outcome"),
            Self::Waiting => (
                "tidegate_limit_waiting",
                "Requests that wait now, for a place or for the time that a rate gave them",
            ),
            Self::Waits => (
                "tidegate_limit_wait_seconds",
                "How long requests waited that went ahead then",
            ),
            Self::InUse => (
                "tidegate_limit_in_use",
                "Places of this node's own concurrency limits that are taken, of all keys",
            ),
            Self::BandwidthBytes => (
                "tidegate_bandwidth_bytes",
                "Bytes of bodies that have passed a limit of bandwidth",
            ),
            Self::BandwidthHeldBack => (
                "tidegate_bandwidth_held_back_seconds",
                "Time that a limit of bandwidth has held bodies back, or as a shadow would have",
            ),
            Self::Unavailable => (
                "tidegate_limit_unavailable",
                "1 while what nodes share of a limit cannot be reached, else 0",
            ),
            Self::StoreKeys => ("tidegate_store_keys", "Keys that a limit remembers"),
            Self::StoreMaxKeys => ("tidegate_store_max_keys", "The most keys it may remember"),
            Self::StoreEvictions => (
                "tidegate_store_evictions",
                "Keys forgotten: drained ones, and active ones at the bound",
            ),
            Self::StorePermitsReleased => (
                "tidegate_store_permits_released",
                "Permits given away by forgetting active keys",
            ),
            Self::StoreOverflowed => (
                "tidegate_store_overflowed",
                "Requests whose keys found no room and shared an entry",
            ),
            Self::PolicyRevision => ("tidegate_policy_revision", "Version of the policy in force"),
            Self::PolicyLoaded => (
                "tidegate_policy_loaded_timestamp_seconds",
                "When the policy in force was loaded",
            ),
            Self::PolicyReloads => ("tidegate_policy_reloads", "Reloads by result"),
            Self::PolicyLastReloadOk => (
                "tidegate_policy_last_reload_ok",
                "1 if the newest policy is in force, 0 if it was refused",
            ),
            Self::PolicyProblem => (
                "tidegate_policy_problem",
                "Why the newest policy was refused: 1 while it is",
            ),
        }
    }
}

impl NodeMetrics {
    /// The metrics of this node.
    pub const fn new(node: Arc<Node>) -> Self {
        Self(node)
    }
}

impl Collector for NodeMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let snapshot = self.0.snapshot();
        encode_limits(&mut encoder, snapshot.limits())?;
        encode_policy(&mut encoder, &self.0.status())
    }
}

fn encode_limits(
    encoder: &mut DescriptorEncoder<'_>,
    limits: &[Arc<EnforcedLimit>],
) -> fmt::Result {
    let (name, help) = Metric::Decisions.name_and_help();
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for limit in limits {
        for outcome in Outcome::ALL {
            let labels = [
                ("limit", label(limit.name())),
                ("outcome", outcome.as_str()),
            ];
            let count = ConstCounter::new(limit.counts().get(outcome));
            count.encode(family.encode_family(&labels)?)?;
        }
    }
    encode_waits(encoder, limits)?;
    encode_bandwidth(encoder, limits)?;
    let (name, help) = Metric::Unavailable.name_and_help();
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for limit in limits.iter().filter(|limit| limit.rule().shared.is_some()) {
        let labels = [("limit", label(limit.name()))];
        let is_away = u64::from(limit.unavailable_since().is_some());
        ConstGauge::new(is_away).encode(family.encode_family(&labels)?)?;
    }
    encode_each(encoder, Metric::StoreKeys, limits, |stats| {
        stats.keys as u64
    })?;
    encode_each(encoder, Metric::StoreMaxKeys, limits, |stats| {
        stats.max_keys as u64
    })?;
    encode_each(encoder, Metric::StorePermitsReleased, limits, |stats| {
        stats.permits_released
    })?;
    encode_each(encoder, Metric::StoreOverflowed, limits, |stats| {
        stats.overflowed
    })?;
    let (name, help) = Metric::StoreEvictions.name_and_help();
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for limit in limits {
        let stats = limit.store_stats();
        for (kind, count) in [
            ("drained", stats.evicted_drained),
            ("active", stats.evicted_active),
        ] {
            let labels = [("limit", label(limit.name())), ("kind", kind)];
            ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

fn encode_bandwidth(
    encoder: &mut DescriptorEncoder<'_>,
    limits: &[Arc<EnforcedLimit>],
) -> fmt::Result {
    let is_one = |limit: &&Arc<EnforcedLimit>| limit.rule().bandwidth.is_some();
    let (name, help) = Metric::BandwidthBytes.name_and_help();
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for limit in limits.iter().filter(is_one) {
        for (body, of) in [
            (BodyOf::Request, "requests"),
            (BodyOf::Response, "responses"),
        ] {
            let labels = [("limit", label(limit.name())), ("direction", of)];
            let bytes = ConstCounter::new(limit.counts().bytes(body));
            bytes.encode(family.encode_family(&labels)?)?;
        }
    }
    let (name, help) = Metric::BandwidthHeldBack.name_and_help();
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for limit in limits.iter().filter(is_one) {
        let labels = [("limit", label(limit.name()))];
        let seconds = ConstCounter::new(limit.counts().held_back().as_nanos() as f64 / 1e9);
        seconds.encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

fn encode_waits(encoder: &mut DescriptorEncoder<'_>, limits: &[Arc<EnforcedLimit>]) -> fmt::Result {
    let (name, help) = Metric::Waiting.name_and_help();
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for limit in limits {
        let labels = [("limit", label(limit.name()))];
        let waiting = ConstGauge::new(limit.counts().waits().now);
        waiting.encode(family.encode_family(&labels)?)?;
    }
    let (name, help) = Metric::Waits.name_and_help();
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
    for limit in limits {
        let waits = limit.counts().waits();
        // Limits for which nobody has waited have no histogram: it would be twelve lines each.
        if waits.count() == 0 {
            continue;
        }
        let bounds = WaitsSnapshot::BOUNDS.map(|ms| ms as f64 / 1e3);
        let bounds = bounds.into_iter().chain([f64::INFINITY]);
        let buckets: Vec<_> = bounds.zip(waits.buckets).collect();
        let labels = [("limit", label(limit.name()))];
        let mut encoder = family.encode_family(&labels)?;
        let total = waits.total.as_nanos() as f64 / 1e9;
        encoder.encode_histogram::<NoLabelSet>(total, waits.count(), &buckets, None)?;
    }
    let (name, help) = Metric::InUse.name_and_help();
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for limit in limits {
        if let Some(in_use) = limit.in_use() {
            let labels = [("limit", label(limit.name()))];
            ConstGauge::new(in_use).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

fn encode_each(
    encoder: &mut DescriptorEncoder<'_>,
    metric: Metric,
    limits: &[Arc<EnforcedLimit>],
    read: impl Fn(StoreStats) -> u64,
) -> fmt::Result {
    let (name, help) = metric.name_and_help();
    let kind = match metric {
        Metric::StoreKeys | Metric::StoreMaxKeys => MetricType::Gauge,
        _ => MetricType::Counter,
    };
    let mut family = encoder.encode_descriptor(name, help, None, kind)?;
    for limit in limits {
        let labels = [("limit", label(limit.name()))];
        let encoder = family.encode_family(&labels)?;
        match kind {
            MetricType::Gauge => ConstGauge::new(read(limit.store_stats())).encode(encoder)?,
            _ => ConstCounter::new(read(limit.store_stats())).encode(encoder)?,
        }
    }
    Ok(())
}

fn encode_policy(encoder: &mut DescriptorEncoder<'_>, status: &PolicyStatus) -> fmt::Result {
    let loaded = status.loaded_at.as_nanos() as f64 / 1e9;
    encode_gauge(encoder, Metric::PolicyRevision, status.revision as f64)?;
    encode_gauge(encoder, Metric::PolicyLoaded, loaded)?;
    let ok = f64::from(u8::from(status.failure.is_none()));
    encode_gauge(encoder, Metric::PolicyLastReloadOk, ok)?;

    let (name, help) = Metric::PolicyReloads.name_and_help();
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (result, count) in [("ok", status.reloads), ("refused", status.refused)] {
        let labels = [("result", result)];
        ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
    }
    let (name, help) = Metric::PolicyProblem.name_and_help();
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    if let Some(failure) = &status.failure {
        let (line, column) = (failure.line.to_string(), failure.column.to_string());
        let labels = [
            ("file", label(&failure.file)),
            ("line", &line),
            ("column", &column),
            ("reason", label(&failure.reason)),
        ];
        ConstGauge::new(1_u64).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

fn encode_gauge(encoder: &mut DescriptorEncoder<'_>, metric: Metric, value: f64) -> fmt::Result {
    let (name, help) = metric.name_and_help();
    ConstGauge::new(value).encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
}

/// A label's text, cut to its bound.
fn label(text: &str) -> &str {
    let end = (0..=MAX_LABEL.min(text.len()))
        .rev()
        .find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}
