//! Nodes that share a leased limit, and what may happen between them and Redis.
//!
//! - [`bucket`]: what the script does, once more, in whole numbers.
//! - [`chance`]: random numbers that a seed determines.

pub mod bucket;
pub mod chance;
