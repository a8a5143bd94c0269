//! Waiting as a future, on the time of a clock.

use core::fmt::Debug;
use core::future::Future;
use core::pin::Pin;

use crate::Timestamp;

/// Waits on the time of a [`Clock`](crate::Clock).
///
/// Beside each clock of a door there is one of these, so that a door whose clock is simulated also
/// waits in simulated time.
pub trait Timer: Debug + Send + Sync {
    /// Completes when the clock has reached `at`. Dropping it before that cancels the wait.
    fn sleep_until(&self, at: Timestamp) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// Waits in real time, on the tokio runtime that it is used on.
#[cfg(feature = "tokio")]
#[derive(Clone, Debug)]
pub struct TokioTimer {
    clock: std::sync::Arc<dyn crate::Clock>,
}

#[cfg(feature = "tokio")]
impl TokioTimer {
    /// Waits for times of `clock`, which must run as fast as time does.
    pub fn new(clock: std::sync::Arc<dyn crate::Clock>) -> Self {
        Self { clock }
    }
}

#[cfg(feature = "tokio")]
impl Timer for TokioTimer {
    fn sleep_until(&self, at: Timestamp) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(at.since(self.clock.now())))
    }
}
