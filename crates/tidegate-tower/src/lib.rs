//! Limits as tower layers, for axum, hyper and tonic services; tidegate's own gateway is made of
//! the same parts.
//!
//! Nothing here needs a runtime: what waits, waits on a [`Timer`](tidegate::Timer). Futures and
//! bodies are `Send` where the service, the body and the decider are.

mod bandwidth;
mod held;
mod pace;
mod paced_body;
mod pacing;

pub use bandwidth::{BandwidthFuture, BandwidthLayer, BandwidthService, Direction};
pub use held::Held;
pub use pace::{ByteLimit, LimiterPace, OfKey, Pace};
pub use paced_body::PacedBody;
pub use pacing::Pacing;
