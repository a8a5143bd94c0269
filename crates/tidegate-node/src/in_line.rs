//! Waiting for a place of a concurrency limit.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use tidegate::{
    Ask, Decision, Enforce, Enforcer, KeyHash, Receipt, StoreId, Timer, Timestamp, Waiting,
};

use crate::counts::{Counts, InWait};

/// What to do about a request that has not been decided on: wait in this line, and ask again.
///
/// It borrows nothing, so that nothing is held meanwhile: policies may change.
#[must_use = "the request has not been decided on"]
pub struct InLine {
    pub(crate) enforcer: Enforcer,
    pub(crate) key: KeyHash,
    pub(crate) ask: Ask,
    pub(crate) length: u64,
    pub(crate) until: Timestamp,
    pub(crate) counts: Arc<Counts>,
}

/// A place of a concurrency limit that a request has waited for. Dropping it gives it back.
pub struct Place {
    enforcer: Enforcer,
    decision: Decision,
    receipt: Option<Receipt>,
}

impl fmt::Debug for InLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InLine")
            .field("until", &self.until)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place")
            .field("decision", &self.decision)
            .finish_non_exhaustive()
    }
}

impl InLine {
    /// Until when it waits at most.
    pub const fn until(&self) -> Timestamp {
        self.until
    }

    /// Waits for the place; `None` where it took too long, or the line is as long as it may be.
    ///
    /// Cancel safe: dropped, the request is out of the line.
    pub async fn wait(self, timer: &dyn Timer) -> Option<Place> {
        let _in_wait = InWait::begin(std::iter::once(&self.counts));
        let limit = Arc::clone(&self.enforcer) as Arc<dyn Enforce>;
        let mut waiting = pin!(Waiting::new(limit, self.key, self.ask, self.length));
        let mut too_late = pin!(timer.sleep_until(self.until));
        let answer = poll_fn(|context| {
            if let Poll::Ready(answer) = waiting.as_mut().poll(context) {
                return Poll::Ready(Some(answer));
            }
            too_late.as_mut().poll(context).map(|()| None)
        });
        let (decision, receipt) = answer.await?;
        decision.is_allowed().then_some(Place {
            enforcer: self.enforcer,
            decision,
            receipt,
        })
    }
}

impl Place {
    pub(crate) fn store_id(&self) -> StoreId {
        self.enforcer.store_id()
    }

    pub(crate) const fn decision(&self) -> Decision {
        self.decision
    }

    /// What is to be held until the request has ended.
    pub(crate) fn into_taken(mut self) -> Option<(Enforcer, Receipt)> {
        let receipt = self.receipt.take()?;
        Some((Arc::clone(&self.enforcer), receipt))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(receipt) = self.receipt.take() {
            // Gates do not look at the time.
            let returned = self.enforcer.give_back(receipt, Timestamp::EPOCH);
            debug_assert!(
                returned.is_ok(),
                "a receipt goes back to where it came from"
            );
        }
    }
}
