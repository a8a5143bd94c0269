//! Promise 10: what was taken is given back exactly once, also on a panic; and only to where it
//! came from.

use core::num::NonZeroU32;
use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::prelude::*;
use tidegate::{
    Algorithm, Ask, Asked, ConcurrencyLimiter, Enforce, KeyHash, KeyHasher,
    KeyedConcurrencyLimiter, KeyedLimiter, Limiter, ManualClock, Quota, Timestamp, check_all,
};
use tidegate_sim::strategy::{self, cases};

use crate::door::keyed;

const START: Timestamp = Timestamp::from_secs(1_700_000_000);

fn hash(key: &str) -> KeyHash {
    KeyHasher::with_keys(7, 8).hash(key)
}

proptest! {
    #![proptest_config(cases(500))]

    // proves: A7 (cost and peek and give back)
    #[test]
    fn giving_back_at_once_is_as_if_nothing_had_been_taken(
        algorithm in prop_oneof![strategy::rate_limit(), strategy::concurrency()],
        before in 0..1_000_u64,
        parts in prop::collection::vec(0..500_u64, 1..6),
    ) {
        let store = keyed(&algorithm, 10);
        let patient = |permits| Ask::new(permits).within(Duration::from_hours(24 * 365));
        let limit = u128::from(store.peek(hash("k"), START, &Ask::ONE).limit);
        let part = |parts: u64| (limit * u128::from(parts) / 1_000) as u64;
        let _ = store.check(hash("k"), START, &patient(part(before)));
        let as_it_was = store.peek(hash("k"), START, &Ask::ONE);
        // Taken in this order, and given back in the other.
        let taken: Vec<_> = parts
            .iter()
            .filter_map(|parts| store.check(hash("k"), START, &patient(part(*parts))).1)
            .collect();
        for receipt in taken.into_iter().rev() {
            prop_assert!(store.give_back(receipt, START).is_ok());
        }
        // A key that was not there before is there now, as good as new.
        prop_assert_eq!(store.peek(hash("k"), START, &Ask::ONE), as_it_was);
    }
}

// shows: A7 (cost and peek and give back)
#[test]
fn a_receipt_of_another_limit_comes_back() {
    let quota = Quota::per_day(10);
    let clock = ManualClock::new(START);
    let limiter = |quota| Limiter::with_clock(quota, clock.clone()).expect("valid");
    let (one, other) = (limiter(quota), limiter(quota));
    let many = KeyedLimiter::builder(quota).build().expect("valid");
    let receipt = one.reserve(Ask::new(4)).1.expect("taken");
    let receipt = other.give_back(receipt).expect_err("not its own");
    let receipt = many.give_back(receipt).expect_err("not its own");
    assert_eq!(receipt.permits(), 4);
    assert_eq!(other.peek(Ask::ONE).remaining, 10);
    one.give_back(receipt).expect("its own");
    assert_eq!(one.peek(Ask::ONE).remaining, 10);

    let stores = [
        keyed(&Algorithm::TokenBucket(quota), 10),
        keyed(&Algorithm::TokenBucket(quota), 10),
    ];
    let (_, receipt) = stores[0].check(hash("k"), START, &Ask::ONE);
    let receipt = stores[1].give_back(receipt.expect("taken"), START);
    let receipt = receipt.expect_err("not its own");
    stores[0].give_back(receipt, START).expect("its own");
}

// shows: A7 (cost and peek and give back)
#[test]
fn what_time_has_given_back_is_not_given_back_again() {
    let (permits, window) = (5, Duration::from_secs(10));
    let limits = [
        Algorithm::TokenBucket(Quota::new(5, window)),
        Algorithm::FixedWindow { permits, window },
        Algorithm::SlidingLog { permits, window },
        Algorithm::SlidingWindow {
            permits,
            window,
            parts: NonZeroU32::MIN,
        },
        Algorithm::SlidingCounter { permits, window },
        Algorithm::IntervalBucket {
            quota: Quota::new(5, window),
            aligned: true,
        },
        Algorithm::Nginx {
            requests: 1,
            per_minute: false,
            burst: 4,
            delay: None,
        },
    ];
    for algorithm in limits {
        let store = keyed(&algorithm, 10);
        let (_, first) = store.check(hash("k"), START, &Ask::new(5));
        let later = START.after(window * 3);
        let (_, second) = store.check(hash("k"), later, &Ask::new(3));
        store.give_back(first.expect("taken"), later).expect("own");
        let remaining = store.peek(hash("k"), later, &Ask::ONE).remaining;
        match algorithm {
            // A bucket has no memory of whose permits it holds: it is full at most.
            Algorithm::TokenBucket(_)
            | Algorithm::IntervalBucket { .. }
            | Algorithm::Nginx { .. } => assert_eq!(remaining, 5),
            _ => assert_eq!(remaining, 2, "{algorithm:?}"),
        }
        store.give_back(second.expect("taken"), later).expect("own");
        assert_eq!(store.peek(hash("k"), later, &Ask::ONE).remaining, 5);
    }
}

// shows: A7 (cost and peek and give back), H1 (bounded memory)
#[test]
fn a_key_that_was_forgotten_meanwhile_has_nothing_to_get_back() {
    let store = keyed(&Algorithm::TokenBucket(Quota::per_day(10)), 1);
    let (_, receipt) = store.check(hash("a"), START, &Ask::new(9));
    assert!(store.check(hash("b"), START, &Ask::ONE).0.is_allowed());
    store
        .give_back(receipt.expect("taken"), START)
        .expect("its own");
    assert_eq!(store.peek(hash("a"), START, &Ask::ONE).remaining, 10);
    assert_eq!(store.peek(hash("b"), START, &Ask::ONE).remaining, 9);
}

// shows: A2 (refusing), B8 (permits with a guard)
#[test]
fn a_guard_gives_back_once_when_it_is_dropped_forgotten_about_or_panicked_over() {
    let one = ConcurrencyLimiter::new(3).expect("valid");
    let many = KeyedConcurrencyLimiter::new(3, 10).expect("valid");
    let free = || {
        let (_, permit) = many.try_acquire("k", 0);
        drop(permit);
        (one.peek(1).remaining, many.try_acquire("k", 0).0.remaining)
    };
    {
        let (first, second) = (one.try_acquire(2), many.try_acquire("k", 2));
        assert!(first.1.is_some() && second.1.is_some());
        assert_eq!(free(), (1, 1));
        assert!(one.try_acquire(2).1.is_none() && many.try_acquire("k", 2).1.is_none());
    }
    assert_eq!(free(), (3, 3));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _inside = (one.try_acquire(1), many.try_acquire("k", 1));
        panic!("the work failed");
    }));
    assert!(panicked.is_err());
    assert_eq!(free(), (3, 3));
}

// shows: A2 (refusing), A6, A7 (cost and peek and give back)
#[test]
fn a_check_of_several_gives_places_back_when_dropped_and_permits_only_when_asked() {
    let clock = ManualClock::new(START);
    let gate = ConcurrencyLimiter::new(1).expect("valid");
    let rate = Limiter::with_clock(Quota::per_day(5), clock).expect("valid");
    let ask = || check_all(&[gate.ask(1), rate.ask(2)], START).expect("two limits");
    let checked = ask();
    assert!(checked.is_allowed() && gate.peek(1).remaining == 0);
    drop(checked);
    assert_eq!(
        (gate.peek(1).remaining, rate.peek(Ask::ONE).remaining),
        (1, 3)
    );
    ask().give_back(START);
    assert_eq!(
        (gate.peek(1).remaining, rate.peek(Ask::ONE).remaining),
        (1, 3)
    );
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _checked = ask();
        panic!("the work failed");
    }));
    assert!(panicked.is_err());
    assert_eq!(
        (gate.peek(1).remaining, rate.peek(Ask::ONE).remaining),
        (1, 1)
    );
}

proptest! {
    #![proptest_config(cases(200))]

    // proves: A7 (reset)
    #[test]
    fn a_key_that_was_reset_is_as_good_as_new(
        algorithm in strategy::rate_limit(),
        start in strategy::start(),
        permits in prop::collection::vec(0..10_u64, 1..5),
        wait in 0..2_000_000_000_u64,
    ) {
        let clock = ManualClock::new(start);
        let one = || Limiter::with_clock(algorithm, clock.clone()).expect("valid");
        let many = || KeyedLimiter::builder(algorithm).clock(clock.clone()).build().expect("valid");
        let (limiter, keys) = (one(), many());
        for permits in permits {
            let ask = Ask::new(permits).within(Duration::from_nanos(wait));
            let _ = (limiter.check_ask(ask), keys.check_ask("a", ask), keys.check_ask("b", ask));
            clock.advance(Duration::from_nanos(wait / 7));
        }
        let others = keys.peek("b", Ask::ONE);
        limiter.reset();
        keys.reset("a");
        prop_assert_eq!(limiter.peek(Ask::ONE), one().peek(Ask::ONE));
        prop_assert_eq!(keys.peek("a", Ask::ONE), many().peek("a", Ask::ONE));
        prop_assert_eq!(keys.peek("b", Ask::ONE), others);
    }
}

// shows: A2 (refusing), A6
#[test]
fn a_check_of_several_gives_the_places_of_a_key_back_when_dropped() {
    let slots = keyed(&Algorithm::Concurrency { max: 1 }, 10);
    let limit: &dyn Enforce = &*slots;
    let (key, ask) = (hash("key"), Ask::ONE);
    for _ in 0..2 {
        let checked = check_all(&[Asked::new(limit, key, ask)], START).expect("one limit");
        assert!(checked.is_allowed());
        assert_eq!(slots.peek(key, START, &ask).remaining, 0);
    }
    assert_eq!(slots.peek(key, START, &ask).remaining, 1);
}
