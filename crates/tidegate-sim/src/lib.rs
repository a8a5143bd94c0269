//! What the rest is tested against; for development only.
//!
//! - [`oracle`]: each algorithm once more, slow and obviously right.
//! - [`cluster_sim`]: nodes that share a limit, a Redis, and all that may happen between them.
//! - [`conformance`]: cases as data, run through every door.
//! - [`interval`]: how much passed in any interval, counted by hand.
//! - `redis_model`: the scripts that tidegate runs in Redis, once more.
//! - [`redis_concurrency`]: what the Lua scripts of shared concurrency limits do, in Rust.
//! - [`strategy`]: random limits and schedules, for property tests.

#[cfg(feature = "doors")]
pub mod cluster_sim;
#[cfg(feature = "doors")]
pub mod conformance;
pub mod interval;
pub mod oracle;
pub mod redis_concurrency;
#[cfg(feature = "doors")]
pub mod redis_model;
pub mod strategy;
