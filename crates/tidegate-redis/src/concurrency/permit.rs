//! Places of a shared limit, as a guard.

use std::sync::Arc;

use tokio::sync::watch;

use super::OnLeaseLost;
use super::key::Key;

/// Places that are held until this is dropped, however long that is: the node renews them.
///
/// Dropping never waits for Redis. Where Redis cannot be told, the places become free when they
/// expire.
#[derive(Debug)]
#[must_use = "dropping it gives the places back at once"]
pub struct SharedPermit {
    key: Arc<Key>,
    ticket: u64,
    permits: u64,
    lost: watch::Receiver<bool>,
}

impl SharedPermit {
    pub(super) const fn new(
        key: Arc<Key>,
        ticket: u64,
        permits: u64,
        lost: watch::Receiver<bool>,
    ) -> Self {
        Self {
            key,
            ticket,
            permits,
            lost,
        }
    }

    /// How many places.
    pub const fn permits(&self) -> u64 {
        self.permits
    }

    /// What is to become of the request when the places are lost. The guard does nothing itself:
    /// who holds it does, and with [`OnLeaseLost::Cancel`] has to, at once.
    pub fn on_lease_lost(&self) -> OnLeaseLost {
        self.key.on_lease_lost
    }

    /// Completes when the places may have been given to others: this node has not reached Redis
    /// for as long as they were leased, Redis has lost them, or an operator has taken them away.
    /// Lost places stay lost.
    ///
    /// Cancel safe.
    pub async fn lost(&self) {
        let mut lost = self.lost.clone();
        // An error: nobody renews any more.
        drop(lost.wait_for(|lost| *lost).await);
    }

    /// Whether they are lost, by the clock as it is now: to be asked again after a pause of
    /// which the process may know nothing (it was stopped, or swapped out).
    pub fn is_lost(&self) -> bool {
        self.key.lapse();
        *self.lost.borrow() || self.lost.has_changed().is_err()
    }
}

impl Drop for SharedPermit {
    fn drop(&mut self) {
        self.key.give_back(self.ticket);
    }
}
