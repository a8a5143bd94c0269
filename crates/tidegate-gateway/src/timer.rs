//! Waiting in real time.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tidegate::{Clock, Timestamp};
use tidegate_node::Timer;

/// Waits in real time, on the tokio runtime that it is used on.
#[derive(Clone, Debug)]
pub struct TokioTimer {
    clock: Arc<dyn Clock>,
}

impl TokioTimer {
    /// Waits for times of `clock`, which must run as fast as time does.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock }
    }
}

impl Timer for TokioTimer {
    fn sleep_until(&self, at: Timestamp) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(at.since(self.clock.now())))
    }
}
