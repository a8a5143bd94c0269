//! Limits as tower layers, for axum, hyper and tonic services; tidegate's own gateway is made of
//! the same parts.
//!
//! - [`LimitLayer`] asks whoever [decides](Decide): a [`RateLimit`], a [`ConcurrencyLimit`], or
//!   something of your own, and answers those who are refused with an [`Answer`].
//! - [`AccessLayer`] says who may come in at all.
//! - [`BandwidthLayer`] holds bodies back to so many bytes over time.
//!
//! Nothing here needs a runtime: what waits, waits on a [`Timer`](tidegate::Timer). Futures and
//! bodies are `Send` where the service, the body and the decider are.

mod accept;
mod access;
mod answer;
mod bandwidth;
mod body;
mod concurrency;
mod decide;
mod held;
mod limit;
mod pace;
mod paced_body;
mod pacing;
mod rate;
mod template;
mod wait;

pub use access::{AccessFuture, AccessLayer, AccessService};
pub use answer::{Answer, Refused};
pub use bandwidth::{BandwidthFuture, BandwidthLayer, BandwidthService, Direction};
pub use body::LimitBody;
pub use concurrency::{ConcurrencyLimit, Places};
pub use decide::{Decide, Decided, Deciding, Told};
pub use held::Held;
pub use limit::{LimitFuture, LimitLayer, LimitService};
pub use pace::{ByteLimit, LimiterPace, OfKey, Pace};
pub use paced_body::PacedBody;
pub use pacing::Pacing;
pub use rate::{RateLimit, Together};
