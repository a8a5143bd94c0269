use std::collections::BTreeMap;

use proptest::prelude::*;

use super::shard::{EVICTION_WINDOW, METER_BITS, Shard, Slot};
use crate::OnChange;
use crate::Timestamp;
use crate::key_hash::KeyHash;
use crate::meter::Tat;

type Order = (u64, u64);

/// One change of a shard. Keys are numbers that are made hashes of later.
#[derive(Clone, Debug)]
enum Change {
    Insert(u16),
    Remove(u16),
    Retain(u64),
    Extract(u16, u16),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        12 => any::<u16>().prop_map(Change::Insert),
        6 => any::<u16>().prop_map(Change::Remove),
        1 => (2..5_u64).prop_map(Change::Retain),
        1 => (any::<u16>(), any::<u16>()).prop_map(|(a, b)| Change::Extract(a.min(b), a.max(b))),
    ]
}

/// How keys lie in the range of hashes.
#[derive(Clone, Copy, Debug)]
enum Spread {
    Even,
    /// All in the last sixteenth: pushed into the tail, and past it until the shard grows.
    AtTheEnd,
    /// A few upper halves, told apart by their lower halves.
    Heaps,
}

fn hash(spread: Spread, key: u16) -> KeyHash {
    let wide = u64::from(key);
    let lo = wide << 48 | wide; // What the low bits say does not count.
    let hi = match spread {
        Spread::Even => (wide << 48) + 1,
        Spread::AtTheEnd => u64::MAX - (wide << 44),
        Spread::Heaps => (wide % 5 + 1) << 61 | 1,
    };
    KeyHash { hi, lo }
}

const fn order(hash: KeyHash) -> Order {
    (hash.hi, hash.lo & !((1 << METER_BITS) - 1))
}

const fn order_of(slot: &Slot<Tat<u64>>) -> Order {
    order(slot.hash())
}

/// The shard and what it should hold: of each key its meter and state.
#[derive(Debug)]
struct Pair {
    shard: Shard<Tat<u64>>,
    model: BTreeMap<Order, (u32, u64)>,
    count: u64,
}

impl Pair {
    fn apply(&mut self, spread: Spread, change: &Change) {
        match *change {
            Change::Insert(key) => {
                let hash = hash(spread, key);
                if self.shard.find(hash).is_err() {
                    self.count += 1;
                    let meter = (self.count % (1 << METER_BITS)) as u32;
                    self.shard.insert(hash, meter, Tat(self.count));
                    self.model.insert(order(hash), (meter, self.count));
                }
            }
            Change::Remove(key) => {
                let hash = hash(spread, key);
                let removed = self.shard.find(hash).ok().map(|at| self.shard.remove(at));
                let removed = removed.map(|slot| (slot.meter(), slot.state.0));
                assert_eq!(removed, self.model.remove(&order(hash)));
            }
            Change::Retain(of) => {
                self.shard.retain(|slot| slot.state.0 % of == 0);
                self.model.retain(|_, (_, state)| *state % of == 0);
            }
            Change::Extract(first, last) => {
                let range = u64::from(first) << 48..=u64::from(last) << 48 | ((1 << 48) - 1);
                let taken = self.shard.extract(range.clone());
                let mut taken: Vec<Order> = taken.iter().map(order_of).collect();
                taken.sort_unstable();
                let expected = self.model.extract_if(.., |(_, lo), _| range.contains(lo));
                assert_eq!(taken, expected.map(|(order, _)| order).collect::<Vec<_>>());
            }
        }
    }

    fn check(&self, spread: Spread) {
        self.shard.assert_ordered();
        assert_eq!(self.shard.len(), self.model.len());
        assert_eq!(self.shard.count(|_| true), self.model.len());
        for key in (0..=u16::MAX).step_by(257) {
            let hash = hash(spread, key);
            let found = self.shard.find(hash).ok().map(|at| self.shard.slot(at));
            let found = found.map(|slot| (slot.meter(), slot.state.0));
            assert_eq!(found.as_ref(), self.model.get(&order(hash)));
            let near: Vec<usize> = self.shard.near(hash).collect();
            assert_eq!(near.len(), self.model.len().min(EVICTION_WINDOW));
        }
    }
}

proptest! {
    // proves: H1 (bounded memory)
    #[test]
    fn a_shard_is_an_ordered_map(
        spread in prop::sample::select(&[Spread::Even, Spread::AtTheEnd, Spread::Heaps][..]),
        changes in prop::collection::vec(change(), 1..300),
    ) {
        let mut pair = Pair { shard: Shard::new(), model: BTreeMap::new(), count: 0 };
        for change in &changes {
            pair.apply(spread, change);
        }
        pair.check(spread);
    }
}

#[test]
fn a_shard_does_not_go_back_in_time() {
    let mut shard = Shard::<Tat<u64>>::new();
    assert_eq!(
        shard.advance(Timestamp::from_secs(5)),
        Timestamp::from_secs(5)
    );
    assert_eq!(
        shard.advance(Timestamp::from_secs(3)),
        Timestamp::from_secs(5)
    );
}

#[test]
fn a_reset_key_is_as_good_as_new_and_others_are_not() {
    let quota = crate::Quota::per_hour(5);
    let store = super::Keyed::new(100);
    let meter = crate::meter::TokenBucket::<u64>::new(quota).unwrap();
    let meter = store
        .register(meter, store.begin(Timestamp::EPOCH, OnChange::KeepUsed))
        .unwrap();
    let now = Timestamp::from_secs(1);
    let (key, other) = (
        KeyHash { hi: 7, lo: 7 << 32 },
        KeyHash { hi: 9, lo: 9 << 32 },
    );
    let all = crate::Ask::new(5);
    for key in [key, other] {
        assert!(store.check(&meter, key, now, &all).0.is_allowed());
    }
    assert!(store.reset(key, now));
    assert_eq!(store.stats().keys, 1);
    assert!(store.check(&meter, key, now, &all).0.is_allowed());
    assert!(store.check(&meter, other, now, &all).0.is_denied());
    assert!(
        store.reset(KeyHash { hi: 1, lo: 0 }, now),
        "nothing is as good as new"
    );
}

#[test]
fn a_key_with_guards_is_not_reset() {
    let store = super::Keyed::new(100);
    let gate = crate::gate::Concurrency::new(1).unwrap();
    let gate = store
        .register(gate, store.begin(Timestamp::EPOCH, OnChange::KeepUsed))
        .unwrap();
    let (key, now) = (KeyHash { hi: 7, lo: 7 << 32 }, Timestamp::EPOCH);
    let (_, receipt) = store.check(&gate, key, now, &crate::Ask::ONE);
    assert!(!store.reset(key, now));
    assert!(store.check(&gate, key, now, &crate::Ask::ONE).0.is_denied());
    store.give_back(&gate, receipt.unwrap(), now).unwrap();
    assert!(store.reset(key, now));
}

#[test]
fn permits_of_all_keys_are_counted_also_where_keys_share_an_entry() {
    let limits = crate::enforcers(&[crate::Algorithm::Concurrency { max: 3 }], 1).unwrap();
    let limit = &limits[0];
    let take = |key, permits| {
        let key = KeyHash { hi: key, lo: key };
        let (_, receipt) = limit.check(key, Timestamp::EPOCH, &crate::Ask::new(permits));
        receipt.unwrap()
    };
    assert_eq!(limit.all_in_use(), 0);
    let taken = [take(1, 2), take(2, 1), take(3, 1)];
    assert_eq!(limit.all_in_use(), 4);
    for receipt in taken {
        limit.give_back(receipt, Timestamp::EPOCH).unwrap();
    }
    assert_eq!(limit.all_in_use(), 0);
    let rate = crate::Algorithm::TokenBucket(crate::Quota::per_second(5));
    let rates = crate::enforcers(&[rate], 1).unwrap();
    let _ = rates[0].check(KeyHash { hi: 1, lo: 1 }, Timestamp::EPOCH, &crate::Ask::ONE);
    assert_eq!(rates[0].all_in_use(), 0);
}
