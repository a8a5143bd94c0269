//! Promise 9: eviction is nearly invisible. Below the bound no answer tells that a key was
//! forgotten; at it what is given away is counted, and no guard is ever lost.

use std::collections::HashMap;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use tidegate::{
    Algorithm, Ask, Enforcer, KeyHash, KeyHasher, KeyedLimiter, ManualClock, Quota, Receipt, Retry,
    Timestamp,
};
use tidegate_sim::oracle::{Oracle, Request, TokenBucketOracle, oracle_of};
use tidegate_sim::strategy::{self, cases};

use crate::door::keyed;

type Outcome = Result<(), TestCaseError>;

const START: Timestamp = Timestamp::from_secs(1_700_000_000);

fn hash(key: u64) -> KeyHash {
    KeyHasher::with_keys(5, 6).hash(&key)
}

/// Each of many keys against an oracle of its own, in a store that has room for all: it grows and
/// drops what is as good as new meanwhile.
fn nobody_notices(algorithm: Algorithm, turns: &[(u64, u64, u64)]) -> Outcome {
    let store = keyed(&algorithm, 1 << 20);
    let mut oracles: HashMap<u64, Box<dyn Oracle>> = HashMap::new();
    let (grain, span) = strategy::scale(&algorithm);
    let mut now = START.as_nanos();
    for &(first, keys, time) in turns {
        // A flood of new keys, then old ones.
        now += (grain.saturating_mul(time % 4)).min(span) + span / 1_000 * (time % 5);
        for key in first..first + keys {
            let permits = key % 3 + 1;
            let oracle = oracles
                .entry(key)
                .or_insert_with(|| oracle_of(&algorithm, now));
            let request = Request::at(now, permits);
            let expected = oracle.delay_of(request);
            let (decision, _) =
                store.check(hash(key), Timestamp::from_nanos(now), &Ask::new(permits));
            prop_assert_eq!(decision.is_allowed(), expected.is_some(), "key {}", key);
            if expected.is_some() {
                oracle.take(request);
            } else if decision.retry_after().is_none() {
                oracles.remove(&key); // Not remembered.
            }
        }
    }
    let stats = store.stats();
    prop_assert_eq!((stats.evicted_active, stats.overflowed), (0, 0));
    Ok(())
}

/// A token bucket that also takes what it has not: how far below zero it got is what the engine
/// gave away.
#[derive(Debug)]
struct Ledger {
    oracle: TokenBucketOracle,
    given_away: u64,
}

impl Ledger {
    fn new(quota: Quota) -> Self {
        Self {
            oracle: TokenBucketOracle::new(quota, START.as_nanos()),
            given_away: 0,
        }
    }

    fn take(&mut self, request: Request) {
        self.oracle.take(request);
        self.given_away = self.given_away.max(self.oracle.overdrawn(request.now));
    }
}

/// Gates: who is inside, by key and by receipt.
#[derive(Debug)]
struct Building {
    gate: Enforcer,
    places: u64,
    inside: Vec<(u64, Receipt)>,
}

impl Building {
    fn of(&self, key: u64) -> u64 {
        let of_key = self.inside.iter().filter(|(inside, _)| *inside == key);
        of_key.map(|(_, receipt)| receipt.permits()).sum()
    }

    fn enter(&mut self, key: u64, permits: u64) -> Outcome {
        let peeked = self.gate.peek(hash(key), START, &Ask::new(permits));
        let (decision, receipt) = self.gate.check(hash(key), START, &Ask::new(permits));
        prop_assert_eq!(peeked.verdict, decision.verdict);
        prop_assert!(decision.remaining <= decision.limit);
        if let Some(receipt) = receipt {
            self.inside.push((key, receipt));
        }
        let inside = self.of(key);
        prop_assert!(inside <= self.places, "{} of key {} inside", inside, key);
        Ok(())
    }

    fn leave(&mut self, which: usize) -> Outcome {
        if let Some(at) = which.checked_rem(self.inside.len()) {
            let (_, receipt) = self.inside.swap_remove(at);
            prop_assert!(self.gate.give_back(receipt, START).is_ok());
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(cases(30))]

    // proves: A5 (keys apart), H1 (below the bound)
    #[test]
    fn below_the_bound_nobody_notices_that_keys_are_forgotten(
        algorithm in strategy::exact(),
        turns in prop::collection::vec((0..4_000_u64, 1..2_000_u64, any::<u64>()), 1..8),
    ) {
        nobody_notices(algorithm, &turns)?;
    }
}

proptest! {
    #![proptest_config(cases(300))]

    // proves: H1 (at the bound)
    #[test]
    fn what_eviction_gives_away_is_counted_and_the_bound_holds_with_it(
        max_keys in 1..40_usize,
        quota in strategy::quota(),
        turns in prop::collection::vec((0..80_u64, 0..3_u64, 1..1_200_u64), 1..400),
    ) {
        let store = keyed(&Algorithm::TokenBucket(quota), max_keys);
        let (grain, _) = strategy::scale(&quota.into());
        let mut ledgers: HashMap<u64, Ledger> = HashMap::new();
        let mut now = START.as_nanos();
        for (key, grains, parts) in turns {
            now = (now + grain.saturating_mul(grains)).min(Timestamp::MAX.as_nanos());
            let burst = u128::from(quota.burst_permits());
            let permits = ((burst * u128::from(parts) / 1_000) as u64).max(1);
            let time = Timestamp::from_nanos(now);
            let ledger = ledgers.entry(key).or_insert_with(|| Ledger::new(quota));
            let due = ledger.oracle.delay_of(Request::at(now, permits));
            let (decision, _) = store.check(hash(key), time, &Ask::new(permits));
            // Nothing that the exact model admits is refused.
            prop_assert!(decision.is_allowed() || due.is_none());
            if decision.is_allowed() {
                ledger.take(Request::at(now, permits));
            }
            prop_assert!(store.stats().keys <= max_keys);
        }
        let given_away: u64 = ledgers.values().map(|ledger| ledger.given_away).sum();
        let released = store.stats().permits_released;
        prop_assert!(given_away <= released, "{} of {} counted", given_away, released);
        prop_assert_eq!(store.stats().overflowed, 0);
    }

    // proves: A2 (refusing), B8 (permits with a guard), H1 (at the bound)
    #[test]
    fn no_key_ever_has_more_inside_than_places_and_no_guard_is_lost(
        max_keys in 1..20_usize,
        places in 1..4_u64,
        turns in prop::collection::vec((0..40_u64, 1..3_u64, any::<usize>()), 1..300),
    ) {
        let gate = keyed(&Algorithm::Concurrency { max: places }, max_keys);
        let mut building = Building { gate, places, inside: Vec::new() };
        for (key, permits, which) in turns {
            building.enter(key, permits)?;
            if which % 5 < 2 {
                building.leave(which / 5)?;
            }
            prop_assert!(building.gate.stats().keys <= max_keys);
        }
        // All come back: then every place is free again, of every key.
        while !building.inside.is_empty() {
            building.leave(0)?;
        }
        for key in 0..40 {
            prop_assert_eq!(building.gate.peek(hash(key), START, &Ask::ONE).remaining, places);
        }
        prop_assert_eq!(building.gate.stats().permits_released, 0);
    }
}

// shows: H1 (bounded memory)
#[test]
fn the_counts_of_a_store_add_up() {
    // A permit is there again after a second: most keys are as good as new when a shard is full.
    for (max_keys, keys, drained) in [(100_000, 5_000, true), (100, 5_000, true), (50, 400, false)]
    {
        let quota = Quota::per_second(1);
        let store = keyed(&Algorithm::TokenBucket(quota), max_keys);
        let pace = if drained { 100_000_000 } else { 1 };
        for key in 0..keys {
            let now = START.after_nanos(pace * key);
            assert!(store.check(hash(key), now, &Ask::ONE).0.is_allowed());
        }
        let stats = store.stats();
        let gone = stats.evicted_drained + stats.evicted_active;
        assert_eq!(stats.keys as u64 + gone, keys, "{stats:?}");
        assert!(stats.keys <= max_keys);
        assert_eq!(stats.evicted_active > 0, !drained, "{stats:?}");
        assert_eq!(stats.permits_released, stats.evicted_active);
    }
}

/// Keys 1 to 16, of which key n has taken n permits of 100; the bound is reached.
fn sixteen(drained: Option<u64>) -> Enforcer {
    let store = keyed(&Algorithm::TokenBucket(Quota::per_day(100)), 16);
    for key in (1..=16).filter(|key| Some(*key) != drained) {
        assert!(store.check(hash(key), START, &Ask::new(key)).0.is_allowed());
    }
    if let Some(key) = drained {
        let (_, receipt) = store.check(hash(key), START, &Ask::ONE);
        let given_back = store.give_back(receipt.expect("taken"), START);
        given_back.expect("its own");
    }
    assert_eq!(store.stats().keys, 16);
    store
}

fn remaining(store: &Enforcer, key: u64) -> u64 {
    store.peek(hash(key), START, &Ask::ONE).remaining
}

// shows: H1 (bounded memory)
#[test]
fn at_the_bound_a_drained_key_goes_first() {
    let store = sixteen(Some(9));
    assert!(store.check(hash(99), START, &Ask::ONE).0.is_allowed());
    let stats = store.stats();
    assert_eq!((stats.keys, stats.evicted_drained), (16, 1));
    assert_eq!((stats.evicted_active, stats.permits_released), (0, 0));
    for key in (1..=16).filter(|key| *key != 9) {
        assert_eq!(remaining(&store, key), 100 - key);
    }
}

// shows: H1 (bounded memory)
#[test]
fn at_the_bound_else_the_one_that_gives_away_fewest_permits() {
    let store = sixteen(None);
    for (new, victim) in [(99, 1), (98, 99), (97, 98)] {
        assert!(store.check(hash(new), START, &Ask::ONE).0.is_allowed());
        assert_eq!(remaining(&store, victim), 100, "forgotten");
    }
    for key in 2..=16 {
        assert_eq!(remaining(&store, key), 100 - key);
    }
    let stats = store.stats();
    assert_eq!((stats.evicted_active, stats.permits_released), (3, 3));
}

// shows: H1 (bounded memory)
#[test]
fn a_key_that_is_refused_at_first_sight_takes_nobodys_place() {
    let store = sixteen(None);
    for key in 1_000..2_000 {
        assert!(store.check(hash(key), START, &Ask::new(101)).0.is_denied());
        assert!(store.check(hash(key), START, &Ask::new(0)).0.is_allowed());
        let _ = store.peek(hash(key), START, &Ask::ONE);
    }
    assert_eq!(
        (1..=16).map(|key| remaining(&store, key)).sum::<u64>(),
        1_600 - 136
    );
}

// shows: A2 (refusing), H1 (bounded memory)
#[test]
fn where_all_are_pinned_new_keys_share_an_entry() {
    let gate = keyed(&Algorithm::Concurrency { max: 2 }, 1);
    let enter = |key| gate.check(hash(key), START, &Ask::ONE);
    let (_, first) = enter(1);
    // Never unlimited, and never refused for all: two places for all who find no room.
    let (second, third) = (enter(2), enter(3));
    assert!(second.0.is_allowed() && third.0.is_allowed());
    assert_eq!(enter(4).0.retry(), Some(Retry::OnRelease));
    assert_eq!(gate.stats().overflowed, 3);
    // Whichever entry a guard is of, its key is not forgotten.
    assert_eq!(
        [1, 2, 4].map(|key| gate.reset(hash(key), START)),
        [false, false, true]
    );
    assert!(enter(1).0.is_allowed(), "the pinned key has its own");
    gate.give_back(third.1.expect("inside"), START)
        .expect("its own");
    let fourth = enter(4);
    assert!(fourth.0.is_allowed());
    for receipt in [first, second.1, fourth.1].into_iter().flatten() {
        gate.give_back(receipt, START).expect("its own");
    }
}

// shows: A2 (refusing), H1 (bounded memory)
#[test]
fn who_looks_sees_the_room_that_there_is_again() {
    let gate = keyed(&Algorithm::Concurrency { max: 1 }, 1);
    let enter = |key| gate.check(hash(key), START, &Ask::ONE).1;
    let pinned = enter(1).expect("its own");
    let _shared = enter(2).expect("the shared one");
    let places = |key| gate.peek(hash(key), START, &Ask::ONE).remaining;
    assert_eq!(places(3), 0, "it would share what key 2 has");
    gate.give_back(pinned, START).expect("its own");
    assert!(gate.reset(hash(1), START));
    assert_eq!(places(3), 1);
    assert!(enter(3).is_some());
}

// shows: A2 (refusing), H1 (bounded memory)
#[test]
fn who_has_left_the_shared_entry_does_not_come_back_to_it() {
    let gate = keyed(&Algorithm::Concurrency { max: 2 }, 1);
    let enter = |key| gate.check(hash(key), START, &Ask::ONE);
    let (_, pinned) = enter(1);
    let (_, shared) = enter(2);
    for receipt in [pinned, shared].into_iter().flatten() {
        gate.give_back(receipt, START).expect("its own");
    }
    // Key 2 has room of its own now: the shared entry is free for others.
    let all = [2, 2, 3].map(enter);
    assert!(all.iter().all(|(decision, _)| decision.is_allowed()));
    assert_eq!(gate.stats().overflowed, 2);
}

// shows: A2 (refusing), H1 (bounded memory)
#[test]
fn a_key_that_shared_an_entry_has_its_places_once_when_there_is_room_again() {
    let gate = keyed(&Algorithm::Concurrency { max: 2 }, 1);
    let enter = |key| gate.check(hash(key), START, &Ask::ONE);
    let (_, pinned) = enter(1);
    let (one, two) = (enter(2), enter(2));
    assert!(one.0.is_allowed() && two.0.is_allowed());
    gate.give_back(pinned.expect("inside"), START)
        .expect("its own");
    // There is room for key 2 now, and two of it are inside already.
    assert_eq!(enter(2).0.retry(), Some(Retry::OnRelease));
    let three = enter(3);
    assert!(three.0.is_allowed(), "who has none in there has its own");
    gate.give_back(one.1.expect("inside"), START)
        .expect("its own");
    assert!(enter(2).0.is_allowed());
}

// shows: H1 (bounded memory), F4
#[test]
fn a_lowered_bound_is_reached_as_new_keys_come() {
    let quota = Quota::per_day(10);
    for (max_keys, lowered) in [(1_000, 100), (100_000, 1_000)] {
        let clock = ManualClock::new(START);
        let builder = KeyedLimiter::builder(quota).max_keys(max_keys);
        let mut limiter = builder.clock(clock).build().expect("valid");
        for key in 0..max_keys as u64 {
            assert!(limiter.check(&key).is_allowed());
        }
        limiter.set_limit(quota, lowered).expect("valid");
        for key in 0..max_keys as u64 {
            assert!(limiter.check(&("new", key)).is_allowed());
        }
        let stats = limiter.stats();
        assert_eq!(stats.keys, lowered);
        assert_eq!(stats.overflowed, 0, "{stats:?}");
        assert_eq!(stats.permits_released, (2 * max_keys - lowered) as u64);
    }
}

// shows: H1 (bounded memory)
#[test]
fn a_raised_bound_has_as_many_shards_as_one_made_for_it() {
    let clock = ManualClock::new(START);
    let quota = Quota::per_day(10);
    let builder = KeyedLimiter::builder(quota).max_keys(10).clock(clock);
    let mut limiter = builder.build().expect("valid");
    for key in 0..10_u64 {
        assert!(limiter.check_ask(&key, Ask::new(key)).is_allowed());
    }
    limiter.set_limit(quota, 1_000_000).expect("valid");
    let made_for_it = KeyedLimiter::builder(quota).max_keys(1_000_000).build();
    let made_for_it = made_for_it.expect("valid").allocated_bytes();
    assert!(limiter.allocated_bytes() >= made_for_it);
    for key in 0..10_u64 {
        assert_eq!(limiter.peek(&key, Ask::ONE).remaining, 10 - key);
    }
}

// shows: H1 (bounded memory)
#[test]
fn a_panic_while_a_new_key_is_decided_leaves_no_place_taken() {
    let store = keyed(&Algorithm::TokenBucket(Quota::per_day(10)), 1);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        store.hold(hash(1), START, &Ask::ONE, &mut |_| panic!("in between"))
    }));
    assert!(panicked.is_err());
    assert_eq!(store.stats().keys, 0);
    assert!(store.check(hash(2), START, &Ask::ONE).0.is_allowed());
    assert_eq!((store.stats().keys, store.stats().evicted_active), (1, 0));
}
