//! Nodes that share a leased limit, and what may happen between them and Redis.
//!
//! - [`bucket`], [`window`]: what the scripts do, once more, in whole numbers; [`key`]: either.
//! - [`chance`]: random numbers that a seed determines.
//! - [`faults`], [`scenario`]: what goes wrong, and what is asked meanwhile.
//! - [`world`]: the nodes of `tidegate-redis`, the bucket, the messages between them; virtual time.
//! - [`measure`]: overshoot, unused permits, calls.

pub mod bucket;
pub mod chance;
pub mod faults;
pub mod key;
pub mod measure;
pub mod scenario;
pub mod window;
pub mod world;
