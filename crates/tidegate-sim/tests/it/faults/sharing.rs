//! One paid for another, or two took the same.

use std::sync::Barrier;
use std::thread;

use tidegate::{Algorithm, ConcurrencyLimiter, KeyHasher, check_all};

use super::*;

// shows: A6
#[test]
fn envoy_ratelimit_1060_blocked_caller_drains_no_shared_budget() {
    let (builder, clock) = keyed(Quota::per_day(10));
    let tenants = builder.build().expect("valid");
    let organisation = Limiter::with_clock(Quota::per_day(100), clock).expect("valid");
    let call = |tenant: &str| {
        let asks = [organisation.ask(1), tenants.ask(tenant, 1)];
        check_all(&asks, START).expect("two limits").is_allowed()
    };
    let passed = (0..1_010).filter(|_| call("noisy")).count();
    assert_eq!(passed, 10);
    assert_eq!(organisation.peek(Ask::ONE).remaining, 90);
    assert_eq!((0..10).filter(|_| call("quiet")).count(), 10);
}

// shows: A5 (keys apart)
#[test]
fn erpc_1058_two_limits_with_equal_keys_do_not_share_a_counter() {
    let (per_second, _) = keyed(Quota::per_day(2));
    let (per_day, _) = keyed(Quota::per_day(5));
    let tight = per_second.build().expect("valid");
    let wide = per_day.build().expect("valid");
    for _ in 0..2 {
        assert!(tight.check("same").is_allowed() && wide.check("same").is_allowed());
    }
    assert!(tight.check("same").is_denied());
    assert_eq!(wide.peek("same", Ask::ONE).remaining, 3);
    // And parts of a key do not run together.
    let hasher = KeyHasher::random();
    assert_ne!(hasher.hash(&("a", "b_c")), hasher.hash(&("a_b", "c")));
    assert_ne!(hasher.hash(&("ab", "")), hasher.hash(&("a", "b")));
}

// shows: A2 (refusing), H1 (bounded memory)
#[test]
fn sentinel_628_many_at_once_do_not_pass_between_check_and_count() {
    let threads = 8;
    let (rate, _) = timed(Quota::per_day(100));
    let (bursty, _) = timed(Algorithm::SmoothBursty {
        quota: Quota::per_day(100),
        max_debt: seconds(86_400),
    });
    let gate = ConcurrencyLimiter::new(3).expect("valid");
    let barrier = Barrier::new(threads);
    let passed: Vec<_> = thread::scope(|scope| {
        let work = || {
            barrier.wait();
            let rate = (0..1_000).filter(|_| rate.check().is_allowed()).count();
            // Of callers that come at one instant, one goes on at once.
            let bursty = usize::from(bursty.check().is_allowed());
            let permits: Vec<_> = (0..10).map(|_| gate.try_acquire(1).1).collect();
            barrier.wait();
            (rate, bursty, permits.iter().flatten().count())
        };
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        all.into_iter()
            .map(|one| one.join().expect("no panic"))
            .collect()
    });
    assert_eq!(passed.iter().map(|one| one.0).sum::<usize>(), 100);
    assert_eq!(passed.iter().map(|one| one.1).sum::<usize>(), 1);
    assert_eq!(passed.iter().map(|one| one.2).sum::<usize>(), 3);
    assert_eq!(gate.peek(1).remaining, 3);
}

// shows: A7 (cost and peek and give back), B3 (local)
#[test]
fn redisson_7329_what_is_refunded_is_refunded_from_when_it_was_taken() {
    let (builder, clock) = keyed(Algorithm::SlidingLog {
        permits: 10,
        window: seconds(1),
    });
    let limiter = builder.build().expect("valid");
    let take = |permits| limiter.reserve("key", Ask::new(permits));
    assert!(take(5).0.is_allowed());
    let (_, refunded) = take(5);
    limiter
        .give_back(refunded.expect("taken"))
        .expect("its own");
    clock.advance(millis(900));
    assert!(take(5).0.is_allowed());
    clock.advance(millis(100));
    // Not fifteen in the last second.
    assert!(take(10).0.is_denied());
    assert!(take(5).0.is_allowed());
}

// shows: A1
#[test]
fn spring_cloud_gateway_2412_clocks_that_disagree_do_not_refill_twice() {
    let hasher = KeyHasher::with_keys(1, 2);
    let mut limits =
        tidegate::enforcers(&[Quota::per_second(10).burst(10).into()], 10).expect("one limit");
    let limit = limits.pop().expect("one limit");
    let mut passed = 0;
    // Two nodes 50 ms apart, in turn, for twenty seconds.
    for turn in 0..20_000_u64 {
        let skew = if turn % 2 == 0 { millis(50) } else { millis(0) };
        let now = START.after(millis(turn)).after(skew);
        let (decision, _) = limit.check(hasher.hash("key"), now, &Ask::ONE);
        passed += u32::from(decision.is_allowed());
    }
    assert!((209..=211).contains(&passed), "{passed}");
}

// shows: A5 (keys apart), H1 (bounded memory)
#[test]
fn keys_share_neither_permits_nor_fate() {
    let (builder, _) = keyed(Quota::per_day(2));
    let limiter = builder.max_keys(10_000).build().expect("valid");
    for turn in 0..3 {
        for key in 0..5_000_u32 {
            assert_eq!(limiter.check(&key).is_allowed(), turn < 2);
        }
    }
}
