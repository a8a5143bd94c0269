//! What tidegate keeps in Redis, against real servers.

#![expect(clippy::unwrap_used, dead_code, reason = "tests, and what they share")]

mod endpoint;
mod exact;
mod server;
