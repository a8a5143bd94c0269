//! One tidegate node: a policy, the state behind it, and one question, `decide`.
//!
//! Every door (gateway, decision service, simulator) asks [`Snapshot::decide`], which answers at
//! once, or, where it can wait for places of concurrency limits, [`Snapshot::decide_or_wait`].
//! The node opens no socket; it reloads its policy while it runs, and what was used stays used
//! when a limit changes.
//!
//! ```
//! use std::sync::Arc;
//! use tidegate::SystemClock;
//! use tidegate_node::Node;
//!
//! let loaded = tidegate_policy::parse("policy.yaml", tidegate_policy::DEFAULT)?;
//! let node = Node::new(loaded.policy, Arc::new(SystemClock::new()))?;
//! assert_eq!(node.snapshot().limits().len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod admission;
mod call;
mod counts;
mod decide;
mod decide_shared;
mod enforced_limit;
mod in_line;
mod key_bytes;
mod meeting;
mod metrics;
mod nginx_rate;
mod node;
mod overrides;
mod paced_limit;
mod pacer;
mod reach;
mod saved;
mod shared_call;
mod shared_limit;
mod snapshot;
mod waits;
mod watch;

pub use self::{
    admission::{Admission, Applied, Hold},
    call::Call,
    counts::{Counts, Outcome},
    decide::Turn,
    enforced_limit::EnforcedLimit,
    in_line::{InLine, Place},
    metrics::NodeMetrics,
    node::{Node, PolicyError, PolicyStatus, ReloadFailure},
    pacer::Pacer,
    saved::{SaveError, SaveReport, Saved, SavedError},
    shared_call::{Pending, SharedTurn},
    shared_limit::shared_complaints,
    snapshot::Snapshot,
    waits::WaitsSnapshot,
    watch::{PolicyWatch, WatchError},
};
pub use tidegate::Timer;
