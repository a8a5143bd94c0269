//! What the rest is tested against; for development only.
//!
//! - [`oracle`]: each algorithm once more, slow and obviously right.
//! - [`conformance`]: cases as data, run through every door.
//! - [`interval`]: how much passed in any interval, counted by hand.
//! - [`redis_concurrency`]: what the Lua scripts of shared concurrency limits do, in Rust.
//! - [`strategy`]: random limits and schedules, for property tests.

#[cfg(feature = "doors")]
pub mod conformance;
pub mod interval;
pub mod oracle;
pub mod redis_concurrency;
pub mod strategy;
