//! New numbers hold from the moment they are set, for every key and its override.

use core::time::Duration;

use tidegate::{Algorithm, Ask, KeyHasher, ManualClock, OnChange, Quota};

use super::{START, limiter};
use crate::door::keyed;

// shows: F4 (the old rate does not go on until a key is next asked)
#[test]
fn new_numbers_hold_from_the_moment_they_are_set() {
    let fast = Quota::per_second(1_000);
    let slow = [
        Quota::per_second(1).burst(1_000),
        Quota::new(7, Duration::from_secs(7)).burst(1_000),
    ];
    for slow in slow {
        for max_keys in [100, 100_000] {
            for (before, after, passes) in [(fast, slow, 1), (slow, fast, 1_000)] {
                let clock = ManualClock::new(START);
                let mut limiter = limiter(before.into(), &clock);
                assert!(limiter.check_ask("key", Ask::new(1_000)).is_allowed());
                limiter.set_limit(after, max_keys).expect("a valid limit");
                clock.advance(Duration::from_secs(1));
                let now = limiter.peek("key", Ask::ONE);
                assert_eq!(now.remaining, passes, "{before:?} {after:?}");
            }
        }
    }
}

// shows: F4 (a store that is taken over little by little)
#[test]
fn new_numbers_hold_from_the_moment_they_are_set_also_where_keys_are_taken_over_later() {
    let key = KeyHasher::with_keys(1, 2).hash("key");
    let fast = Algorithm::TokenBucket(Quota::per_second(1_000));
    // Of the same kind for more keys, of another width, and of another kind.
    let slow = [
        (Algorithm::TokenBucket(Quota::per_second(1).burst(1_000)), 1),
        (
            Algorithm::TokenBucket(Quota::new(7, Duration::from_secs(7)).burst(1_000)),
            1,
        ),
        (
            Algorithm::FixedWindow {
                permits: 1_000,
                window: Duration::from_hours(24),
            },
            0,
        ),
    ];
    for (slow, passes) in slow {
        let old = keyed(&fast, 100);
        assert!(old.check(key, START, &Ask::new(1_000)).0.is_allowed());
        let new = keyed(&slow, 100_000);
        new.succeed(old.drain().expect("no gate"), START, OnChange::KeepUsed);
        let later = START.after(Duration::from_secs(1));
        let now = new.peek(key, later, &Ask::ONE);
        assert_eq!(now.remaining, passes, "{slow:?}");
    }
}

// shows: F4, A10 (a key moves from a limit to its override and back: nothing is gained or lost)
#[test]
fn a_key_between_a_limit_and_its_override_has_used_what_it_used() {
    let usual = Algorithm::TokenBucket(Quota::per_minute(60));
    let more = Algorithm::TokenBucket(Quota::per_minute(600));
    let limits = tidegate::enforcers(&[usual, more], 10).expect("one kind");
    let key = KeyHasher::with_keys(1, 2).hash("key");
    let later = START.after(Duration::from_hours(24));
    assert!(limits[1].check(key, START, &Ask::new(600)).0.is_allowed());
    assert!(limits[0].check(key, later, &Ask::new(10)).0.is_allowed());
    assert_eq!(limits[1].peek(key, later, &Ask::ONE).remaining, 590);
    assert_eq!(limits[0].peek(key, later, &Ask::ONE).remaining, 50);
}

// shows: F4, A10 (overrides)
#[test]
fn a_key_with_an_override_keeps_it_when_the_store_is_made_for_more_keys() {
    let usual = Algorithm::TokenBucket(Quota::per_second(10));
    let more = Algorithm::TokenBucket(Quota::per_second(1_000).burst(10_000));
    let both = |max_keys| tidegate::enforcers(&[usual, more], max_keys).expect("one kind");
    let (old, new) = (both(10), both(100_000));
    let key = KeyHasher::with_keys(1, 2).hash("key");
    assert!(old[1].check(key, START, &Ask::new(9_000)).0.is_allowed());
    new[0].succeed(old[0].drain().expect("no gate"), START, OnChange::KeepUsed);
    let later = START.after(Duration::from_secs(1));
    assert_eq!(new[1].peek(key, later, &Ask::ONE).remaining, 2_000);
}
