//! Waiting on a clock that the test moves.

use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};

use tidegate::{Clock, ManualClock, Timestamp};
use tidegate_node::Timer;
use tokio::sync::oneshot;

use super::Event;

/// Tells the driver of each wait, and ends it when the clock has got there.
#[derive(Debug)]
pub(super) struct VirtualTimer {
    clock: ManualClock,
    waits: Mutex<Vec<(Timestamp, oneshot::Sender<()>)>>,
    events: Mutex<Sender<Event>>,
}

impl VirtualTimer {
    pub(super) fn new(clock: ManualClock, events: Sender<Event>) -> Self {
        Self {
            clock,
            waits: Mutex::default(),
            events: Mutex::new(events),
        }
    }

    /// Ends the waits until `now`.
    pub(super) fn fire(&self, now: Timestamp) {
        let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, end) in waits.extract_if(.., |(until, _)| *until <= now) {
            // Whoever waited may have gone.
            let _ = end.send(());
        }
    }
}

impl Timer for VirtualTimer {
    fn sleep_until(&self, at: Timestamp) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        if at <= self.clock.now() {
            return Box::pin(std::future::ready(()));
        }
        let (end, ended) = oneshot::channel();
        self.waits
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((at, end));
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        // The driver has gone only when the case is over.
        let _ = events.send(Event::Waiting(at));
        Box::pin(async {
            // An error: the timer is gone, and so is the case.
            let _ = ended.await;
        })
    }
}
