//! The gateway over real sockets: a raw client before it, scripted upstreams behind it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod bandwidth;
mod bounds;
mod forwarding;
mod gateway;
mod limits;
mod listening;
mod reload;
mod shutdown;
mod streaming;
mod upstream;
mod upstreams;
mod waiting;
mod wire;
