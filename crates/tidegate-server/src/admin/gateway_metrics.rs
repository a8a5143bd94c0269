//! What the gateway counts, for Prometheus.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use tidegate_gateway::{Counters, CountersSnapshot};

/// Reads the gateway's counters when they are asked for.
#[derive(Debug)]
pub(crate) struct GatewayMetrics(Counters);

/// A counter or gauge of the gateway: its name, its help, and where it stands.
type Metric = (&'static str, &'static str, fn(&CountersSnapshot) -> u64);

const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

const GAUGES: [Metric; 2] = [
    (
        "tidegate_connections_open",
        "Client connections that are open",
        |c| c.connections_open,
    ),
    (
        "tidegate_upstream_idle",
        "Upstream connections that wait in a pool",
        |c| c.upstream_idle,
    ),
];

const COUNTERS: [Metric; 15] = [
    ("tidegate_connections_accepted", "Client connections", |c| {
        c.connections_accepted
    }),
    (
        "tidegate_connections_refused",
        "Client connections that were too many",
        |c| c.connections_refused,
    ),
    (
        "tidegate_connections_timed_out",
        "Client connections closed at a deadline",
        |c| c.connections_timed_out,
    ),
    (
        "tidegate_accept_errors",
        "Connections that could not be accepted",
        |c| c.accept_errors,
    ),
    ("tidegate_refused", "Requests refused by a limit", |c| {
        c.refused
    }),
    ("tidegate_denied", "Requests that may not come in", |c| {
        c.denied
    }),
    (
        "tidegate_upstream_requests",
        "Requests sent upstream",
        |c| c.upstream_requests,
    ),
    (
        "tidegate_upstream_connections",
        "Connections opened to upstream servers",
        |c| c.upstream_connections,
    ),
    (
        "tidegate_upstream_connect_errors",
        "Upstream servers that did not accept",
        |c| c.upstream_connect_errors,
    ),
    (
        "tidegate_upstream_timeouts",
        "Responses that did not begin in time",
        |c| c.upstream_timeouts,
    ),
    (
        "tidegate_upstream_broken",
        "Exchanges that an upstream server broke off",
        |c| c.upstream_broken,
    ),
    (
        "tidegate_upstream_retries",
        "Requests that went over another connection",
        |c| c.upstream_retries,
    ),
    (
        "tidegate_panics",
        "Panics that were caught; each is a fault of tidegate",
        |c| c.panics,
    ),
    (
        "tidegate_access_log_lines",
        "Lines of the access log that were handed over to be written",
        |c| c.access_log_lines,
    ),
    (
        "tidegate_access_log_dropped",
        "Lines of the access log that were dropped",
        |c| c.access_log_dropped,
    ),
];

impl GatewayMetrics {
    pub(crate) const fn new(counters: Counters) -> Self {
        Self(counters)
    }
}

impl Collector for GatewayMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let counts = self.0.snapshot();
        for (name, help, read) in GAUGES {
            let one = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(read(&counts)).encode(one)?;
        }
        for (name, help, read) in COUNTERS {
            let one = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(read(&counts)).encode(one)?;
        }
        let help = "Requests answered, by class of status";
        let mut responses =
            encoder.encode_descriptor("tidegate_responses", help, None, MetricType::Counter)?;
        for (class, count) in CLASSES.into_iter().zip(counts.responses) {
            ConstCounter::new(count).encode(responses.encode_family(&[("class", class)])?)?;
        }
        Ok(())
    }
}
