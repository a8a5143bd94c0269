//! The store of many keys, in bounded memory.
//!
//! Keys are spread over shards by their hash; a shard is an ordered hash table behind a mutex,
//! small enough (about a thousand keys) that growing it is no pause. Entries are hash and state.
//!
//! Numbers may change while keys live: each entry says in 24 bits which meter's numbers its state
//! is in, and is brought up to date when it is next asked. So a limit's overrides, and its
//! earlier versions, share one store.
//!
//! At the bound, a new key takes the place of one among those near it: a drained one if there is
//! one, else the one that gives away fewest permits, never one that holds a guard.

mod batch;
mod inside;
mod lines;
mod meters;
mod overflow;
mod room;
mod saved;
mod stats;
mod succession;

use std::sync::{Arc, OnceLock};

pub(crate) use self::batch::TOGETHER;
pub(super) use self::lines::{Entry, Lines};
use self::meters::Meters;
pub use self::meters::{Era, Registered};
pub(super) use self::overflow::Overflow;
use self::room::Room;
pub use self::saved::{HandedOver, SavePoint};
use self::stats::Counts;
pub use self::stats::StoreStats;
use self::succession::Predecessor;
pub use self::succession::{Drain, Drained};
use super::one_key::peek;
use super::shard::{Shard, Slot};
use super::vacated::Vacating;
use crate::enforce::{Enforce, Receipt, StoreId};
use crate::key_hash::KeyHash;
use crate::meter::{Meter, Plan, State};
use crate::sync::{AtomicBool, AtomicUsize, Mutex, Ordering, RwLock, lock};
use crate::{Ask, Decision, Timestamp};

/// The most keys of one store: 2^30.
pub const MAX_KEYS: usize = 1 << 30;
/// Keys of a shard when the store is full.
const KEYS_PER_SHARD: usize = 1024;
const MAX_SHARDS: usize = 1 << 16;

/// States of many keys under meters of one type.
#[derive(Debug)]
pub struct Keyed<M: Meter> {
    id: StoreId,
    shards: Box<[Mutex<Shard<M::State>>]>,
    meters: RwLock<Meters<M>>,
    len: AtomicUsize,
    max_keys: AtomicUsize,
    counts: Counts,
    /// The store whose place this one takes, until all of it has been taken over, and the meter
    /// that what comes from there is put under.
    before: Mutex<Option<Predecessor<M>>>,
    /// Whether there is such a store: all that a decision looks at.
    adopting: AtomicBool,
    /// Who wants to know when nobody is inside.
    vacating: Mutex<Vacating>,
    /// The limit in whose store what was here goes on.
    after: OnceLock<Arc<dyn Enforce>>,
}

fn shards_for(max_keys: usize) -> usize {
    (max_keys.clamp(1, MAX_KEYS) / KEYS_PER_SHARD)
        .next_power_of_two()
        .clamp(1, MAX_SHARDS)
}

impl<M: Meter> Keyed<M> {
    /// An empty store of at most `max_keys` keys (1 to [`MAX_KEYS`]; beyond, the nearest).
    pub fn new(max_keys: usize) -> Self {
        let shards = 0..shards_for(max_keys);
        let max_keys = max_keys.clamp(1, MAX_KEYS);
        Self {
            id: StoreId::next(),
            shards: shards.map(|_| Mutex::new(Shard::new())).collect(),
            meters: RwLock::new(Meters::default()),
            len: AtomicUsize::new(0),
            max_keys: AtomicUsize::new(max_keys),
            counts: Counts::default(),
            before: Mutex::new(None),
            adopting: AtomicBool::new(false),
            vacating: Mutex::new(Vacating::default()),
            after: OnceLock::new(),
        }
    }

    /// This store's number: the order in which locks are taken where several are.
    pub const fn id(&self) -> StoreId {
        self.id
    }

    /// Changes the bound. Lowered below what is there, it is reached as new keys come.
    pub fn set_max_keys(&self, max_keys: usize) {
        self.max_keys
            .store(max_keys.clamp(1, MAX_KEYS), Ordering::Relaxed);
    }

    /// Whether a store made for so many keys would have as many shards as this one.
    pub fn suits(&self, max_keys: usize) -> bool {
        shards_for(max_keys) == self.shards.len()
    }

    /// Takes what is asked if it is allowed. A key that is refused at first sight takes no room.
    #[inline]
    pub fn check(
        &self,
        meter: &Registered<M>,
        key: KeyHash,
        now: Timestamp,
        ask: &Ask,
    ) -> (Decision, Option<Receipt>) {
        self.prepare(key, now);
        let (mut shard, counted) = self.enter(key, now);
        if shard.handed_over {
            drop(shard);
            return self.check_after(key, now, ask);
        }
        let behind = counted.since(now);
        let mut told = Decision::NOT_ASKED;
        let receipt = self.hold_in(&mut shard, meter, key, counted, ask, |decision| {
            told = decision.told_behind(behind);
            true
        });
        (told, receipt)
    }

    /// What [`check`](Self::check) would answer. Takes nothing; `remaining` and `reset_after`
    /// are those of now.
    pub fn peek(&self, meter: &Registered<M>, key: KeyHash, now: Timestamp, ask: &Ask) -> Decision {
        self.prepare(key, now);
        let (mut shard, counted) = self.enter(key, now);
        if shard.handed_over {
            drop(shard);
            return self.peek_after(key, now, ask);
        }
        let decision = if let Some(slot) = self.slot_of(&mut shard, key, counted) {
            self.bring_up(slot, meter, counted);
            peek(&meter.meter, &slot.state, counted, ask)
        } else {
            peek(&meter.meter, &meter.meter.fresh(counted), counted, ask)
        };
        decision.told_behind(counted.since(now))
    }

    /// The entry that a key is counted in; `None` where it would be a new one.
    fn slot_of<'s>(
        &self,
        shard: &'s mut Shard<M::State>,
        key: KeyHash,
        now: Timestamp,
    ) -> Option<&'s mut Slot<M::State>> {
        match shard.find(key) {
            Ok(at) => Some(shard.slot_mut(at)),
            Err(_) if shard.overflow_has(key) || !self.has_room(shard, key, now) => {
                shard.overflow.as_deref_mut().map(|shared| &mut shared.slot)
            }
            Err(_) => None,
        }
    }

    /// Plans, shows the answer to `rest` while the key is held still, and commits if the answer
    /// is allowed and `rest` agrees. How several limits are decided as one, after each has been
    /// [prepared](Self::prepare).
    pub fn hold(
        &self,
        meter: &Registered<M>,
        key: KeyHash,
        now: Timestamp,
        ask: &Ask,
        mut rest: impl FnMut(Decision) -> bool,
    ) -> Option<Receipt> {
        let (mut shard, counted) = self.enter(key, now);
        if shard.handed_over {
            // The store after this one cannot be held in its place: its turn in the order of
            // stores is another.
            rest(Decision::MOVED);
            return None;
        }
        let behind = counted.since(now);
        let rest = |decision: Decision| rest(decision.told_behind(behind));
        self.hold_in(&mut shard, meter, key, counted, ask, rest)
    }

    /// [`hold`](Self::hold) with the shard held already.
    #[inline]
    fn hold_in(
        &self,
        shard: &mut Shard<M::State>,
        meter: &Registered<M>,
        key: KeyHash,
        now: Timestamp,
        ask: &Ask,
        mut rest: impl FnMut(Decision) -> bool,
    ) -> Option<Receipt> {
        if let Ok(at) = shard.find(key) {
            let slot = shard.slot_mut(at);
            self.bring_up(slot, meter, now);
            let plan = meter.meter.plan(&slot.state, now, ask);
            let agreed = rest(plan.decision);
            let change = plan.change.filter(|_| agreed)?;
            let taken = meter.meter.commit(&mut slot.state, change);
            return Some(Receipt::new(taken, key, self.id, false));
        }
        if shard.overflow_has(key) {
            return self.hold_overflow(shard, meter, key, now, ask, rest);
        }
        let fresh = meter.meter.fresh(now);
        let plan = meter.meter.plan(&fresh, now, ask);
        if plan.change.is_none() && plan.decision.retry_after().is_none() {
            rest(plan.decision);
            return None;
        }
        self.hold_new(shard, meter, key, now, ask, (fresh, plan), rest)
    }

    /// The rest of [`hold`](Self::hold) for a key that is not there yet.
    #[expect(
        clippy::too_many_arguments,
        reason = "the second half of `hold`, split for length"
    )]
    fn hold_new(
        &self,
        shard: &mut Shard<M::State>,
        meter: &Registered<M>,
        key: KeyHash,
        now: Timestamp,
        ask: &Ask,
        (mut fresh, plan): (M::State, Plan<M::Change>),
        mut rest: impl FnMut(Decision) -> bool,
    ) -> Option<Receipt> {
        let room = self.room(shard, key, now);
        if matches!(room, Room::None) {
            return self.hold_overflow(shard, meter, key, now, ask, rest);
        }
        let waits = plan.decision.retry_after().is_some();
        let agreed = rest(plan.decision);
        let change = plan.change.filter(|_| agreed);
        // Who was told to wait must not begin anew when it comes again.
        if change.is_none() && !waits {
            return None;
        }
        let taken = change.map(|change| meter.meter.commit(&mut fresh, change));
        self.move_in(shard, room, now);
        if shard.is_full() {
            self.purge(shard, now);
        }
        shard.insert(key, meter.id, fresh);
        taken.map(|taken| Receipt::new(taken, key, self.id, false))
    }

    /// Makes a key as good as new. False, and nothing done, while a guard of it is alive.
    ///
    /// A receipt of before that is given back afterwards frees what was taken since.
    pub fn reset(&self, key: KeyHash, now: Timestamp) -> bool {
        self.prepare(key, now);
        let (mut shard, now) = self.enter(key, now);
        if shard.handed_over {
            drop(shard);
            return self.successor().is_none_or(|after| after.reset(key, now));
        }
        let Ok(at) = shard.find(key) else {
            return !shard.overflow_has(key);
        };
        if self.at_stake(shard.slot(at), now).is_none() {
            return false;
        }
        drop(shard.remove(at));
        self.len.fetch_sub(1, Ordering::Relaxed);
        true
    }

    /// Gives back what one check took. A receipt of another store comes back.
    ///
    /// # Errors
    /// The receipt, where it is of another store.
    pub fn give_back(
        &self,
        meter: &Registered<M>,
        receipt: Receipt,
        now: Timestamp,
    ) -> Result<(), Receipt> {
        if receipt.store() != self.id {
            // Perhaps the store after this one answered in its place.
            return match self.successor() {
                Some(after) => after.give_back(receipt, now),
                None => Err(receipt),
            };
        }
        self.prepare(receipt.key(), now);
        let (mut shard, now) = self.enter(receipt.key(), now);
        let slot = if receipt.is_overflow() {
            shard.overflow.as_deref_mut().map(|overflow| {
                overflow.left(receipt.key());
                &mut overflow.slot
            })
        } else {
            shard.find(receipt.key()).ok().map(|at| shard.slot_mut(at))
        };
        // A key that was forgotten meanwhile has nothing to get back.
        let Some(slot) = slot else { return Ok(()) };
        if slot.meter() == meter.id {
            meter.meter.undo(&mut slot.state, receipt.taken(), now);
        } else {
            let id = slot.meter();
            self.with_meter(id, |meter| {
                meter.undo(&mut slot.state, receipt.taken(), now);
            });
        }
        let mut woken = Vec::new();
        if slot.state.is_waited_for()
            && let Some(entry) = shard.entry(receipt.key(), receipt.is_overflow())
        {
            self.serve(entry, now, &mut woken);
        }
        self.leave_shard(shard, woken);
        Ok(())
    }

    /// The key's shard, and the time as it counts there: never before one it has seen.
    fn enter(
        &self,
        key: KeyHash,
        now: Timestamp,
    ) -> (crate::sync::MutexGuard<'_, Shard<M::State>>, Timestamp) {
        let mut shard = lock(&self.shards[self.index_of(key)]);
        let now = shard.advance(now);
        (shard, now)
    }

    fn index_of(&self, key: KeyHash) -> usize {
        ((u128::from(key.lo) * self.shards.len() as u128) >> 64) as usize
    }

    fn at_stake(&self, slot: &Slot<M::State>, now: Timestamp) -> Option<u64> {
        self.with_meter(slot.meter(), |meter| meter.at_stake(&slot.state, now))
    }
}
