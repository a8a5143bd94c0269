//! What tidegate keeps in Redis, against real servers.

#![allow(clippy::unwrap_used, dead_code, reason = "tests, and what they share")]

mod concurrency;
mod server;
