//! Waiting, as the doors do it.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;

use tidegate::Timestamp;

/// Waits on the time of the node's clock.
///
/// Beside the clock of a [`Node`](crate::Node) there is one of these, so that a door whose clock
/// is simulated also waits in simulated time.
pub trait Timer: Debug + Send + Sync {
    /// Completes when the clock has reached `at`. Dropping it before that cancels the wait.
    fn sleep_until(&self, at: Timestamp) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}
