//! Forced permits: taken whatever the limit says, waited off by those who come later. Engine and
//! oracles agree; the others never pass more than the bound, so that in all it is the bound and
//! what was forced.

use core::num::NonZeroU32;
use core::time::Duration;

use proptest::prelude::*;
use tidegate::{
    Algorithm, Ask, Asked, ConcurrencyLimiter, Enforce, KeyHasher, KeyedConcurrencyLimiter,
    KeyedLimiter, Limiter, ManualClock, Quota, Retry, Timestamp, check_all,
};
use tidegate_sim::strategy::{self, Allowed, cases};

use crate::bound::{burst_and_rate, in_each_window, run};
use crate::door::keyed;

const START: Timestamp = Timestamp::from_secs(1_700_000_000);

/// Callers wait, some permits come back and some are forced.
const ALL: Allowed = Allowed {
    steps_back: false,
    patience: true,
    give_back: true,
    force: true,
};
/// The same, and nobody waits.
const NOBODY_WAITS: Allowed = Allowed {
    patience: false,
    ..ALL
};
/// The same, and nothing comes back.
const NOTHING_BACK: Allowed = Allowed {
    give_back: false,
    ..ALL
};

fn sentinel_warm_up() -> impl Strategy<Value = Algorithm> {
    (1..=40_u64, 1..=20_u32).prop_map(|(count, warm_up_seconds)| Algorithm::SentinelWarmUp {
        count,
        warm_up_seconds,
        cold_factor: 3,
    })
}

proptest! {
    #![proptest_config(cases(500))]

    // proves: A7 (overdraft), B5 (greedy refill)
    #[test]
    fn a_token_bucket_holds_its_bound_beside_what_is_forced(
        run in run(strategy::token_bucket(), 40, NOTHING_BACK),
    ) {
        // Who waits goes on at a whole nanosecond, up to one later than the exact time.
        let allowed = burst_and_rate(&run.algorithm);
        run.keeps_within(|length| allowed(length + 1))?;
    }

    // proves: A7 (overdraft), B5 (greedy and interval and aligned refill)
    #[test]
    fn buckets_agree_where_permits_are_forced(
        run in run(
            prop_oneof![
                strategy::token_bucket(),
                strategy::initial_bucket(),
                strategy::interval_bucket(),
            ],
            40,
            ALL,
        ),
    ) {
        run.agrees()?;
    }

    // proves: A7 (overdraft), B1 (local)
    #[test]
    fn a_fixed_window_holds_its_bound_beside_what_is_forced(
        run in run(strategy::fixed_window(), 40, NOBODY_WAITS),
    ) {
        let Algorithm::FixedWindow { permits, window } = run.algorithm else { unreachable!() };
        run.each_way(|passes| in_each_window(passes, permits, window.as_nanos() as u64))?;
    }

    // proves: A7 (overdraft), B2 (local), B3 (local)
    #[test]
    fn every_window_holds_its_bound_beside_what_is_forced(
        run in run(strategy::every_window(), 40, NOBODY_WAITS),
    ) {
        let (Algorithm::SlidingLog { permits, window }
        | Algorithm::SlidingWindow { permits, window, .. }) = run.algorithm else { unreachable!() };
        let window = window.as_nanos() as u64;
        run.keeps_within(|length| (i128::from(permits) * i128::from(length / window + 1), 1))?;
    }

    // proves: A7 (overdraft), B1 (local and from the first request and by the calendar)
    #[test]
    fn windows_and_counters_agree_where_permits_are_forced(
        run in run(
            prop_oneof![strategy::window_or_log(), strategy::sliding_counter()],
            40,
            NOBODY_WAITS,
        ),
    ) {
        run.agrees()?;
    }

    // proves: A7 (overdraft), B4 (nginx and redis-cell), B7 (warm-up and queueing)
    #[test]
    fn dialects_agree_where_permits_are_forced(
        run in run(
            prop_oneof![
                strategy::nginx(),
                strategy::redis_cell(),
                strategy::sentinel_warm_up_queue(),
            ],
            40,
            ALL,
        ),
    ) {
        run.agrees()?;
    }

    // proves: A7 (overdraft), B6 (local)
    #[test]
    fn pay_later_limits_agree_where_more_is_forced_than_they_lend(
        run in run(
            prop_oneof![3 => strategy::smooth_bursty(), 1 => strategy::smooth_warm_up()],
            40,
            ALL,
        ),
    ) {
        run.agrees()?;
    }

    // proves: A7 (overdraft), A2 (refusing)
    #[test]
    fn gates_agree_where_places_are_forced(run in run(strategy::concurrency(), 40, ALL)) {
        run.agrees()?;
    }

    // proves: A7 (overdraft and cost and peek and give back)
    #[test]
    fn giving_back_what_was_forced_is_as_if_it_had_not_been_taken(
        algorithm in prop_oneof![
            6 => strategy::rate_limit(),
            1 => strategy::concurrency(),
            1 => sentinel_warm_up(),
        ],
        before in 0..1_000_u64,
        forced in strategy::log_uniform(Quota::MAX_PERMITS),
    ) {
        let store = keyed(&algorithm, 10);
        let key = KeyHasher::with_keys(7, 8).hash("k");
        let limit = u128::from(store.peek(key, START, &Ask::ONE).limit);
        let permits = (limit * u128::from(before) / 1_000) as u64;
        let _ = store.check(key, START, &Ask::new(permits));
        let as_it_was = store.peek(key, START, &Ask::ONE);
        let (decision, receipt) = store.check(key, START, &Ask::new(forced).forced());
        if let Some(receipt) = receipt {
            prop_assert!(decision.is_allowed() && decision.delay() == Duration::ZERO);
            prop_assert_eq!(receipt.permits(), forced);
            prop_assert!(store.give_back(receipt, START).is_ok());
        } else {
            prop_assert_eq!(decision.retry(), Some(Retry::Never));
        }
        prop_assert_eq!(store.peek(key, START, &Ask::ONE), as_it_was);
    }
}

// What Bucket4j's `consumeIgnoringRateLimits` leaves behind: the same balance below zero.
// shows: A7 (overdraft)
#[test]
fn a_forced_take_is_a_debt_that_later_callers_wait_off() {
    let clock = ManualClock::new(START);
    let limiter = Limiter::with_clock(Quota::per_second(10), clock.clone()).expect("valid");
    let forced = limiter.check_ask(Ask::new(25).forced());
    assert!(forced.is_allowed() && forced.delay() == Duration::ZERO);
    assert_eq!(forced.remaining, 0);
    // 15 below zero: one is there when 16 have come.
    let denied = limiter.check();
    assert_eq!(denied.retry_after(), Some(Duration::from_millis(1_600)));
    clock.advance(Duration::from_millis(1_600));
    assert!(limiter.check().is_allowed());
    assert!(limiter.check().is_denied());
}

// shows: A7 (overdraft)
#[test]
fn more_than_a_state_holds_is_never_forced() {
    let permits = 5;
    let window = Duration::from_secs(10);
    let quota = Quota::new(5, window);
    let limits = [
        Algorithm::TokenBucket(quota),
        Algorithm::TokenBucket(Quota::new(7, window)),
        Algorithm::IntervalBucket {
            quota,
            aligned: false,
        },
        Algorithm::FixedWindow { permits, window },
        Algorithm::SlidingLog { permits, window },
        Algorithm::SlidingWindow {
            permits,
            window,
            parts: NonZeroU32::MIN,
        },
        Algorithm::SlidingCounter { permits, window },
        Algorithm::Nginx {
            requests: 1,
            per_minute: false,
            burst: 4,
            delay: None,
        },
        Algorithm::SentinelWarmUp {
            count: 5,
            warm_up_seconds: 10,
            cold_factor: 3,
        },
        Algorithm::SentinelWarmUpQueue {
            count: 5,
            warm_up_seconds: 10,
            cold_factor: 3,
        },
        Algorithm::SmoothBursty {
            quota,
            max_debt: Duration::ZERO,
        },
        Algorithm::SmoothWarmUp {
            quota,
            warm_up: window,
            cold_factor: 3,
            max_debt: window * 3,
        },
        Algorithm::Concurrency { max: 5 },
    ];
    let key = KeyHasher::with_keys(7, 8).hash("k");
    for algorithm in limits {
        let store = keyed(&algorithm, 10);
        let before = store.peek(key, START, &Ask::ONE);
        for permits in [Quota::MAX_PERMITS + 1, u64::MAX] {
            let (decision, receipt) = store.check(key, START, &Ask::new(permits).forced());
            assert_eq!(decision.retry(), Some(Retry::Never), "{algorithm:?}");
            assert!(receipt.is_none());
        }
        assert_eq!(store.peek(key, START, &Ask::ONE), before, "{algorithm:?}");
        // And nothing that is done a thousand times over wraps around.
        let most = Ask::new(Quota::MAX_PERMITS).forced();
        let debts = (0..1_000).filter(|_| store.check(key, START, &most).0.is_allowed());
        // Of 64 bits, such a bucket has room for decades of debt; these are 70,000 years each.
        let is_narrow = algorithm == Algorithm::TokenBucket(quota);
        assert_eq!(debts.count(), if is_narrow { 0 } else { 1_000 });
        let next = store.check(key, START, &Ask::ONE).0;
        assert_eq!(next.is_denied(), !is_narrow, "{algorithm:?}");
    }
}

// shows: A7 (overdraft)
#[test]
fn the_largest_debt_of_a_narrow_state_leaves_room_for_a_true_wait() {
    let clock = ManualClock::new(START);
    let limiter = Limiter::with_clock(Quota::per_second(3), clock).expect("valid");
    let mut step = Quota::MAX_PERMITS;
    while step > 0 {
        if limiter.check_ask(Ask::new(step).forced()).is_denied() {
            step /= 2;
        }
    }
    let wait = |permits| limiter.peek(Ask::new(permits)).retry_after();
    let waits = [1, 2, 3].map(|permits| wait(permits).expect("some time").as_nanos());
    // A third of a second for each more, rounded up.
    for pair in waits.windows(2) {
        assert!((333_333_333..=333_333_334).contains(&(pair[1] - pair[0])));
    }
}

// shows: A7 (overdraft), A6
#[test]
fn of_several_limits_a_forced_one_never_refuses_and_takes_nothing_where_another_does() {
    let clock = ManualClock::new(START);
    let user = KeyedLimiter::builder(Quota::per_minute(2)).clock(clock.clone());
    let user = user.build().expect("valid");
    let all = Limiter::with_clock(Quota::per_minute(3), clock).expect("valid");
    let gate = ConcurrencyLimiter::new(1).expect("valid");
    let _inside = gate.try_acquire(1);
    let check = |permits| {
        let asks = [
            user.ask("u", permits),
            all.ask(Ask::new(permits).forced()),
            gate.ask(Ask::ONE.forced()),
        ];
        check_all(&asks, START).expect("three limits").is_allowed()
    };
    assert!(check(1));
    assert!(!check(2));
    assert_eq!(all.peek(Ask::ONE).remaining, 2, "nothing was taken");
    assert!(check(1));
    user.reset("u");
    assert!(check(2));
    assert_eq!(all.peek(Ask::ONE).remaining, 0);
}

// shows: A7 (overdraft), B3 (local), B10 (sync)
#[test]
fn forced_permits_count_now_in_a_window_and_at_the_end_of_a_log() {
    let (permits, window) = (2, Duration::from_secs(10));
    let key = KeyHasher::with_keys(7, 8).hash("k");
    let start = Timestamp::from_secs(1_700_000_000);
    let next_of = |algorithm| {
        let store = keyed(&algorithm, 10);
        let patient = |permits| Ask::new(permits).within(window * 10);
        assert!(store.check(key, start, &patient(2)).0.is_allowed());
        // Waits for the next window, or until both have left: as long.
        let (waits, _) = store.check(key, start, &patient(1));
        assert_eq!(waits.delay(), window);
        let (forced, receipt) = store.check(key, start, &Ask::new(2).forced());
        assert_eq!((forced.delay(), forced.remaining), (Duration::ZERO, 0));
        let next = store.peek(key, start, &patient(1)).delay();
        store
            .give_back(receipt.expect("taken"), start)
            .expect("own");
        assert_eq!(store.peek(key, start, &patient(1)).delay(), window);
        next
    };
    assert_eq!(next_of(Algorithm::FixedWindow { permits, window }), window);
    assert_eq!(
        next_of(Algorithm::SlidingLog { permits, window }),
        window * 2
    );
}

// shows: A7 (overdraft), A2 (refusing)
#[test]
fn a_forced_place_is_above_the_number_and_ahead_of_a_line_and_comes_back() {
    let gate = ConcurrencyLimiter::new(1).expect("valid");
    let (_, first) = gate.try_acquire(1);
    let mut waits = Box::pin(gate.acquire_async(1));
    let mut context = core::task::Context::from_waker(core::task::Waker::noop());
    assert!(waits.as_mut().poll(&mut context).is_pending());
    let (decision, forced) = gate.try_acquire(Ask::ONE.forced());
    assert!(decision.is_allowed() && decision.remaining == 0);
    drop(first);
    assert!(
        waits.as_mut().poll(&mut context).is_pending(),
        "one is still in"
    );
    drop(forced);
    assert!(waits.as_mut().poll(&mut context).is_ready());

    let keys = KeyedConcurrencyLimiter::new(1, 10).expect("valid");
    let (_, first) = keys.try_acquire("k", 1);
    let (decision, forced) = keys.try_acquire("k", Ask::new(3).forced());
    assert!(decision.is_allowed());
    drop(first);
    assert!(keys.try_acquire("k", 1).0.is_denied());
    drop(forced);
    assert!(keys.try_acquire("k", 1).0.is_allowed());
}

// shows: A7 (overdraft), B7 (local)
#[test]
fn sentinels_warm_up_counts_what_is_forced_as_passing() {
    let algorithm = Algorithm::SentinelWarmUp {
        count: 30,
        warm_up_seconds: 10,
        cold_factor: 3,
    };
    let store = keyed(&algorithm, 10);
    let key = KeyHasher::with_keys(7, 8).hash("k");
    let limit: &dyn Enforce = &*store;
    // Cold, it lets ten a second through.
    let ask = Ask::new(25).forced();
    let checked = check_all(&[Asked::new(limit, key, ask)], START).expect("one limit");
    assert!(checked.is_allowed());
    let (denied, _) = store.check(key, START, &Ask::ONE);
    assert_eq!(denied.retry_after(), Some(Duration::from_secs(1)));
    checked.give_back(START);
    assert!(store.check(key, START, &Ask::new(10)).0.is_allowed());
    assert!(store.check(key, START, &Ask::ONE).0.is_denied());
}
