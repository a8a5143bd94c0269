//! Limits as tower layers, for axum, hyper and tonic services; tidegate's own gateway is made of
//! the same parts.
//!
//! Nothing here needs a runtime: what waits, waits on a [`Timer`](tidegate::Timer). Futures and
//! bodies are `Send` where the service, the body and the decider are.

mod accept;
mod answer;
mod held;
mod template;

pub use answer::{Answer, Refused};
pub use held::Held;
