//! HTTP vocabulary: what of a request makes a key, and how a decision looks on the wire.
//!
//! For the doors that speak HTTP (gateway, layers, decision service) and for the simulator,
//! which builds the same requests from a trace. Nothing here holds a limit, reads a clock or
//! opens a socket; every number of seconds on the wire comes from [`whole_seconds_up`].
//!
//! ```
//! use std::time::Duration;
//! use tidegate::{Decision, Verdict};
//! use tidegate_http::{headers, whole_seconds_up};
//!
//! let decision = Decision {
//!     verdict: Verdict::Allowed { delay: Duration::ZERO },
//!     limit: 20,
//!     remaining: 19,
//!     reset_after: Duration::from_millis(2_400),
//! };
//! assert_eq!(headers::rate_limit("per-client", &decision), "\"per-client\";r=19;t=3");
//! assert_eq!(whole_seconds_up(Duration::from_nanos(1)), 1);
//! ```
#![deny(clippy::disallowed_methods)]

pub mod access_log;
pub mod client_address;
pub mod debug_field;
pub mod extract;
pub mod headers;
mod problem;
mod seconds;
mod structured_field;

pub use client_address::TrustedProxies;
pub use problem::{PROBLEM_JSON, Problem, QUOTA_EXCEEDED};
pub use seconds::whole_seconds_up;
