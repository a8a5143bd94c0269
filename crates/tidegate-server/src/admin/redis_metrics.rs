//! How the way to Redis is, for Prometheus.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use tidegate::SharedStore;
use tidegate_redis::{Counts, DefinedBy, State};

use crate::redis::Redis;

/// Reads an endpoint's health when it is asked for.
#[derive(Debug)]
pub(crate) struct RedisMetrics(pub(crate) Arc<Redis>);

/// A counter: its name, its help, and where it stands.
type Metric = (&'static str, &'static str, fn(&Counts) -> u64);

const COUNTERS: [Metric; 5] = [
    ("tidegate_redis_calls", "Calls of scripts", |c| c.calls),
    ("tidegate_redis_connects", "Connections opened", |c| {
        c.connects
    }),
    (
        "tidegate_redis_failed_connects",
        "Connections that could not be opened",
        |c| c.failed_connects,
    ),
    (
        "tidegate_redis_scripts_sent",
        "Calls sent again with the text of their script",
        |c| c.scripts_sent,
    ),
    (
        "tidegate_redis_redirects",
        "Calls that a server of a Cluster sent on to another",
        |c| c.redirects,
    ),
];

/// Why calls have no answer, and where that stands.
type Miss = (&'static str, fn(&Counts) -> u64);

const MISSES: [Miss; 5] = [
    ("not_sent", |c| c.not_sent),
    ("timed_out", |c| c.timed_out),
    ("lost", |c| c.lost),
    ("refused", |c| c.refused),
    ("bad_answer", |c| c.bad_answers),
];

impl Collector for RedisMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let health = self.0.endpoint.health();
        let help = "1 while a server is asked, 0 while it is given time to recover";
        let mut up =
            encoder.encode_descriptor("tidegate_redis_up", help, None, MetricType::Gauge)?;
        for server in &health.servers {
            let is_up = u64::from(server.state == State::Up);
            let labels = [("server", server.server.as_str())];
            ConstGauge::new(is_up).encode(up.encode_family(&labels)?)?;
        }
        for (name, help, read) in COUNTERS {
            let one = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(read(&health.counts)).encode(one)?;
        }
        let name = "tidegate_redis_misses";
        let help = "Calls without an answer, by reason";
        let mut misses = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (reason, read) in MISSES {
            let labels = [("reason", reason)];
            ConstCounter::new(read(&health.counts)).encode(misses.encode_family(&labels)?)?;
        }
        let name = "tidegate_limit_defined_elsewhere";
        let help = "1 for a shared limit that other nodes define otherwise, by what holds then";
        let mut limits = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (limit, by) in self.0.store.defined_elsewhere() {
            let holds = match by {
                DefinedBy::Newer => "newer",
                DefinedBy::Stricter => "stricter",
                _ => "own",
            };
            let labels = [("limit", limit.as_str()), ("holds", holds)];
            ConstGauge::new(1_u64).encode(limits.encode_family(&labels)?)?;
        }
        let help = "Nodes that share this Redis, as far as this one knows";
        let nodes = encoder.encode_descriptor("tidegate_nodes", help, None, MetricType::Gauge)?;
        ConstGauge::new(self.0.store.live_nodes()).encode(nodes)
    }
}
