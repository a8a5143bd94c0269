//! How long requests wait, and on what.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tidegate::{Clock, Timer};

/// How long a request waits at most, on a clock and its timer.
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    pub(crate) longest: Duration,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) timer: Arc<dyn Timer>,
}

impl Wait {
    /// Sleeps for so long from now.
    pub(crate) fn sleep(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.timer.sleep_until(self.clock.now().after(time))
    }
}
