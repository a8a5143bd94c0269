//! The gateway over real sockets: a raw client before it, scripted upstreams behind it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod actions;
mod bounds;
mod connections;
mod forwarding;
mod gateway;
mod hand_over;
mod limits;
mod listening;
mod policy_limits;
mod reload;
mod shutdown;
mod streaming;
mod upstream;
mod upstreams;
mod waiting;
mod wire;
