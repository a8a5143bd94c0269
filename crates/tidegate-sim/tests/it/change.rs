//! Promise 8: when a limit changes, what was used stays used, and the new limit holds at once.

use core::num::NonZeroU32;
use core::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use tidegate::meter::{FixedWindow, SlidingLog, TokenBucket, Used};
use tidegate::{
    Algorithm, Ask, Clock, KeyHasher, KeyedLimiter, ManualClock, Meter, Quota, Timestamp,
};
use tidegate_sim::oracle::{
    ConcurrencyOracle, IntervalBucketOracle, NginxOracle, Oracle, Request, SlidingCounterOracle,
    SlidingLogOracle, SlidingWindowOracle, TokenBucketOracle,
};
use tidegate_sim::strategy::{self, Act, Allowed, Step, cases, log_uniform, scale};

use crate::door::keyed;

type Outcome = Result<(), TestCaseError>;

const HUNDRED_YEARS: u64 = 100 * 365 * 86_400 * 1_000_000_000;
const START: Timestamp = Timestamp::from_secs(1_700_000_000);
const PLAIN: Allowed = Allowed {
    steps_back: false,
    patience: false,
    give_back: false,
};

/// A new limit now and then, and steps between.
fn story(
    algorithm: BoxedStrategy<Algorithm>,
) -> impl Strategy<Value = Vec<(Algorithm, Vec<Step>)>> {
    prop::collection::vec((algorithm, strategy::schedule(15, PLAIN)), 1..6)
}

fn limiter(algorithm: Algorithm, clock: &ManualClock) -> KeyedLimiter<ManualClock> {
    let builder = KeyedLimiter::builder(algorithm).max_keys(100);
    builder.clock(clock.clone()).build().expect("a valid limit")
}

fn quota_of(algorithm: &Algorithm) -> Quota {
    match *algorithm {
        Algorithm::TokenBucket(quota) => quota,
        ref other => panic!("no token bucket: {other:?}"),
    }
}

/// By how much the engine may differ after these changes, in nanoseconds of the last limit: each
/// rounds what is used up to a whole unit, of which `den` make a permit (rate `num`/`den` per ns).
fn slack(story: &[(Algorithm, Vec<Step>)], changes: usize) -> u64 {
    let rate = |(algorithm, _): &(Algorithm, _)| quota_of(algorithm).rate().expect("valid");
    let now = rate(&story[changes]);
    let nanos_per_permit = now.nanos() as f64 / now.permits() as f64;
    let permits: f64 = story[..changes]
        .iter()
        .map(|before| 1.0 / rate(before).nanos() as f64)
        .sum();
    let late = Duration::from_nanos(2 * changes as u64)
        + Duration::from_secs_f64(permits * nanos_per_permit / 1e9);
    late.as_nanos() as u64 + 1
}

fn token_bucket_follows(story: &[(Algorithm, Vec<Step>)]) -> Outcome {
    let clock = ManualClock::new(START);
    let mut limiter = limiter(story[0].0, &clock);
    let mut oracle = TokenBucketOracle::new(quota_of(&story[0].0), START.as_nanos());
    let mut told = 0;
    for (changes, (algorithm, steps)) in story.iter().enumerate() {
        if changes > 0 {
            limiter.set_limit(*algorithm, 100).expect("a valid limit");
            let now = clock.now().as_nanos();
            oracle.change(quota_of(algorithm), now);
            let patience = u64::MAX;
            let one = Request {
                patience,
                ..Request::at(now, 1)
            };
            if oracle.delay_of(one).is_none_or(|due| due > HUNDRED_YEARS) {
                return Ok(()); // Who owes so much does not come again.
            }
        }
        let slack = slack(story, changes);
        for step in steps {
            let now = step
                .time
                .from(clock.now().as_nanos(), scale(algorithm), told);
            clock.set(Timestamp::from_nanos(now));
            let permits = step.size.permits(&oracle, now);
            let request = Request {
                now,
                permits,
                patience: u64::MAX,
            };
            let due = oracle.delay_of(request);
            let decision = limiter.check_ask("key", &Ask::new(permits));
            if decision.is_allowed() {
                let due = due.expect("admitted some time");
                prop_assert!(due <= slack, "{:?} is due in {}", request, due);
                oracle.take(request);
            } else if let Some(wait) = decision.retry_after() {
                let wait = wait.as_nanos() as u64;
                let due = due.unwrap_or(u64::MAX);
                prop_assert!(wait.abs_diff(due) <= slack, "{} {}", wait, due);
                told = wait;
            } else {
                prop_assert!(!oracle.ever_admits(request));
            }
        }
    }
    Ok(())
}

/// The engine answers as the oracle does, through all changes. The oracle is of the first limit.
fn follows<O: Oracle>(
    story: &[(Algorithm, Vec<Step>)],
    mut oracle: O,
    change: impl Fn(&mut O, &Algorithm, u64),
) -> Outcome {
    let clock = ManualClock::new(START);
    let mut limiter = limiter(story[0].0, &clock);
    let mut told = 0;
    for (changes, (algorithm, steps)) in story.iter().enumerate() {
        if changes > 0 {
            limiter.set_limit(*algorithm, 100).expect("a valid limit");
            change(&mut oracle, algorithm, clock.now().as_nanos());
        }
        for step in steps {
            let now = step
                .time
                .from(clock.now().as_nanos(), scale(algorithm), told);
            clock.set(Timestamp::from_nanos(now));
            let request = Request::at(now, step.size.permits(&oracle, now));
            let due = oracle.delay_of(request);
            let decision = limiter.check_ask("key", &Ask::new(request.permits));
            prop_assert_eq!(decision.is_allowed(), due.is_some(), "{:?}", request);
            if due.is_some() && request.permits > 0 {
                oracle.take(request);
            }
            prop_assert_eq!(decision.remaining, oracle.remaining(now));
            told = decision
                .retry_after()
                .map_or(0, |wait| wait.as_nanos() as u64);
            if told > 0 && now.saturating_add(told) <= Timestamp::MAX.as_nanos() {
                let request = |now| Request { now, ..request };
                prop_assert!(oracle.delay_of(request(now + told)).is_some());
                prop_assert!(oracle.delay_of(request(now + told - 1)).is_none());
            }
        }
    }
    Ok(())
}

fn sliding_log_follows(story: &[(Algorithm, Vec<Step>)]) -> Outcome {
    let numbers = |algorithm: &Algorithm| match *algorithm {
        Algorithm::SlidingLog { permits, window } => (permits, window),
        ref other => panic!("no sliding log: {other:?}"),
    };
    let (permits, window) = numbers(&story[0].0);
    let oracle = SlidingLogOracle::new(permits, window);
    follows(story, oracle, |oracle, algorithm, now| {
        let (permits, window) = numbers(algorithm);
        oracle.change(permits, window, now);
    })
}

fn sliding_window_follows(story: &[(Algorithm, Vec<Step>)]) -> Outcome {
    let oracle_of = |algorithm: &Algorithm| match *algorithm {
        Algorithm::SlidingWindow {
            permits,
            window,
            parts,
        } => SlidingWindowOracle::new(permits, window, parts),
        ref other => panic!("no sliding window: {other:?}"),
    };
    follows(story, oracle_of(&story[0].0), |oracle, algorithm, now| {
        oracle.change(&oracle_of(algorithm), now);
    })
}

fn sliding_counter_follows(story: &[(Algorithm, Vec<Step>)]) -> Outcome {
    let oracle_of = |algorithm: &Algorithm| match *algorithm {
        Algorithm::SlidingCounter { permits, window } => SlidingCounterOracle::new(permits, window),
        ref other => panic!("no sliding counter: {other:?}"),
    };
    follows(story, oracle_of(&story[0].0), |oracle, algorithm, now| {
        oracle.change(&oracle_of(algorithm), now);
    })
}

fn interval_bucket_follows(story: &[(Algorithm, Vec<Step>)]) -> Outcome {
    let numbers = |algorithm: &Algorithm| match *algorithm {
        Algorithm::IntervalBucket { quota, aligned } => (quota, aligned),
        ref other => panic!("no interval bucket: {other:?}"),
    };
    let (quota, aligned) = numbers(&story[0].0);
    let oracle = IntervalBucketOracle::new(quota, aligned, START.as_nanos());
    follows(story, oracle, |oracle, algorithm, now| {
        let (quota, aligned) = numbers(algorithm);
        oracle.change(quota, aligned, now);
    })
}

fn nginx_follows(story: &[(Algorithm, Vec<Step>)]) -> Outcome {
    let oracle_of = |algorithm: &Algorithm| match *algorithm {
        Algorithm::Nginx {
            requests,
            per_minute,
            burst,
            delay,
        } => NginxOracle::new(requests, per_minute, burst, delay),
        ref other => panic!("no nginx: {other:?}"),
    };
    follows(story, oracle_of(&story[0].0), |oracle, algorithm, now| {
        oracle.change(&oracle_of(algorithm), now);
    })
}

fn full_interval_bucket() -> BoxedStrategy<Algorithm> {
    (strategy::quota(), any::<bool>())
        .prop_map(|(quota, aligned)| Algorithm::IntervalBucket { quota, aligned })
        .boxed()
}

/// Limits that are full after rest and pay now: of them, `remaining` is limit less used.
fn strict() -> BoxedStrategy<Algorithm> {
    prop_oneof![
        strategy::token_bucket(),
        strategy::fixed_window(),
        strategy::sliding_log(),
        full_interval_bucket(),
        strategy::sliding_window(),
        strategy::sliding_counter(),
        strategy::nginx().prop_filter("pays at once", |algorithm| !algorithm.delays()),
    ]
    .boxed()
}

proptest! {
    #![proptest_config(cases(500))]

    // proves: F4 (token bucket)
    #[test]
    fn a_changed_token_bucket_keeps_what_was_used(story in story(strategy::token_bucket())) {
        token_bucket_follows(&story)?;
    }

    // proves: F4 (sliding log)
    #[test]
    fn a_changed_sliding_log_keeps_what_was_counted(story in story(strategy::sliding_log())) {
        sliding_log_follows(&story)?;
    }

    // proves: F4 (sliding window), B2 (local)
    #[test]
    fn a_changed_sliding_window_keeps_what_was_counted(story in story(strategy::sliding_window())) {
        sliding_window_follows(&story)?;
    }

    // proves: F4 (sliding counter), B2 (local)
    #[test]
    fn a_changed_sliding_counter_keeps_its_estimate(story in story(strategy::sliding_counter())) {
        sliding_counter_follows(&story)?;
    }

    // proves: F4 (interval bucket)
    #[test]
    fn a_changed_interval_bucket_keeps_what_was_used(story in story(full_interval_bucket())) {
        interval_bucket_follows(&story)?;
    }

    // proves: F4 (nginx)
    #[test]
    fn a_changed_nginx_keeps_its_excess(story in story(strategy::nginx())) {
        nginx_follows(&story)?;
    }

    // proves: F4 (concurrency)
    #[test]
    fn a_changed_concurrency_limit_keeps_who_is_inside(
        changes in prop::collection::vec(
            (0..10_u64, prop::collection::vec((0..6_u64, any::<usize>()), 0..10)),
            1..6,
        ),
    ) {
        let mut limit = keyed(&Algorithm::Concurrency { max: 3 }, 10);
        let mut oracle = ConcurrencyOracle::new(3);
        let key = KeyHasher::with_keys(1, 2).hash("key");
        let mut inside = Vec::new();
        for (max, steps) in changes {
            let algorithm = Algorithm::Concurrency { max };
            limit = limit.renumbered(&[algorithm], 10, START).expect("same kind").remove(0);
            oracle.change(max);
            for (permits, which) in steps {
                let request = Request::at(0, permits);
                let expected = oracle.delay_of(request).is_some();
                let (decision, receipt) = limit.check(key, START, &Ask::new(permits));
                prop_assert_eq!(decision.is_allowed(), expected);
                inside.extend(receipt.map(|receipt| (receipt, oracle.take(request))));
                prop_assert_eq!(decision.remaining, oracle.remaining(0));
                if which % 3 == 0 && !inside.is_empty() {
                    let (receipt, ticket) = inside.swap_remove(which % inside.len());
                    limit.give_back(receipt, START).expect("its own");
                    oracle.give_back(0, ticket);
                }
            }
        }
    }

    // proves: F4 (from any algorithm to any other)
    #[test]
    fn what_was_used_stays_used_whatever_the_limit_becomes(
        algorithms in prop::collection::vec(strict(), 2..8),
        part in 0..=1_000_u64,
        start in strategy::start(),
    ) {
        let clock = ManualClock::new(start);
        let mut limiter = limiter(algorithms[0], &clock);
        let limit = limiter.peek("key", &Ask::ONE).limit;
        let used = (u128::from(limit) * u128::from(part) / 1_000) as u64;
        let used = algorithms.iter().map(payable).fold(used, u64::min);
        prop_assert!(limiter.check_ask("key", &Ask::new(used)).is_allowed());
        for algorithm in &algorithms {
            limiter.set_limit(*algorithm, 100).expect("a valid limit");
            let now = limiter.peek("key", &Ask::ONE);
            prop_assert_eq!(now.remaining, now.limit.saturating_sub(used), "{:?}", algorithm);
            let all = limiter.peek("key", &Ask::new(now.remaining));
            prop_assert!(all.is_allowed());
        }
    }

    // proves: F4 (rounding)
    #[test]
    fn usage_passes_from_meter_to_meter_and_grows_by_less_than_a_permit(
        from in strategy::quota(),
        to in strategy::quota(),
        window in log_uniform(1 << 50),
        limit in log_uniform(1 << 24),
        steps in strategy::schedule(10, PLAIN),
    ) {
        let window = Duration::from_nanos(window);
        let bucket = TokenBucket::<u128>::new(from).expect("valid");
        let (state, now) = after(&bucket, from, &steps);
        let used = bucket.used(&state, now);
        passes(&TokenBucket::<u128>::new(to).expect("valid"), used, now)?;
        passes(&FixedWindow::new(limit, window).expect("valid"), used, now)?;
        passes(&SlidingLog::new(limit, window).expect("valid"), used, now)?;
    }
}

/// The most that can be owed in the time there is, whichever width the state has.
fn payable(algorithm: &Algorithm) -> u64 {
    match algorithm {
        Algorithm::TokenBucket(quota) => (1 << 62) / quota.rate().expect("valid").nanos(),
        _ => u64::MAX,
    }
}

/// A bucket's state after a schedule.
fn after<M: Meter>(meter: &M, quota: Quota, steps: &[Step]) -> (M::State, Timestamp) {
    let mut state = meter.fresh(START);
    let mut now = START.as_nanos();
    let oracle = TokenBucketOracle::new(quota, now);
    for step in steps.iter().filter(|step| matches!(step.act, Act::Check)) {
        now = step.time.from(now, scale(&quota.into()), 0);
        let ask = Ask::new(step.size.permits(&oracle, now));
        let plan = meter.plan(&state, Timestamp::from_nanos(now), &ask);
        if let Some(change) = plan.change {
            let _ = meter.commit(&mut state, change);
        }
    }
    (state, Timestamp::from_nanos(now))
}

fn passes<M: Meter>(meter: &M, used: Used, now: Timestamp) -> Outcome {
    let there = meter.used(&meter.assume(used, now), now);
    prop_assert!(there >= used, "{:?} became {:?}", used, there);
    prop_assert!(there.permits_ceil() <= used.permits_ceil() + 1);
    // Whole permits stay whole.
    let whole = Used::permits(used.permits_ceil());
    prop_assert_eq!(meter.used(&meter.assume(whole, now), now), whole);
    Ok(())
}

/// Waits in seconds of a limiter that is acquired from, with changes between.
fn guava(story: &[Turn]) -> Vec<f64> {
    let clock = ManualClock::new(START);
    let mut limiter: Option<KeyedLimiter<ManualClock>> = None;
    let mut waits = Vec::new();
    for turn in story {
        match (*turn, &mut limiter) {
            (Turn::Rate(algorithm), None) => limiter = Some(self::limiter(algorithm, &clock)),
            (Turn::Rate(algorithm), Some(limiter)) => {
                limiter.set_limit(algorithm, 100).expect("a valid limit");
            }
            (Turn::Acquire(permits), Some(limiter)) => {
                let long = Duration::from_hours(1);
                let decision = limiter.acquire_within("key", &Ask::new(permits), long);
                waits.push(decision.delay().as_secs_f64());
            }
            (Turn::Acquire(_), None) => panic!("a rate first"),
        }
    }
    waits
}

#[derive(Clone, Copy, Debug)]
enum Turn {
    Rate(Algorithm),
    Acquire(u64),
}

fn bursty(per_second: u64) -> Turn {
    Turn::Rate(Algorithm::SmoothBursty {
        quota: Quota::per_second(per_second),
        max_debt: Duration::from_hours(1),
    })
}

fn warm_up(per_second: u64) -> Turn {
    Turn::Rate(Algorithm::SmoothWarmUp {
        quota: Quota::per_second(per_second),
        warm_up: Duration::from_secs(4),
        cold_factor: 3,
        max_debt: Duration::from_hours(1),
    })
}

fn close(waits: &[f64], expected: &[f64]) {
    assert_eq!(waits.len(), expected.len());
    let near = |(wait, expected): (&f64, &f64)| (wait - expected).abs() < 0.005 + 1e-6;
    assert!(waits.iter().zip(expected).all(near), "{waits:?}");
}

// shows: B6 (local), F4 (Guava: setRate of a bursty limiter)
#[test]
fn a_changed_bursty_rate_lets_the_next_one_pay_the_old_debt() {
    use Turn::Acquire;
    let story = [
        bursty(1),
        Acquire(1),
        Acquire(1),
        bursty(2),
        Acquire(1),
        Acquire(2),
        Acquire(4),
        Acquire(1),
    ];
    close(&guava(&story), &[0.0, 1.0, 1.0, 0.5, 1.0, 2.0]);
    // To a rate whose state would not fit 64 bits: the same.
    let story = [bursty(1), Acquire(1), bursty(7), Acquire(7), Acquire(1)];
    close(&guava(&story), &[0.0, 1.0, 1.0]);
}

// shows: B6 (local), F4 (Guava: setRate while warming up)
#[test]
fn a_changed_warm_up_rate_goes_on_as_warm_as_it_was() {
    let one = Turn::Acquire(1);
    let mut story = vec![warm_up(2)];
    // Warm, cold again after rest: by asking in the same words as Guava's test does.
    story.extend([one, one, one]);
    story.push(warm_up(4));
    story.extend([one; 5]);
    close(
        &guava(&story),
        &[0.0, 1.38, 1.13, 0.88, 0.34, 0.28, 0.25, 0.25],
    );
}

// shows: F4 (a reload gives nothing away)
#[test]
fn changing_a_pay_later_limit_forgives_no_debt() {
    for (a, b) in [(bursty(10), bursty(20)), (warm_up(10), warm_up(20))] {
        let clock = ManualClock::new(START);
        let (Turn::Rate(slow), Turn::Rate(fast)) = (a, b) else {
            panic!("rates");
        };
        let mut limiter = limiter(slow, &clock);
        let mut passed = 0;
        for turn in 0..1_000 {
            let algorithm = if turn % 2 == 0 { fast } else { slow };
            limiter.set_limit(algorithm, 100).expect("a valid limit");
            while limiter.check("key").is_allowed() {
                passed += 1;
            }
            clock.advance(Duration::from_millis(1));
        }
        // A second at no more than 20 a second, what is stored at first, and one to be paid.
        assert!(passed <= 20 + 20 + 1, "{passed}");
    }
}

// shows: F4, B11 (set again)
#[test]
fn all_keys_move_with_what_they_used() {
    let kinds = [
        Algorithm::TokenBucket(Quota::per_day(100)),
        Algorithm::TokenBucket(Quota::new(97, Duration::from_secs(86_399))),
        Algorithm::FixedWindow {
            permits: 100,
            window: Duration::from_hours(24 * 400),
        },
        Algorithm::SlidingLog {
            permits: 100,
            window: Duration::from_hours(24),
        },
        Algorithm::SlidingWindow {
            permits: 100,
            window: Duration::from_hours(24),
            parts: NonZeroU32::new(24).expect("not 0"),
        },
        Algorithm::SlidingCounter {
            permits: 100,
            window: Duration::from_hours(24 * 400),
        },
        Algorithm::IntervalBucket {
            quota: Quota::per_day(100),
            aligned: false,
        },
        Algorithm::Nginx {
            requests: 1,
            per_minute: true,
            burst: 99,
            delay: None,
        },
    ];
    let hasher = KeyHasher::with_keys(3, 4);
    for from in &kinds {
        for to in &kinds {
            let old = keyed(from, 100_000);
            for key in 0..5_000_u64 {
                let ask = Ask::new(key % 50 + 1);
                assert!(old.check(hasher.hash(&key), START, &ask).0.is_allowed());
            }
            let new = keyed(to, 100_000);
            new.succeed(old.drain().expect("no gate"), START);
            // Some are asked before the rest has been taken over.
            let check = |key: u64| {
                let now = new.peek(hasher.hash(&key), START, &Ask::ONE);
                assert_eq!(now.remaining, now.limit - (key % 50 + 1), "{from:?} {to:?}");
            };
            (0..5_000).step_by(997).for_each(check);
            new.adopt_all(START);
            (0..5_000).for_each(check);
            assert_eq!(new.stats().keys, 5_000);
            assert_eq!(old.stats().keys, 0);
        }
    }
}

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
                assert!(limiter.check_ask("key", &Ask::new(1_000)).is_allowed());
                limiter.set_limit(after, max_keys).expect("a valid limit");
                clock.advance(Duration::from_secs(1));
                let now = limiter.peek("key", &Ask::ONE);
                assert_eq!(now.remaining, passes, "{before:?} {after:?}");
            }
        }
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

// shows: B6 (local), F4 (Guava: setRate scales what is stored)
#[test]
fn a_changed_burst_stores_the_same_part_of_it() {
    let of = |burst| Algorithm::SmoothBursty {
        quota: Quota::per_second(10).burst(burst),
        max_debt: Duration::from_hours(1),
    };
    let clock = ManualClock::new(START);
    let mut limiter = limiter(of(10), &clock);
    assert!(limiter.check("key").is_allowed());
    clock.advance(Duration::from_millis(600));
    let mut stored = |burst| {
        limiter.set_limit(of(burst), 100).expect("a valid limit");
        limiter.peek("key", &Ask::ONE).remaining
    };
    // A tenth of a second pays for the first; five have been stored since.
    assert_eq!([10, 20, 7, 10].map(&mut stored), [5, 10, 3, 5]);
}

// shows: F4, B1 (local)
#[test]
fn what_a_window_or_a_log_has_let_go_of_stays_gone_when_it_changes() {
    let (permits, window) = (5, Duration::from_secs(10));
    for algorithm in [
        Algorithm::FixedWindow { permits, window },
        Algorithm::SlidingLog { permits, window },
    ] {
        let clock = ManualClock::new(START);
        let mut limiter = limiter(algorithm, &clock);
        assert!(limiter.check_ask("key", &Ask::new(5)).is_allowed());
        clock.advance(window);
        let quota = Quota::per_hour(5);
        limiter.set_limit(quota, 100).expect("a valid limit");
        assert_eq!(limiter.peek("key", &Ask::ONE).remaining, 5, "{algorithm:?}");
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
        new.succeed(old.drain().expect("no gate"), START);
        let later = START.after(Duration::from_secs(1));
        let now = new.peek(key, later, &Ask::ONE);
        assert_eq!(now.remaining, passes, "{slow:?}");
    }
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
    new[0].succeed(old[0].drain().expect("no gate"), START);
    let later = START.after(Duration::from_secs(1));
    assert_eq!(new[1].peek(key, later, &Ask::ONE).remaining, 2_000);
}
