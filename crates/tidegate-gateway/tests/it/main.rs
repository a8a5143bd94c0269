//! The gateway over real sockets: a raw client before it, scripted upstreams behind it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod bounds;
mod forwarding;
mod gateway;
mod limits;
mod listening;
mod raw;
mod recorder;
mod reload;
mod shutdown;
mod slow;
mod streaming;
mod upstream;
mod upstream_faults;
mod upstreams;
mod waiting;
mod wire;
