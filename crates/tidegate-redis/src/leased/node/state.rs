//! What can be known of a node's lease of a key from outside.

use std::sync::atomic::Ordering;

use tidegate::Timestamp;

use super::books::Mode;
use super::{LeaseNode, NEVER};

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

    /// Whether a call that is under way, or due, probably brings permits: it is the first, or the
    /// last one brought all that was wanted. Of windows also where one is over, or where there was
    /// more of it than this node has: who is refused there is refused for good.
    pub fn has_more_to_come(&self, now: Timestamp) -> bool {
        if self.is_used_up(now) {
            return false;
        }
        // Never, where the last one did not bring all.
        let hurry = self.hurry.load(Ordering::Relaxed);
        let is_plentiful = self.is_asking() && hurry != NEVER || now.as_nanos() >= hurry;
        // There is no deadline before the first answer, nor after a goodbye.
        let is_first = self.deadline.load(Ordering::Acquire) == 0;
        is_first || is_plentiful || self.has_more_of_windows(now)
    }

    fn has_more_of_windows(&self, now: Timestamp) -> bool {
        let is_window = self.terms.window_micros.is_some();
        let is_to_be_had = is_window && !self.is_down.load(Ordering::Acquire);
        is_to_be_had && (!self.is_live(now) || self.is_asking() || self.is_due(now.as_nanos()))
    }

    /// Whether there was nothing more to be had of the window that goes on.
    fn is_used_up(&self, now: Timestamp) -> bool {
        self.is_used_up.load(Ordering::Relaxed) && self.is_live(now)
    }

    fn is_live(&self, now: Timestamp) -> bool {
        now.as_nanos() < self.deadline.load(Ordering::Acquire)
    }

    /// Whether a call is on its way.
    pub(in crate::leased) fn is_asking(&self) -> bool {
        self.is_asking.load(Ordering::Relaxed)
    }

    /// Whether it lives on a lease that is meant to be enough, or there is no other.
    pub(in crate::leased) fn is_provided(&self, now: Timestamp) -> bool {
        let is_enough = self.low.load(Ordering::Relaxed) != NEVER;
        self.is_live(now) && is_enough || self.is_used_up(now)
    }

    /// Whether nobody has asked for so long that it says goodbye next.
    pub(in crate::leased) fn is_over(&self, now: Timestamp) -> bool {
        !self.is_live(now) && self.low.load(Ordering::Relaxed) == NEVER && !self.is_wanted()
    }

    /// Whether nothing is left of it, in Redis and here, and nobody has asked for it since that
    /// answers.
    pub(in crate::leased) fn is_given_up(&self, now: Timestamp) -> bool {
        let books = self.lock();
        let is_over = books.is_forgotten(&self.terms, now) && !self.is_live(now);
        books.mode == Mode::StandsBy && is_over
    }

    /// When nothing is left of it if no call gets to Redis.
    pub(in crate::leased) fn forgotten_at(&self) -> Timestamp {
        let deadline = Timestamp::from_nanos(self.deadline.load(Ordering::Acquire));
        self.lock().mint_end(&self.terms).max(deadline)
    }

    /// Since when nobody has asked for it, as of the last call.
    pub(in crate::leased) fn idle_since(&self) -> Timestamp {
        self.lock().asked_at
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
        if self.is_live(now) {
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
