//! A limit that has one key, behind the face of all limits.

use super::{Enforce, Receipt, StoreId};
use crate::key_hash::KeyHash;
use crate::meter::{State, Taken, Tat};
use crate::queue::{Joined, Waiter};
use crate::store::{SingleStore, Striped, StripedKey};
use crate::{Ask, Clock, Decision, Timestamp};

/// A single key of a limit whose permits do not come back: it is the same whichever is asked for.
#[derive(Debug)]
pub(crate) struct Single<S> {
    store: S,
    id: StoreId,
}

/// The key of a store that has only one.
pub(crate) const NO_KEY: KeyHash = KeyHash { hi: 1, lo: 0 };

impl<S: SingleStore> Single<S> {
    pub(crate) fn new(store: S) -> Self {
        Self {
            store,
            id: StoreId::next(),
        }
    }

    #[inline]
    pub(crate) fn take(&self, now: Timestamp, ask: &Ask) -> (Decision, Option<Receipt>) {
        self.with_receipt(self.store.check(now, ask))
    }

    #[inline]
    fn with_receipt(
        &self,
        (decision, taken): (Decision, Option<Taken>),
    ) -> (Decision, Option<Receipt>) {
        let receipt = |taken| Receipt::new(taken, NO_KEY, self.id, false);
        (decision, taken.map(receipt))
    }
}

impl<W: Striped, C: Clock> Single<StripedKey<W, C>>
where
    Tat<W>: State,
{
    /// The same for the core that this thread is on; `now` is what the store's clock says.
    #[expect(clippy::inline_always, reason = "measured: see `AtomicCell::check`")]
    #[inline(always)]
    pub(crate) fn take_here(&self, now: Timestamp, ask: &Ask) -> (Decision, Option<Receipt>) {
        self.with_receipt(self.store.check_here(now, ask))
    }
}

impl<S: SingleStore> Enforce for Single<S> {
    fn check(&self, _key: KeyHash, now: Timestamp, ask: &Ask) -> (Decision, Option<Receipt>) {
        self.take(now, ask)
    }

    fn peek(&self, _key: KeyHash, now: Timestamp, ask: &Ask) -> Decision {
        self.store.peek(now, ask)
    }

    fn prepare(&self, _key: KeyHash, _now: Timestamp) {}

    fn hold(
        &self,
        _key: KeyHash,
        now: Timestamp,
        ask: &Ask,
        rest: &mut dyn FnMut(Decision) -> bool,
    ) -> Option<Receipt> {
        let taken = self.store.hold(now, ask, rest)?;
        Some(Receipt::new(taken, NO_KEY, self.id, false))
    }

    fn give_back(&self, receipt: Receipt, now: Timestamp) -> Result<(), Receipt> {
        if receipt.store() != self.id {
            return Err(receipt);
        }
        self.store.undo(receipt.taken(), now);
        Ok(())
    }

    fn reset(&self, _key: KeyHash, now: Timestamp) -> bool {
        self.store.reset(now)
    }

    fn join(&self, key: KeyHash, now: Timestamp, ask: &Ask, _length: u64) -> Joined {
        let (decision, receipt) = self.check(key, now, ask);
        Joined::Decided(decision, receipt)
    }

    fn leave(&self, _waiter: &Waiter) {}

    fn store_id(&self) -> StoreId {
        self.id
    }

    fn is_gate(&self) -> bool {
        false
    }
}
