//! A change was lost, or lost what was counted.

use tidegate::Algorithm;

use super::*;

// shows: F4
#[test]
fn bucket4j_539_a_changed_limit_is_not_ignored_by_keys_that_exist() {
    let (builder, clock) = keyed(Quota::per_second(10));
    let mut limiter = builder.build().expect("valid");
    assert!(limiter.check("key").is_allowed());
    limiter
        .set_limit(Quota::per_second(1_000), 100)
        .expect("valid");
    assert_eq!(limiter.peek("key", Ask::ONE).remaining, 999);
    limiter.set_limit(Quota::per_second(2), 100).expect("valid");
    assert_eq!(limiter.peek("key", Ask::ONE).remaining, 1);
    clock.advance(seconds(1));
    assert_eq!(limiter.peek("key", Ask::ONE).remaining, 2);
}

// shows: F4
#[test]
fn resilience4j_2489_after_lowering_a_limit_permits_come_back() {
    let (builder, clock) = keyed(Quota::per_second(100));
    let mut limiter = builder.build().expect("valid");
    assert!(limiter.check_ask("key", Ask::new(100)).is_allowed());
    limiter
        .set_limit(Quota::per_second(10), 100)
        .expect("valid");
    let denied = limiter.check("key");
    // Ninety too many have been taken: nine seconds until one is there.
    assert_eq!(denied.retry_after(), Some(millis(9_100)));
    clock.advance(millis(9_100));
    assert!(limiter.check("key").is_allowed());
    clock.advance(seconds(1));
    assert_eq!(limiter.peek("key", Ask::ONE).remaining, 10);
}

// shows: F4
#[test]
fn sentinel_1965_setting_a_limit_again_gives_no_new_burst() {
    let (builder, _) = keyed(Quota::per_day(5));
    let mut limiter = builder.build().expect("valid");
    let mut passed = 0;
    for turn in 0..50 {
        passed += (0..10)
            .filter(|_| limiter.check("key").is_allowed())
            .count();
        let permits = 5 + turn % 2;
        limiter
            .set_limit(Quota::per_day(permits), 100)
            .expect("valid");
    }
    assert_eq!(passed, 6, "five, and one when it is six");
}

// shows: F4
#[test]
fn gubernator_a_key_at_zero_recovers_when_the_limit_is_raised_or_permits_come_back() {
    let (builder, _) = keyed(Algorithm::FixedWindow {
        permits: 5,
        window: seconds(86_400),
    });
    let mut limiter = builder.build().expect("valid");
    let (_, receipt) = limiter.reserve("key", Ask::new(5));
    assert!(limiter.check("key").is_denied());
    let raised = Algorithm::FixedWindow {
        permits: 7,
        window: seconds(86_400),
    };
    limiter.set_limit(raised, 1_000_000).expect("valid");
    assert_eq!(limiter.peek("key", Ask::ONE).remaining, 2);
    limiter.give_back(receipt.expect("taken")).expect("its own");
    assert_eq!(limiter.peek("key", Ask::ONE).remaining, 7);
}

// shows: F4, B3 (local)
#[test]
fn caddy_ratelimit_raising_a_log_holds_at_once_and_counts_what_was() {
    let log = |permits| Algorithm::SlidingLog {
        permits,
        window: seconds(60),
    };
    let (builder, clock) = keyed(log(10));
    let mut limiter = builder.build().expect("valid");
    assert!(limiter.check_ask("key", Ask::new(10)).is_allowed());
    clock.advance(seconds(30));
    limiter.set_limit(log(25), 100).expect("valid");
    assert_eq!(limiter.peek("key", Ask::ONE).remaining, 15);
    limiter.set_limit(log(3), 100).expect("valid");
    let denied = limiter.check("key");
    assert_eq!(
        (denied.remaining, denied.retry_after()),
        (0, Some(seconds(30)))
    );
}

// shows: F4
#[test]
fn limitador_522_every_change_there_is_is_survived() {
    let quota = Quota::per_minute(60);
    let (permits, window) = (60, seconds(60));
    let max_debt = seconds(3_600);
    let limits = [
        Algorithm::TokenBucket(quota),
        Algorithm::TokenBucket(Quota::per_second(999_999_937)),
        Algorithm::TokenBucket(Quota::per_second(0)),
        Algorithm::FixedWindow { permits, window },
        Algorithm::SlidingLog { permits, window },
        Algorithm::SmoothBursty { quota, max_debt },
        Algorithm::SmoothWarmUp {
            quota,
            warm_up: seconds(10),
            cold_factor: 3,
            max_debt,
        },
    ];
    for from in limits {
        for to in limits {
            let (builder, clock) = keyed(from);
            let mut limiter = builder.build().expect("valid");
            let _ = limiter.check_ask("key", Ask::new(3).within(max_debt));
            clock.advance(seconds(1));
            limiter.set_limit(to, 10).expect("valid");
            let now = limiter.peek("key", Ask::ONE);
            assert!(now.remaining <= now.limit, "{from:?} {to:?}");
            clock.advance(seconds(86_400));
            let rested = limiter.check_ask("key", Ask::new(1).within(max_debt));
            let zero = to == Algorithm::TokenBucket(Quota::per_second(0));
            assert_eq!(rested.is_denied(), zero, "{from:?} {to:?}");
            limiter.set_limit(from, 100_000).expect("valid");
            let _ = limiter.check("key");
        }
    }
}
