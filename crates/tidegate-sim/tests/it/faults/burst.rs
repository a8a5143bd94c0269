//! More passed than should have, or less.

use tidegate::{Algorithm, KeyedConcurrencyLimiter, Retry};

use super::*;

// shows: A1, B5 (greedy refill)
#[test]
fn guava_5372_burst_after_idling_is_what_was_asked_for_and_can_be_one() {
    for burst in [1, 2, 5] {
        let (limiter, clock) = timed(Quota::per_second(5).burst(burst));
        clock.advance(seconds(1_000));
        assert_eq!(pass(&limiter, 100), burst);
    }
}

// shows: A1, A7 (cost and peek and give back)
#[test]
fn guava_7130_five_thousand_permits_at_five_a_second_are_refused() {
    let (limiter, _) = timed(Quota::per_second(5));
    let decision = limiter.check_ask(Ask::new(5_000));
    assert_eq!(decision.retry(), Some(Retry::Never));
    assert!(limiter.check().is_allowed(), "nobody else pays for it");
    // Pay later: as far as the debt that was allowed, and no further.
    let (limiter, _) = timed(Algorithm::SmoothBursty {
        quota: Quota::per_second(5),
        max_debt: seconds(10),
    });
    assert_eq!(
        limiter.check_ask(Ask::new(5_000)).retry(),
        Some(Retry::Never)
    );
    assert!(limiter.check_ask(Ask::new(50)).is_allowed());
}

// shows: A1
#[test]
fn guava_5290_eighty_thousand_a_second_are_not_eighty_three() {
    let (limiter, clock) = timed(Quota::per_second(80_000).burst(2));
    let mut passed = 0;
    for _ in 0..1_000_000 {
        passed += pass(&limiter, 2);
        clock.advance(Duration::from_micros(1));
    }
    assert_eq!(passed, 2 + 79_999);
    // Above a million a second nothing is free.
    let (limiter, clock) = timed(Quota::per_second(3_000_000).burst(2));
    let mut passed = 0;
    for _ in 0..1_000_000 {
        passed += pass(&limiter, 2);
        clock.advance(Duration::from_nanos(100));
    }
    assert_eq!(passed, 2 + 299_999);
}

// shows: A1, H1 (bounded memory)
#[test]
fn bucket4j_51_long_idle_neither_overflows_nor_refuses() {
    for quota in [Quota::per_second(1_000_000_007), Quota::per_month(1)] {
        let (limiter, clock) = timed(quota);
        assert!(
            limiter
                .check_ask(Ask::new(quota.burst_permits()))
                .is_allowed()
        );
        clock.advance(seconds(60 * 365 * 86_400));
        let all = limiter.check_ask(Ask::new(quota.burst_permits()));
        assert!(all.is_allowed() && all.remaining == 0);
        assert!(limiter.check().is_denied());
    }
}

// shows: A1, B4 (meter)
#[test]
fn throttlecrab_idle_credit_never_lets_seventeen_through_a_burst_of_ten() {
    let (limiter, clock) = timed(Quota::per_second(1).burst(10));
    assert_eq!(pass(&limiter, 3), 3);
    for idle in [1, 2, 3, 7, 20] {
        clock.advance(seconds(idle));
        let now = limiter.peek(Ask::ONE);
        assert!(now.remaining <= 10);
        assert_eq!(pass(&limiter, 100), now.remaining);
    }
}

// shows: A1, B4 (meter)
#[test]
fn redis_cell_50_remaining_above_limit_and_no_limit_at_high_rates() {
    for rate in [6_000, 8_000, 10_000, 1_000_000, 10_000_000, 2_000_000_000] {
        let quota = Quota::per_second(rate);
        let (limiter, _) = timed(quota);
        for taken in 1..=5 {
            let decision = limiter.check();
            assert!(decision.is_allowed());
            assert_eq!((decision.limit, decision.remaining), (rate, rate - taken));
        }
        assert!(limiter.check_ask(Ask::new(rate - 5)).is_allowed());
        assert!(limiter.check().is_denied(), "{rate}");
    }
}

// shows: A1
#[test]
fn sentinel_1615_thousands_a_second_and_a_fifth_of_one() {
    for (quota, time, passes) in [
        (Quota::per_second(1_500), seconds(10), 15_000),
        (Quota::per_second(3_000), seconds(10), 30_000),
        (Quota::new(1, seconds(5)), seconds(50), 10),
    ] {
        let (limiter, clock) = timed(quota.burst(2));
        assert_eq!(pass(&limiter, 3), 2);
        let mut passed = 0;
        for _ in 0..100_000 {
            clock.advance(time / 100_000);
            passed += pass(&limiter, 3);
        }
        assert_eq!(passed, passes);
    }
}

// shows: B1 (local), B5 (greedy refill)
#[test]
fn sentinel_3407_two_in_three_seconds_are_not_four() {
    let (permits, window) = (2, seconds(3));
    let limits = [
        Algorithm::TokenBucket(Quota::new(permits, window)),
        Algorithm::FixedWindow { permits, window },
        Algorithm::SlidingLog { permits, window },
    ];
    for algorithm in limits {
        // A window of the clock begins at 1,700,000,001 s.
        let (limiter, clock) = timed(algorithm);
        clock.advance(seconds(1));
        let mut passed = 0;
        for _ in 0..2 {
            passed += pass(&limiter, 10);
            clock.advance(seconds(1));
        }
        assert_eq!(passed, 2, "{algorithm:?}");
    }
}

// shows: B3 (local)
#[test]
fn sentinel_2859_two_half_second_buckets_do_not_pass_twenty_in_half_a_second() {
    let (limiter, clock) = timed(Algorithm::SlidingLog {
        permits: 10,
        window: seconds(1),
    });
    clock.advance(millis(499));
    assert_eq!(pass(&limiter, 20), 10);
    clock.advance(millis(501));
    assert_eq!(pass(&limiter, 20), 0);
    clock.advance(millis(499));
    assert_eq!(pass(&limiter, 20), 10);
}

// shows: B1 (local), B3 (local)
#[test]
fn envoy_ratelimit_193_the_edge_of_a_window_passes_twice_and_a_log_does_not() {
    let (permits, window) = (5, seconds(60));
    for (algorithm, passes) in [
        (Algorithm::FixedWindow { permits, window }, 10),
        (Algorithm::SlidingLog { permits, window }, 5),
    ] {
        // 1,700,000,040 s is a whole minute.
        let (limiter, clock) = timed(algorithm);
        clock.advance(millis(39_999));
        let before = pass(&limiter, 20);
        clock.advance(millis(2));
        assert_eq!(before + pass(&limiter, 20), passes);
    }
}

// shows: A1
#[test]
fn nginx_58_the_first_request_is_not_free_and_tiny_rates_are_not_rounded() {
    for per_minute in [1, 7, 59, 100] {
        let (limiter, clock) = timed(Quota::per_minute(per_minute).burst(1));
        assert_eq!(pass(&limiter, 2), 1, "the first is counted");
        let mut passed = 0;
        for _ in 0..100 * per_minute {
            let wait = limiter.peek(Ask::ONE).retry_after().expect("a wait");
            clock.advance(wait);
            passed += pass(&limiter, 2);
        }
        assert_eq!(passed, 100 * per_minute);
        // In a hundred minutes and what each wait is rounded up by, to a nanosecond.
        let took = tidegate::Clock::now(&clock).since(START);
        assert!(took >= seconds(6_000) && took < millis(6_000_001));
    }
}

// shows: A1
#[test]
fn traefik_13512_a_rate_of_zero_is_not_unlimited() {
    let (limiter, clock) = timed(Quota::per_second(0));
    assert_eq!(pass(&limiter, 100), 0);
    clock.advance(seconds(86_400));
    assert_eq!(pass(&limiter, 100), 0);
}

// shows: A1
#[test]
fn envoy_24282_a_saturated_bucket_passes_all_of_its_rate() {
    let (limiter, clock) = timed(Quota::per_second(1_000).burst(10));
    let mut passed = 0;
    for _ in 0..10_000 {
        passed += pass(&limiter, 20);
        clock.advance(millis(1));
    }
    assert_eq!(passed, 10 + 9_999);
}

// shows: A7 (cost and peek and give back)
#[test]
fn redisson_permits_above_two_to_the_32_are_not_truncated() {
    let (limiter, _) = timed(Quota::per_second(10));
    for permits in [1 << 32, (1 << 32) + 1, u64::MAX] {
        assert_eq!(
            limiter.check_ask(Ask::new(permits)).retry(),
            Some(Retry::Never)
        );
    }
    assert_eq!(limiter.peek(Ask::ONE).remaining, 10);
}

// shows: B6 (local)
#[test]
fn sentinel_warm_up_slower_than_its_cold_factor_is_not_shut_for_ever() {
    let second = Duration::from_secs(1);
    for (quota, warm_up) in [
        (Quota::per_second(1), second),
        (Quota::new(1, 10 * second), 10 * second),
        (Quota::per_second(1), 2 * second),
        (Quota::per_second(2), 10 * second),
    ] {
        let (limiter, clock) = timed(Algorithm::smooth_warm_up(quota, warm_up, 3));
        let start = tidegate::Clock::now(&clock);
        for _ in 0..20 {
            assert!(limiter.acquire(Ask::ONE).is_allowed());
        }
        // Twenty at the warm rate, and the warm-up twice at most.
        let took = tidegate::Clock::now(&clock).since(start);
        assert!(took <= quota.period() / quota.permits() as u32 * 20 + 2 * warm_up);
    }
}

// shows: H1 (bounded memory)
#[test]
fn sentinel_2190_beyond_the_bound_nothing_is_waved_through() {
    let (builder, _) = keyed(Quota::per_day(3));
    let limiter = builder.max_keys(100).build().expect("valid");
    for key in 0..10_000_u32 {
        let passed = (0..10).filter(|_| limiter.check(&key).is_allowed()).count();
        assert_eq!(passed, 3, "key {key}");
    }
    assert_eq!(limiter.stats().keys, 100);
    let gate = KeyedConcurrencyLimiter::new(1, 100).expect("valid");
    let guards: Vec<_> = (0..10_000_u32)
        .map(|key| gate.try_acquire(&key, 1).1)
        .collect();
    // A hundred with an entry of their own, and one more for all who share.
    assert_eq!(guards.iter().flatten().count(), 101);
}

// shows: H1 (bounded memory)
#[test]
fn traefik_a_drained_bucket_is_not_full_again_after_two_seconds() {
    let (builder, clock) = keyed(Quota::per_second(10).burst(1_000));
    let limiter = builder.max_keys(100_000).build().expect("valid");
    assert!(limiter.check_ask("drained", Ask::new(1_000)).is_allowed());
    clock.advance(seconds(2));
    // Others come, so that the store grows and lets go of what it may.
    for key in 0..50_000_u32 {
        assert!(limiter.check(&key).is_allowed());
    }
    assert_eq!(limiter.peek("drained", Ask::ONE).remaining, 20);
}

// shows: H1 (bounded memory)
#[test]
fn envoy_gateway_9973_a_busy_client_is_not_the_one_that_is_evicted() {
    let (builder, clock) = keyed(Quota::per_minute(60).burst(100));
    let limiter = builder.max_keys(20).build().expect("valid");
    assert!(limiter.check_ask("busy", Ask::new(100)).is_allowed());
    for key in 0..10_000_u32 {
        assert!(limiter.check(&key).is_allowed());
        assert!(limiter.check("busy").is_denied(), "after {key} others");
        clock.advance(Duration::from_micros(50));
    }
}
