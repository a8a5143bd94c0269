//! What stays when a limit changes, by choice: between all kinds of limits.

use core::num::NonZeroU32;
use core::time::Duration;

use proptest::prelude::*;
use tidegate::{
    Algorithm, Ask, Asked, Decision, Enforce, KeyHasher, KeyedLimiter, ManualClock, OnChange,
    Quota, Timestamp, changed, check_all,
};
use tidegate_sim::strategy::cases;

const START: Timestamp = Timestamp::from_secs(1_700_000_000);

/// A limit of so many permits at once, which come back in an hour at the soonest.
fn limit() -> impl Strategy<Value = (u64, Algorithm)> {
    let window = Duration::from_hours(24);
    (1..1_000_u64, 0..6_u8).prop_map(move |(permits, kind)| {
        let quota = Quota::new(permits, window);
        let algorithm = match kind {
            0 => Algorithm::TokenBucket(quota),
            1 => Algorithm::TokenBucket(
                Quota::new(999_999_937, Duration::from_hours(9_000)).burst(permits),
            ),
            2 => Algorithm::FixedWindow { permits, window },
            3 => Algorithm::SlidingLog { permits, window },
            4 => Algorithm::SlidingWindow {
                permits,
                window,
                parts: NonZeroU32::new(7).expect("not 0"),
            },
            _ => Algorithm::IntervalBucket {
                quota,
                aligned: false,
            },
        };
        (permits, algorithm)
    })
}

/// What is left of `new` where `used` of `old` were taken, said once more.
fn left(on_change: OnChange, used: u64, old: u64, new: u64) -> u64 {
    let left = old - used;
    match on_change {
        _ if used == 0 => new,
        OnChange::KeepUsed => new.saturating_sub(used),
        OnChange::AddGrowth if new > old => left + (new - old),
        OnChange::KeepRemaining | OnChange::AddGrowth => left.min(new),
        OnChange::Proportional => left * new / old,
        OnChange::Reset => new,
    }
}

fn choice() -> impl Strategy<Value = OnChange> {
    prop_oneof![
        Just(OnChange::KeepUsed),
        Just(OnChange::KeepRemaining),
        Just(OnChange::Proportional),
        Just(OnChange::AddGrowth),
        Just(OnChange::Reset),
    ]
}

proptest! {
    #![proptest_config(cases(2_000))]

    // proves: B5 (change at run time), F4
    #[test]
    fn what_stays_is_what_was_chosen_whatever_a_limit_becomes(
        (old, from) in limit(),
        (new, to) in limit(),
        part in 0..=1_000_u64,
        on_change in choice(),
        more_keys in any::<bool>(),
    ) {
        let clock = ManualClock::new(START);
        let builder = KeyedLimiter::builder(from).hasher(KeyHasher::with_keys(1, 2));
        let mut limiter = builder.clock(clock).max_keys(10).build().expect("valid");
        let used = old * part / 1_000;
        prop_assert!(limiter.check_ask("k", used).is_allowed());
        // A store for many more keys is another one, which takes this one over.
        let max_keys = if more_keys { 5_000 } else { 10 };
        limiter.set_limit_and(to, max_keys, on_change).expect("valid");
        // The same numbers are no change.
        let expected = if from == to { new - used } else { left(on_change, used, old, new) };
        let peeked = limiter.peek("k", 1);
        // The two buckets count in parts of a permit: as if up to one more were used.
        prop_assert!(
            peeked.remaining == expected || peeked.remaining + 1 == expected,
            "{} of {expected}", peeked.remaining
        );
        prop_assert_eq!(limiter.peek("other", 1).remaining, new);
    }
}

// Whoever still holds the limit of before is answered by the one after it.
// shows: F4
#[test]
fn what_has_been_taken_over_is_not_counted_a_second_time() {
    let window = Duration::from_hours(24);
    let log = Algorithm::SlidingLog {
        permits: 100,
        window,
    };
    for (to, max_keys) in [(log, 10), (Quota::per_day(100).into(), 5_000)] {
        let from = tidegate::enforcers(&[Quota::per_day(100).into()], 10);
        let old = from.expect("valid").remove(0);
        let key = KeyHasher::with_keys(1, 2).hash("k");
        let passed = |limit: &dyn Enforce, asks| {
            let checks = (0..asks).map(|_| limit.check(key, START, &Ask::ONE).0);
            checks.filter(Decision::is_allowed).count()
        };
        assert_eq!(passed(&*old, 60), 60);
        let new = changed(&*old, &[to], max_keys, START, OnChange::KeepUsed);
        let new = new.expect("valid").remove(0);
        assert_eq!(passed(&*old, 10), 10, "nothing has been taken over yet");
        new.adopt_all(START);
        assert_eq!(passed(&*old, 10), 10);
        assert_eq!(new.peek(key, START, &Ask::ONE).remaining, 20);
        assert_eq!(old.peek(key, START, &Ask::ONE).remaining, 20);
        // Also where several are asked as one.
        let asked = Asked::new(&*old, key, Ask::ONE);
        let checked = check_all(&[asked], START).expect("one");
        assert!(checked.is_allowed());
        assert_eq!(new.peek(key, START, &Ask::ONE).remaining, 19);
        checked.give_back(START);
        assert_eq!(passed(&*old, 100) + passed(&*new, 100), 20);
        assert!(old.reset(key, START));
        assert_eq!(passed(&*new, 200), 100);
        drop(new);
        assert_eq!(passed(&*old, 10), 0);
    }
}

// shows: B5 (change at run time)
#[test]
fn a_reset_reaches_keys_that_are_asked_only_after_a_later_change() {
    let clock = ManualClock::new(START);
    let first = Quota::per_day(10);
    let builder = KeyedLimiter::builder(first).clock(clock);
    let mut limiter = builder.build().expect("valid");
    for key in ["a", "b"] {
        assert!(limiter.check_ask(key, 10).is_allowed());
    }
    limiter
        .set_limit_and(first.burst(20), 10, OnChange::Reset)
        .expect("valid");
    assert!(limiter.check_ask("a", 20).is_allowed());
    // And back to the first numbers: `a` has used 20 of them, `b` nothing.
    limiter.set_limit(first, 10).expect("valid");
    assert!(limiter.check("a").is_denied());
    assert_eq!(limiter.peek("b", 1).remaining, 10);
}
