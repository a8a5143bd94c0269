//! Leased mode: nodes take permits of a shared token bucket ahead of use, and decide locally.
//!
//! One hash in Redis holds the bucket and, per node, an upper bound of what it has not spent. A
//! script ([`LEASE`]) refills the bucket, hears what a node has left and wants, and grants: one
//! call per node every few milliseconds, whatever the traffic. The script keeps, at all times,
//!
//! ```text
//! level + everything lent + everything that silent nodes may mint  <=  burst
//! ```
//!
//! and spending only lowers it, so what all nodes admit together in any interval of length *t* is
//! at most burst + rate * t. While Redis is away, a node goes on with its share of the rate; all
//! shares together are at most the whole, and the script keeps the same amount back.
//!
//! Fixed windows have a script of their own ([`LEASE_WINDOW`]), and nothing is minted of them: the
//! script notes what each node has had of the window, a node has no more than that, and what it
//! has ends with the window. So all that nodes admit in a window is at most its permits.
//!
//! - [`LeasedLimiter`]: what users hold; its [`LeaseDriver`] makes the calls.
//! - [`LeasePipeline`]: the way of all its calls, bounded, with one back-off.
//! - [`LeaseTerms`]: the numbers, from a quota.
//! - [`LeaseNode`]: what one node has of one key; decides, says when to call and with what.
//! - [`AutoLease`]: whether leasing a key is worth it.
//! - [`LeaseRequest`], [`LeaseReply`], [`SpendRequest`]: what node and script tell each other.

mod auto;
mod auto_limiter;
mod limiter;
mod node;
mod pipeline;
mod terms;
mod window;
mod wire;

pub use self::auto::{AutoLease, LeaseMode};
pub use self::auto_limiter::AutoLimiter;
pub use self::limiter::{
    LeaseDriver, LeaseKeyStats, LeaseStats, LeasedLimiter, LeasedLimiterBuilder,
};
pub use self::node::{Checked, LEASE_BUDGET, LeaseNode, LeaseState, Lot};
pub use self::pipeline::LeasePipeline;
pub use self::terms::{LeaseError, LeaseTerms, Scheme};
pub use self::window::LEASE_WINDOW;
pub use self::wire::{LEASE, LeaseReply, LeaseRequest, NodeId, SpendReply, SpendRequest};
