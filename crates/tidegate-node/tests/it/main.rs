//! The node through its public face.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod bandwidth;
mod decide;
mod definitions;
mod queue;
mod rates;
mod reload;
mod request;
mod saved;
mod shared;
mod waits;
mod watch;
