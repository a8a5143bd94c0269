//! What tidegate keeps in Redis, against real servers.
#![expect(clippy::unwrap_used, reason = "tests, and what they share")]

mod certificates;
mod cluster;
mod concurrency;
mod conformance;
mod definitions;
mod endpoint;
mod endpoint_cluster;
mod endpoint_once;
mod endpoint_refusals;
mod endpoint_sentinel;
mod endpoint_tls;
mod events;
mod exact;
mod faults;
mod goodbye;
mod leased;
mod sentinels;
mod server;
mod three_nodes;
mod waiting;
