//! Limits that their callers define, change and drop while they are used.

use core::future::Future;
use core::time::Duration;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use tidegate::{
    Algorithm, Clock, Defined, Definition, Limits, LimitsError, ManualClock, OnChange, Quota,
    QuotaError, Timestamp, check_all,
};
use tidegate_sim::strategy::cases;

const START: Timestamp = Timestamp::from_secs(1_700_000_000);

fn limits() -> (Limits<ManualClock>, ManualClock) {
    let clock = ManualClock::new(START);
    (Limits::with_clock(clock.clone()), clock)
}

fn places(max: u64) -> Definition {
    Definition::new(Algorithm::Concurrency { max })
}

/// How many of a hundred pass at once.
fn passed(limits: &Limits<ManualClock>, name: &str, key: &str) -> usize {
    (0..100)
        .filter(|_| limits.check(name, key).expect("defined").is_allowed())
        .count()
}

// shows: B11 (from the library), C3
#[test]
fn set_once_stays_and_set_again_holds_at_once() {
    let (limits, _) = limits();
    let of = |permits| Definition::new(Quota::per_hour(permits));
    assert_eq!(limits.define_once("l", of(10)), Ok(Defined::New));
    assert_eq!(passed(&limits, "l", "a"), 10);
    assert_eq!(limits.define_once("l", of(50)), Ok(Defined::Kept));
    assert_eq!(passed(&limits, "l", "a"), 0);
    assert_eq!(limits.define("l", of(30)), Ok(Defined::Changed));
    assert_eq!(passed(&limits, "l", "a"), 20, "ten are used");
    assert_eq!(limits.define("l", of(30)), Ok(Defined::Kept));
    let reset = of(5).on_change(OnChange::Reset);
    assert_eq!(limits.define("l", reset), Ok(Defined::Changed));
    assert_eq!(passed(&limits, "l", "a"), 5);
    // Another kind, and a store for many more keys.
    let window = Duration::from_hours(1);
    let log = Algorithm::SlidingLog {
        permits: 20,
        window,
    };
    let log = Definition::new(log).max_keys(5_000_000);
    assert_eq!(limits.define("l", log), Ok(Defined::Changed));
    assert_eq!(passed(&limits, "l", "a"), 15);
    assert_eq!(limits.definition("l"), Some(log));
}

// shows: B11 (from the library)
#[test]
fn a_dropped_limit_is_unknown_and_begins_anew() {
    let (limits, _) = limits();
    let ten = Definition::new(Quota::per_hour(10));
    limits.define("l", ten).expect("valid");
    let (_, receipt) = limits.reserve("l", "a", 4).expect("defined");
    assert!(limits.remove("l") && !limits.remove("l"));
    let unknown = Err(LimitsError::Unknown("l".to_owned()));
    assert_eq!(limits.check("l", "a"), unknown);
    assert_eq!(limits.peek("l", "a", 1), unknown);
    limits.define("l", ten).expect("valid");
    assert!(
        limits.give_back("l", receipt.expect("taken")).is_err(),
        "it is of another one"
    );
    assert_eq!(passed(&limits, "l", "a"), 10);
    assert_eq!(limits.reset("l", "a"), Ok(true));
    assert_eq!(passed(&limits, "l", "a"), 10);
    assert_eq!(limits.names(), ["l"]);
}

// shows: B11 (from the library), B8
#[test]
fn guards_outlive_what_becomes_of_their_limit() {
    let (limits, _) = limits();
    limits.define("l", places(2)).expect("valid");
    let permit = |limits: &Limits<_>| limits.try_acquire_permit("l", "a", 1).expect("defined").1;
    let (first, second) = (permit(&limits), permit(&limits));
    assert!(first.is_some() && second.is_some() && permit(&limits).is_none());
    limits.define("l", places(3)).expect("valid");
    let third = permit(&limits);
    assert!(third.is_some() && permit(&limits).is_none());
    assert_eq!(limits.reset("l", "a"), Ok(false));
    let wait = limits.acquire_permit_within("l", "a", 1, Duration::ZERO);
    assert!(wait.expect("defined").1.is_none());
    drop(first);
    assert!(permit(&limits).is_some());
    // A rate in its place hands out none, and those that are out come back to nowhere.
    limits
        .define("l", Definition::new(Quota::per_hour(1)))
        .expect("valid");
    assert!(limits.check("l", "a").expect("defined").is_allowed());
    assert!(matches!(
        limits.try_acquire_permit("l", "a", 1),
        Err(LimitsError::HandsOutNone(_))
    ));
    limits.define("l", places(1)).expect("valid");
    assert!(matches!(
        limits.check("l", "a"),
        Err(LimitsError::HandsOutGuards(_))
    ));
    drop((second, third));
    assert_eq!(limits.peek("l", "a", 1).expect("defined").remaining, 1);
}

// shows: B11 (from the library), B8
#[test]
fn who_waits_for_a_limit_that_is_dropped_is_refused() {
    let (limits, _) = limits();
    for removes in [true, false] {
        limits.define("l", places(2)).expect("valid");
        let inside = limits.try_acquire_permit("l", "a", 1).expect("defined").1;
        assert!(inside.is_some());
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| {
                let minute = Duration::from_mins(1);
                limits
                    .acquire_permit_within("l", "a", 2, minute)
                    .expect("defined")
            });
            // One place is free until it stands in line for two.
            while limits.peek("l", "a", 0).expect("defined").remaining > 0 {
                std::thread::yield_now();
            }
            if removes {
                limits.remove("l");
            } else {
                let rate = Definition::new(Quota::per_hour(1));
                limits.define("l", rate).expect("valid");
            }
            assert!(waits.join().expect("no panic").1.is_none());
        });
        limits.remove("l");
    }
}

// shows: B11 (from the library), B8
#[test]
fn places_by_name_have_lines_as_long_as_is_said_and_say_who_is_inside() {
    let (limits, _) = limits();
    limits.define("l", places(2)).expect("valid");
    let inside = limits.acquire_permit("l", "a", 2).expect("defined").1;
    assert_eq!(limits.in_use("l", "a"), Ok(2));
    assert_eq!(limits.in_use("l", "b"), Ok(0));
    let short = places(2).queue_length(1);
    assert_eq!(limits.define("l", short), Ok(Defined::Changed));
    assert_eq!(limits.define("l", short), Ok(Defined::Kept));
    // A line of one has no room for two: it is told at once.
    let refused = limits.acquire_permit("l", "a", 2).expect("defined");
    assert!(refused.0.is_on_release());
    assert_eq!(limits.drained_within("l", Duration::ZERO), Ok(false));
    limits.define("l", places(0)).expect("valid");
    let never = limits.acquire_permit("l", "a", 1).expect("defined");
    assert!(never.0.is_denied() && never.1.is_none());
    let drained = limits.drained("l").expect("defined");
    // With more places, who waits goes in as soon as they are free.
    limits.define("l", places(3)).expect("valid");
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| limits.acquire_permit("l", "a", 2).expect("defined").1);
        while limits.peek("l", "a", 0).expect("defined").remaining > 0 {
            std::thread::yield_now();
        }
        drop(inside);
        assert!(waits.join().expect("no panic").is_some());
    });
    assert_eq!(limits.drained_within("l", Duration::from_mins(1)), Ok(true));
    let waker = std::task::Waker::noop();
    let mut context = std::task::Context::from_waker(waker);
    assert!(std::pin::pin!(drained).poll(&mut context).is_ready());
    limits
        .define("l", Definition::new(Quota::per_hour(1)))
        .expect("valid");
    let rate = LimitsError::HandsOutNone("l".to_owned());
    assert_eq!(limits.in_use("l", "a"), Err(rate.clone()));
    assert_eq!(limits.drained_within("l", Duration::ZERO), Err(rate));
}

// shows: A6, B11 (from the library), B8
#[test]
fn limits_by_name_are_asked_as_one_with_others() {
    let (limits, clock) = limits();
    limits.define("slots", places(1)).expect("valid");
    limits
        .define("rate", Definition::new(Quota::per_hour(2)))
        .expect("valid");
    let all = |user: &str| {
        let asks = [
            limits.ask("slots", user, 1).expect("defined"),
            limits.ask("rate", "all", 1).expect("defined"),
        ];
        check_all(&asks, clock.now()).expect("two limits")
    };
    let ann = all("ann");
    assert!(ann.is_allowed() && limits.in_use("slots", "ann") == Ok(1));
    assert!(!all("ann").is_allowed(), "no place");
    assert_eq!(limits.peek("rate", "all", 1).expect("defined").remaining, 1);
    // What was asked for outlives the limit's name, and comes back.
    limits.define("slots", places(2)).expect("valid");
    let again = all("ann");
    assert!(again.is_allowed() && limits.in_use("slots", "ann") == Ok(2));
    assert!(!all("ben").is_allowed(), "no permit");
    assert_eq!(limits.in_use("slots", "ben"), Ok(0));
    drop((ann, again));
    assert_eq!(limits.in_use("slots", "ann"), Ok(0));
    assert!(matches!(
        limits.ask("none", "a", 1),
        Err(LimitsError::Unknown(_))
    ));
}

// A store that another has taken over meanwhile is asked through the one after it.
// shows: A6, F4
#[test]
fn what_is_asked_of_a_name_before_it_changes_is_counted_after() {
    let (limits, clock) = limits();
    let of = |max_keys| Definition::new(Quota::per_hour(10)).max_keys(max_keys);
    limits.define("l", of(100)).expect("valid");
    let asked = limits.ask("l", "a", 4).expect("defined");
    limits.define("l", of(1_000_000)).expect("valid");
    let checked = check_all(&[asked], clock.now()).expect("one limit");
    assert!(checked.is_allowed());
    assert_eq!(limits.peek("l", "a", 1).expect("defined").remaining, 6);
    checked.give_back(clock.now());
    assert_eq!(limits.peek("l", "a", 1).expect("defined").remaining, 10);
}

// shows: B11 (from the library)
#[test]
fn a_batch_of_a_name_is_answered_as_one_by_one() {
    let (limits, _) = limits();
    for name in ["one by one", "batch"] {
        limits
            .define(name, Definition::new(Quota::per_hour(7)))
            .expect("valid");
    }
    let keys: Vec<u32> = (0..100).map(|n| n * n % 13).collect();
    let one_by_one: Vec<_> = keys
        .iter()
        .map(|key| limits.check_ask("one by one", key, 2).expect("defined"))
        .collect();
    let mut answers = Vec::new();
    limits
        .check_batch("batch", &keys, 2, &mut answers)
        .expect("defined");
    let batch: Vec<_> = answers.iter().map(|answer| answer.decision).collect();
    assert_eq!(batch, one_by_one);
    let allowed = batch.iter().filter(|one| one.is_allowed()).count();
    assert!(0 < allowed && allowed < keys.len(), "{allowed}");
    limits.define("slots", places(1)).expect("valid");
    assert!(limits.check_batch("slots", &keys, 1, &mut answers).is_err());
    assert_eq!(answers.len(), keys.len());
    assert!(limits.allocated_bytes("batch").expect("defined") > 0);
}

#[test]
fn what_is_no_limit_changes_nothing() {
    let (limits, _) = limits();
    let limits = limits.max_limits(1);
    limits
        .define("l", Definition::new(Quota::per_hour(10)))
        .expect("valid");
    let none = Definition::new(Quota::per_hour(10).burst(0));
    assert!(matches!(
        limits.define("l", none),
        Err(LimitsError::Quota(QuotaError::BurstAgainstRate { .. }))
    ));
    assert!(limits.define("other", none).is_err());
    assert_eq!(
        limits.define("other", places(1)),
        Err(LimitsError::TooMany(1))
    );
    assert_eq!(passed(&limits, "l", "a"), 10);
}

// shows: B10 (sync)
#[test]
fn who_waits_for_a_named_rate_waits_as_told() {
    let (limits, clock) = limits();
    limits
        .define("l", Definition::new(Quota::per_second(10).burst(1)))
        .expect("valid");
    for _ in 0..3 {
        let decision = limits.acquire_within("l", "a", 1, Duration::from_secs(1));
        assert!(decision.expect("defined").is_allowed());
    }
    // One that never can be is refused at once.
    let asked = clock.now();
    let never = limits.acquire("l", "a", 2).expect("defined");
    assert!(never.retry_after().is_none() && clock.now() == asked);
    assert!(limits.acquire("l", "a", 1).expect("defined").is_allowed());
    // A manual clock is moved by who sleeps.
    assert_eq!(limits.peek("l", "a", 1).expect("defined").remaining, 0);
    clock.advance(Duration::from_secs(1));
    let refused = limits.acquire_within("l", "a", 2, Duration::from_secs(9));
    assert!(refused.expect("defined").is_denied());
}

// Numbers go up and down while others take: nothing is won by it.
// shows: B11 (from the library), F4
#[test]
fn changes_while_others_take_lose_and_win_nothing() {
    let (limits, _) = limits();
    let of = |burst| Definition::new(Quota::per_day(1).burst(burst));
    limits.define("l", of(1_000)).expect("valid");
    let taken = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..2_000 {
                    let allowed = limits.check("l", "k").expect("defined").is_allowed();
                    taken.fetch_add(u64::from(allowed), Ordering::SeqCst);
                }
            });
        }
        for n in 0..200 {
            // In the same store, in one of another kind, in one for many more keys.
            let interval = Algorithm::IntervalBucket {
                quota: Quota::per_day(1).burst(1_000),
                aligned: false,
            };
            let next = match n % 4 {
                1 => Definition::new(interval),
                2 => of(1_000).max_keys(10),
                _ => of(1_000 - n % 3),
            };
            limits.define("l", next).expect("valid");
        }
    });
    assert!(taken.load(Ordering::SeqCst) <= 1_000);
}

proptest! {
    #![proptest_config(cases(300))]

    // proves: B11 (from the library)
    #[test]
    fn whatever_is_defined_dropped_and_taken_what_is_left_is_what_one_counts(
        steps in prop::collection::vec((0..3_usize, 0..4_u8, 1..50_u64), 1..60),
    ) {
        let (limits, _) = limits();
        let names = ["a", "b", "c"];
        // What each is, and what has been used of it.
        let mut model: [Option<(u64, u64)>; 3] = [None; 3];
        for (which, act, number) in steps {
            let (name, known) = (names[which], &mut model[which]);
            match act {
                0 => {
                    let definition = Definition::new(Quota::per_day(number));
                    let expected = match known {
                        None => Defined::New,
                        Some((permits, _)) if *permits == number => Defined::Kept,
                        Some(_) => Defined::Changed,
                    };
                    prop_assert_eq!(limits.define(name, definition), Ok(expected));
                    *known = Some((number, known.map_or(0, |(_, used)| used)));
                }
                1 => prop_assert_eq!(limits.remove(name), known.take().is_some()),
                _ => match known {
                    None => prop_assert!(limits.check_ask(name, "k", number).is_err()),
                    Some((permits, used)) => {
                        let decision = limits.check_ask(name, "k", number).expect("defined");
                        let allowed = decision.is_allowed();
                        prop_assert_eq!(allowed, *used + number <= *permits);
                        *used += if allowed { number } else { 0 };
                    }
                },
            }
        }
    }
}
