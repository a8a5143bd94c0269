//! What a shared concurrency limit is made of.

use std::fmt;
use std::time::Duration;

/// How nodes share the places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scheme {
    /// Each node has a share, which moves with demand; most requests need no call.
    #[default]
    NodeShare,
    /// Each place in use is an entry with a deadline: one call a request. For few places, or where
    /// holders have to be listed and told to leave.
    Slots,
    /// Two counts: one call a request, and no trace of who holds what. For very many nodes.
    DoubleWindow,
}

/// What becomes of requests in flight on a node that can no longer be sure of their places: it has
/// not reached Redis for as long as they were leased, or Redis has lost them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnLeaseLost {
    /// Whoever holds a place has to stop at once. Never more than the limit are in flight.
    #[default]
    Cancel,
    /// They finish, and nobody new comes in: above the limit by what the node had in flight.
    Drain,
    /// They finish. With [`Scheme::NodeShare`] the node goes on with the share that it had, for
    /// new requests too: above the limit by that share.
    Ignore,
}

/// Numbers of a [`SharedConcurrency`](super::SharedConcurrency); the same on all nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConcurrencyOptions {
    pub(super) limit: u64,
    pub(super) scheme: Scheme,
    pub(super) ttl: Duration,
    pub(super) window: Duration,
    pub(super) on_lease_lost: OnLeaseLost,
    pub(super) budget: Duration,
    pub(super) max_keys: usize,
}

impl ConcurrencyOptions {
    /// The most places a limit may have: products of two of them are exact in Lua's numbers.
    pub const MAX_PLACES: u64 = 1 << 26;
    /// The longest ttl or window.
    pub const LONGEST: Duration = Duration::from_hours(24);
    /// The shortest.
    pub const SHORTEST: Duration = Duration::from_millis(100);

    /// `limit` places for each key, shared by [`Scheme::NodeShare`]; 0 lets nobody in.
    pub const fn new(limit: u64) -> Self {
        Self {
            limit,
            scheme: Scheme::NodeShare,
            ttl: Duration::from_secs(6),
            window: Duration::from_secs(10),
            on_lease_lost: OnLeaseLost::Cancel,
            budget: Duration::from_millis(25),
            max_keys: 100_000,
        }
    }

    /// How the places are shared.
    #[must_use]
    pub const fn scheme(mut self, scheme: Scheme) -> Self {
        self.scheme = scheme;
        self
    }

    /// How long places stay taken after their node was last heard of (6 s unless this is said).
    /// A node calls three times as often. Not of [`Scheme::DoubleWindow`].
    #[must_use]
    pub const fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// How long a window of [`Scheme::DoubleWindow`] is (10 s unless this is said): places of a
    /// killed node are free after two of them at the latest.
    #[must_use]
    pub const fn window(mut self, window: Duration) -> Self {
        self.window = window;
        self
    }

    /// What becomes of requests in flight whose places are lost.
    #[must_use]
    pub const fn on_lease_lost(mut self, what: OnLeaseLost) -> Self {
        self.on_lease_lost = what;
        self
    }

    /// How long a call may take (25 ms unless this is said).
    #[must_use]
    pub const fn budget(mut self, budget: Duration) -> Self {
        self.budget = budget;
        self
    }

    /// How many keys a node holds places of at a time (100,000 unless this is said). Beyond that a
    /// new key takes the room of one that is idle, which gives back what it has; where of sixteen
    /// that are looked at none is, the new one has no answer.
    #[must_use]
    pub const fn max_keys(mut self, keys: usize) -> Self {
        self.max_keys = keys;
        self
    }

    /// Whether such a limit can be.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn validate(&self) -> Result<(), OptionsError> {
        let span = Self::SHORTEST..=Self::LONGEST;
        let lease = match self.scheme {
            Scheme::NodeShare | Scheme::Slots => self.ttl,
            Scheme::DoubleWindow => self.window,
        };
        if self.limit > Self::MAX_PLACES {
            Err(OptionsError::TooManyPlaces)
        } else if !span.contains(&lease) {
            Err(OptionsError::Lease(lease))
        } else if self.budget.is_zero() || self.budget > lease / 4 {
            Err(OptionsError::Budget(self.budget))
        } else {
            Ok(())
        }
    }
}

/// Why a limit cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionsError {
    /// More than [`ConcurrencyOptions::MAX_PLACES`].
    TooManyPlaces,
    /// A ttl or window that is too short or too long.
    Lease(Duration),
    /// A budget of nothing, or of more than a quarter of the ttl or window.
    Budget(Duration),
}

impl fmt::Display for OptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyPlaces => {
                let most = ConcurrencyOptions::MAX_PLACES;
                write!(f, "a shared concurrency limit has at most {most} places")
            }
            Self::Lease(lease) => {
                let (low, high) = (ConcurrencyOptions::SHORTEST, ConcurrencyOptions::LONGEST);
                write!(
                    f,
                    "a ttl or window of {lease:?}; {low:?} to {high:?} are possible"
                )
            }
            Self::Budget(budget) => {
                write!(
                    f,
                    "a budget of {budget:?}; up to a quarter of the ttl or window is possible"
                )
            }
        }
    }
}

impl std::error::Error for OptionsError {}
