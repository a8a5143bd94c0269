//! Limits behind one face, whatever their algorithm: what a node, or a check of several limits,
//! holds.

mod limit_ref;
mod saved;
mod single;

use core::fmt::Debug;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

pub(crate) use self::limit_ref::LimitRef;
pub use self::saved::SaveKeys;
pub(crate) use self::single::{NO_KEY, Single};
use crate::check_all::Answer;
use crate::key_hash::KeyHash;
use crate::limit::{FromAlgorithm, first_meter};
use crate::meter::Taken;
use crate::on_change::OnChange;
use crate::queue::{Joined, Waiter};
use crate::store::{Drain, Keyed, Registered, StoreStats, Vacated};
use crate::{Algorithm, Ask, Decision, Meter, QuotaError, Timestamp};

/// A store's number, never used twice in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreId(u64);

impl StoreId {
    pub(crate) fn next() -> Self {
        // Not one of loom's: it guards nothing, it only counts.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// What was taken, from whom: it can be given back once, and only to where it came from.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "keep it to give back what was taken, or drop it on purpose"]
pub struct Receipt {
    taken: Taken,
    key: KeyHash,
    store: StoreId,
    overflow: bool,
}

impl Receipt {
    pub(crate) const fn new(taken: Taken, key: KeyHash, store: StoreId, overflow: bool) -> Self {
        Self {
            taken,
            key,
            store,
            overflow,
        }
    }

    /// How many permits were taken.
    pub const fn permits(&self) -> u64 {
        self.taken.permits
    }

    pub(crate) const fn taken(&self) -> &Taken {
        &self.taken
    }

    pub(crate) const fn key(&self) -> KeyHash {
        self.key
    }

    pub(crate) const fn store(&self) -> StoreId {
        self.store
    }

    pub(crate) const fn is_overflow(&self) -> bool {
        self.overflow
    }
}

/// A limit's numbers over its store. One with many keys, or one that has a single key and does
/// not look at which it is asked for.
pub trait Enforce: Debug + Send + Sync {
    /// Takes what is asked if it is allowed.
    fn check(&self, key: KeyHash, now: Timestamp, ask: &Ask) -> (Decision, Option<Receipt>);

    /// What [`check`](Self::check) would answer, with what remains now. Takes nothing.
    fn peek(&self, key: KeyHash, now: Timestamp, ask: &Ask) -> Decision;

    /// Does what must be done for a key while no store is held: called for each limit before the
    /// first of several is [held](Self::hold).
    fn prepare(&self, key: KeyHash, now: Timestamp);

    /// Plans, shows the answer to `rest` while the key is held still, and commits if the answer
    /// is allowed and `rest` agrees.
    ///
    /// `rest` must not come back to this store; stores are held in the order of their ids.
    fn hold(
        &self,
        key: KeyHash,
        now: Timestamp,
        ask: &Ask,
        rest: &mut dyn FnMut(Decision) -> bool,
    ) -> Option<Receipt>;

    /// Gives back what one check took.
    ///
    /// # Errors
    /// The receipt, where it is of another store.
    fn give_back(&self, receipt: Receipt, now: Timestamp) -> Result<(), Receipt>;

    /// Makes a key as good as new. False, and nothing done, while a guard of it is alive.
    fn reset(&self, key: KeyHash, now: Timestamp) -> bool;

    /// Takes what is asked, or, of a limit whose permits come back, stands in line for it unless
    /// more than `length` permits would be waiting: [`Waiting`](crate::Waiting) is how to.
    fn join(&self, key: KeyHash, now: Timestamp, ask: &Ask, length: u64) -> Joined;

    /// Takes one out of its line who goes away.
    fn leave(&self, waiter: &Waiter);

    /// The limit in whose store what was here goes on, if another has taken it over.
    fn successor(&self) -> Option<Arc<dyn Enforce>> {
        None
    }

    /// The store's number.
    fn store_id(&self) -> StoreId;

    /// Whether permits have to come back: see [`Gate`](crate::Gate).
    fn is_gate(&self) -> bool;
}

/// A limit of many keys whose numbers can change.
pub trait EnforceKeyed: Enforce + SaveKeys {
    /// Takes what is asked of each of these keys if it is allowed, as if they were
    /// [checked](Enforce::check) one by one in this order, and adds the answers to `answers`. In a
    /// large store (from a hundred thousand keys or so) that takes less time, since their entries
    /// come from memory side by side; in a small one a little more. Others may be answered in
    /// between.
    fn check_batch(&self, keys: &[KeyHash], now: Timestamp, ask: &Ask, answers: &mut Vec<Answer>);

    /// The same keys under other numbers, one for each of `algorithms`: `on_change` says what
    /// stays, and the numbers hold from `now` on. `None` where their states are of another kind,
    /// or the store was made for many more or fewer keys: another has to
    /// [succeed](Self::succeed) it.
    fn renumbered(
        &self,
        algorithms: &[Algorithm],
        max_keys: usize,
        now: Timestamp,
        on_change: OnChange,
    ) -> Option<Vec<Enforcer>>;

    /// This store, to be taken over by another. `None` for gates: what is inside leaves here.
    fn drain(&self) -> Option<Arc<dyn Drain>>;

    /// Takes over what `old` has in use at `now`, as it is asked for.
    fn succeed(&self, old: Arc<dyn Drain>, now: Timestamp, on_change: OnChange);

    /// Takes over the rest of what [`succeed`](Self::succeed) began.
    fn adopt_all(&self, now: Timestamp);

    /// Refuses for good all who wait in line here: the limit is gone.
    fn dismiss(&self);

    /// How many permits of a gate's key are out (of keys that share an entry, those of all of
    /// them); 0 of a limit whose permits come back with time.
    fn in_use(&self, key: KeyHash) -> u64;

    /// How many permits of a gate are out, of all keys. Looks at the whole store, shard by shard:
    /// for people, not for each request.
    fn all_in_use(&self) -> u64;

    /// Completes when no permit of any key is out.
    fn vacated(&self) -> Vacated;

    /// What the store holds and what it has let go of.
    fn stats(&self) -> StoreStats;

    /// Bytes allocated for entries. Looks at the whole store: for people, not for each request.
    fn allocated_bytes(&self) -> usize;
}

/// A limit of many keys, shared.
pub type Enforcer = Arc<dyn EnforceKeyed>;

/// Limits over one new store: one for each of `algorithms`, which are one limit and what
/// overrides it for some keys.
///
/// # Errors
/// [`QuotaError`] where numbers make no limit; [`QuotaError::MixedAlgorithms`] where they are not
/// of one kind.
pub fn enforcers(algorithms: &[Algorithm], max_keys: usize) -> Result<Vec<Enforcer>, QuotaError> {
    for algorithm in algorithms {
        algorithm.validate()?;
    }
    // The narrowest state that holds them all.
    first_meter!(over_new(algorithms, max_keys)).ok_or(QuotaError::MixedAlgorithms)
}

/// What `old` becomes under other numbers, from `now` on: the same store where it can stay, else a
/// new one that takes the old one over, little by little until
/// [`adopt_all`](EnforceKeyed::adopt_all). `on_change` says what stays.
///
/// # Errors
/// As [`enforcers`]. The old numbers hold then.
pub fn changed(
    old: &dyn EnforceKeyed,
    algorithms: &[Algorithm],
    max_keys: usize,
    now: Timestamp,
    on_change: OnChange,
) -> Result<Vec<Enforcer>, QuotaError> {
    for algorithm in algorithms {
        algorithm.validate()?;
    }
    if let Some(renumbered) = old.renumbered(algorithms, max_keys, now, on_change) {
        return Ok(renumbered);
    }
    let new = enforcers(algorithms, max_keys)?;
    // What is inside a gate leaves there; it is no usage of a rate, nor the other way.
    if let (Some(first), Some(old)) = (new.first().filter(|new| !new.is_gate()), old.drain()) {
        first.succeed(Arc::clone(&old), now, on_change);
        // Not before: until then every key would be new there.
        old.hand_over_to(Arc::clone(first) as Arc<dyn Enforce>);
    }
    Ok(new)
}

fn over_new<M: FromAlgorithm>(algorithms: &[Algorithm], max_keys: usize) -> Option<Vec<Enforcer>> {
    // A store has up to 65,536 shards: it is made only for what it will hold.
    if algorithms
        .iter()
        .any(|one| M::from_algorithm(one).is_none())
    {
        return None;
    }
    let store = Arc::new(Keyed::<M>::new(max_keys));
    over(&store, algorithms, Timestamp::EPOCH, OnChange::KeepUsed).map(enforcers_of)
}

fn over<M: FromAlgorithm>(
    store: &Arc<Keyed<M>>,
    algorithms: &[Algorithm],
    now: Timestamp,
    on_change: OnChange,
) -> Option<Vec<Bound<M>>> {
    let meters: Option<Vec<M>> = algorithms.iter().map(M::from_algorithm).collect();
    let meters = meters?;
    let era = store.begin(now, on_change);
    meters
        .into_iter()
        .map(|meter| {
            let meter = store.register(meter, era)?;
            let store = Arc::clone(store);
            Some(Bound { store, meter })
        })
        .collect()
}

fn enforcers_of<M: FromAlgorithm>(bounds: Vec<Bound<M>>) -> Vec<Enforcer> {
    let enforcer = |bound| Arc::new(bound) as Enforcer;
    bounds.into_iter().map(enforcer).collect()
}

/// A keyed store under one meter's numbers.
#[derive(Debug)]
struct Bound<M: Meter> {
    store: Arc<Keyed<M>>,
    meter: Registered<M>,
}

impl<M: FromAlgorithm> Enforce for Bound<M> {
    fn check(&self, key: KeyHash, now: Timestamp, ask: &Ask) -> (Decision, Option<Receipt>) {
        self.store.check(&self.meter, key, now, ask)
    }

    fn peek(&self, key: KeyHash, now: Timestamp, ask: &Ask) -> Decision {
        self.store.peek(&self.meter, key, now, ask)
    }

    fn prepare(&self, key: KeyHash, now: Timestamp) {
        self.store.prepare(key, now);
    }

    fn hold(
        &self,
        key: KeyHash,
        now: Timestamp,
        ask: &Ask,
        rest: &mut dyn FnMut(Decision) -> bool,
    ) -> Option<Receipt> {
        self.store.hold(&self.meter, key, now, ask, rest)
    }

    fn give_back(&self, receipt: Receipt, now: Timestamp) -> Result<(), Receipt> {
        self.store.give_back(&self.meter, receipt, now)
    }

    fn reset(&self, key: KeyHash, now: Timestamp) -> bool {
        self.store.reset(key, now)
    }

    fn join(&self, key: KeyHash, now: Timestamp, ask: &Ask, length: u64) -> Joined {
        self.store.join(&self.meter, key, now, ask, length)
    }

    fn leave(&self, waiter: &Waiter) {
        self.store.leave(waiter);
    }

    fn successor(&self) -> Option<Arc<dyn Enforce>> {
        self.store.successor()
    }

    fn store_id(&self) -> StoreId {
        self.store.id()
    }

    fn is_gate(&self) -> bool {
        M::IS_GATE
    }
}

impl<M: FromAlgorithm> EnforceKeyed for Bound<M> {
    fn check_batch(&self, keys: &[KeyHash], now: Timestamp, ask: &Ask, answers: &mut Vec<Answer>) {
        self.store.check_batch(&self.meter, keys, now, ask, answers);
    }

    fn renumbered(
        &self,
        algorithms: &[Algorithm],
        max_keys: usize,
        now: Timestamp,
        on_change: OnChange,
    ) -> Option<Vec<Enforcer>> {
        // Who is inside a gate leaves where it came in.
        if !M::IS_GATE && !self.store.suits(max_keys) {
            return None;
        }
        // Who is inside a gate is inside.
        let on_change = if M::IS_GATE {
            OnChange::KeepUsed
        } else {
            on_change
        };
        let renumbered = over(&self.store, algorithms, now, on_change)?;
        self.store.set_max_keys(max_keys);
        // Where some keys have other numbers, only who asks next says which are whose: until then
        // those that had the limit's own have its new ones.
        if let Some(own) = renumbered.first() {
            let whose = (renumbered.len() > 1).then_some(&self.meter);
            self.store.serve_lines(&own.meter, whose, now);
        }
        Some(enforcers_of(renumbered))
    }

    fn drain(&self) -> Option<Arc<dyn Drain>> {
        if M::IS_GATE {
            return None;
        }
        Some(Arc::clone(&self.store) as Arc<dyn Drain>)
    }

    fn succeed(&self, old: Arc<dyn Drain>, now: Timestamp, on_change: OnChange) {
        self.store.succeed(old, self.meter.clone(), now, on_change);
    }

    fn adopt_all(&self, now: Timestamp) {
        self.store.adopt_all(now);
    }

    fn dismiss(&self) {
        self.store.dismiss();
    }

    fn in_use(&self, key: KeyHash) -> u64 {
        self.store.in_use(key)
    }

    fn all_in_use(&self) -> u64 {
        self.store.all_in_use()
    }

    fn vacated(&self) -> Vacated {
        Vacated::of(&self.store)
    }

    fn stats(&self) -> StoreStats {
        self.store.stats()
    }

    fn allocated_bytes(&self) -> usize {
        self.store.allocated_bytes()
    }
}
