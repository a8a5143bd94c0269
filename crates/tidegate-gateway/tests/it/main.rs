//! The gateway over real sockets: a raw client before it, scripted upstreams behind it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod access_log;
mod actions;
mod bounds;
mod debug_header;
mod forwarding;
mod gateway;
mod limits;
mod listening;
mod log_file;
mod policy_limits;
mod reload;
mod request_id;
mod shutdown;
mod streaming;
mod upstream;
mod upstreams;
mod waiting;
mod wire;
