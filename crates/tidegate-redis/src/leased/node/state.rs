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

    /// Whether an answer is about to come that may bring permits: Redis has never answered, the key
    /// is being given back, or a window is over and nothing tells that Redis is away.
    pub fn is_to_come(&self, now: Timestamp) -> bool {
        let is_over = now.as_nanos() >= self.deadline.load(Ordering::Acquire);
        let is_between =
            self.terms.window_micros.is_some() && is_over && !self.is_down.load(Ordering::Acquire);
        is_between || self.is_new() || self.is_leaving()
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
