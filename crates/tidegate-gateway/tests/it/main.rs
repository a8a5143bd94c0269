//! The gateway over real sockets: a raw client before it, scripted upstreams behind it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod access_log;
mod actions;
mod bandwidth;
mod bounds;
mod connections;
mod debug_header;
mod forwarding;
mod gateway;
mod hand_over;
mod limits;
mod listening;
mod log_file;
mod paced_messages;
mod policy_limits;
mod raw;
mod recorder;
mod reload;
mod request_id;
mod shutdown;
mod slow;
mod streaming;
mod upstream;
mod upstream_faults;
mod upstreams;
mod waiting;
mod wire;
