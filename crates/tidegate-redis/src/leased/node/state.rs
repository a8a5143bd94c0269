//! What can be known of a node's lease of a key from outside.

use std::sync::atomic::Ordering;

use tidegate::Timestamp;

use super::LeaseNode;

/// What a key lives on at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// On permits that Redis has lent.
    Leased,
    /// On its share of the rate: Redis has not answered for a while.
    Minting,
    /// On nothing: no lease yet, or it ended and there is no right to mint (any more).
    Closed,
}

impl LeaseNode {
    /// Whether this node has given up the key: it never has anything again, and whoever asks for
    /// the key needs a new one, with another `NodeId`.
    pub fn has_left(&self) -> bool {
        self.lock().has_left
    }

    /// Whether Redis has never answered it.
    pub fn is_new(&self) -> bool {
        self.lock().is_new()
    }

    /// Whether it is giving up the key, or has: it has nothing, and Redis is not away.
    pub fn is_leaving(&self) -> bool {
        // Otherwise the deadline is 0 only before the first answer.
        self.deadline.load(Ordering::Acquire) == 0 && !self.is_new()
    }

    /// Whether an answer is about to come that may bring permits: Redis has never answered, or the
    /// key is being given back. Of windows also where one is over, or this node asks for more of
    /// one that is not used up: who is refused there is refused for good.
    pub fn is_to_come(&self, now: Timestamp) -> bool {
        self.is_new() || self.is_leaving() || self.has_more(now)
    }

    fn has_more(&self, now: Timestamp) -> bool {
        if self.terms.window_micros.is_none() || self.is_down.load(Ordering::Acquire) {
            return false;
        }
        let now = now.as_nanos();
        if now >= self.deadline.load(Ordering::Acquire) {
            return true;
        }
        let is_asking = self.is_asking.load(Ordering::Relaxed);
        !self.is_used_up.load(Ordering::Relaxed) && (is_asking || self.is_due(now))
    }

    /// How many permits were asked for since this was last called, as of the last refresh.
    pub(in crate::leased) fn take_asked(&self) -> u64 {
        self.asked.swap(0, Ordering::Relaxed)
    }

    /// Whether somebody was refused since the last refresh.
    pub fn is_wanted(&self) -> bool {
        self.refused.load(Ordering::Relaxed) > 0
    }

    /// What the key lives on.
    pub fn state(&self, now: Timestamp) -> LeaseState {
        if now.as_nanos() < self.deadline.load(Ordering::Acquire) {
            return LeaseState::Leased;
        }
        if self.lock().may_mint(&self.terms, now) {
            LeaseState::Minting
        } else {
            LeaseState::Closed
        }
    }

    /// How many nodes ask for permits of this key, by the last answer; 0 before the first.
    pub fn nodes(&self) -> u64 {
        self.lock().nodes
    }

    /// What is asked of this node, permits per second, as of the last refresh.
    pub fn demand(&self) -> u64 {
        self.lock().demand
    }

    /// How many permits this node has minted in all.
    pub fn minted(&self) -> u64 {
        self.lock().minted
    }
}
