//! Which permits can still be put back.

use std::sync::atomic::Ordering;

use tidegate::Timestamp;

use super::LeaseNode;
use crate::leased::wire::NodeId;

/// Which permits of a node are not told to Redis as spent yet: those that a check took can be put
/// back only until that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lot {
    node: NodeId,
    number: u64,
}

impl LeaseNode {
    /// Puts back permits that an allowed check took and nobody used. Where Redis counts them as
    /// spent already they are lost: less is admitted, never more.
    pub fn give_back(&self, lot: Lot, now: Timestamp, permits: u64) {
        // Held, so that no other lot begins meanwhile.
        let _books = self.lock();
        let is_over = now.as_nanos() >= self.deadline.load(Ordering::Acquire);
        if is_over || lot != self.lot() {
            return;
        }
        let most = self.terms.most_lent();
        let add = |tokens: u64| Some(tokens.saturating_add(permits).min(most.max(tokens)));
        let _ = self
            .tokens
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, add);
    }

    #[inline]
    pub(super) fn lot(&self) -> Lot {
        Lot {
            node: self.id,
            number: self.lot.load(Ordering::Acquire),
        }
    }

    /// What was taken until here is spent. After what is not there any more has been taken away,
    /// and before anything else comes: under the lock.
    pub(super) fn begin_lot(&self) {
        self.lot.fetch_add(1, Ordering::Release);
    }
}
