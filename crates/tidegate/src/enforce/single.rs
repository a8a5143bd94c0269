//! A limit that has one key, behind the face of all limits.

use super::{Enforce, Receipt, StoreId};
use crate::key_hash::KeyHash;
use crate::limit::FromAlgorithm;
use crate::queue::{Joined, Waiter};
use crate::store::OneKey;
use crate::{Ask, Decision, Meter, Timestamp};

/// A single key of a limit whose permits do not come back: it is the same whichever is asked for.
#[derive(Debug)]
pub(crate) struct Single<M: Meter> {
    pub(crate) store: OneKey<M>,
    id: StoreId,
}

/// The key of a store that has only one.
pub(crate) const NO_KEY: KeyHash = KeyHash { hi: 1, lo: 0 };

impl<M: FromAlgorithm> Single<M> {
    pub(crate) fn new(meter: M, now: Timestamp) -> Self {
        Self {
            store: OneKey::new(meter, now),
            id: StoreId::next(),
        }
    }

    #[inline]
    pub(crate) fn take(&self, now: Timestamp, ask: &Ask) -> (Decision, Option<Receipt>) {
        let (decision, taken) = self.store.check(now, ask);
        (
            decision,
            taken.map(|taken| Receipt::new(taken, NO_KEY, self.id, false)),
        )
    }
}

impl<M: FromAlgorithm> Enforce for Single<M> {
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
