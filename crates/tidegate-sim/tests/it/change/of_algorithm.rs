//! A limit becomes one of another algorithm: what was used stays used.

use core::num::NonZeroU32;
use core::time::Duration;

use proptest::prelude::*;
use tidegate::gate::Concurrency;
use tidegate::meter::{FixedWindow, SlidingLog, TokenBucket, Used};
use tidegate::{Algorithm, Ask, KeyHasher, ManualClock, Meter, OnChange, Quota, Timestamp};
use tidegate_sim::oracle::TokenBucketOracle;
use tidegate_sim::strategy::{self, Act, Step, cases, log_uniform, scale};

use super::{Outcome, PLAIN, START, full_interval_bucket, limiter};
use crate::door::keyed;

/// Limits that are full after rest and pay now: of them, `remaining` is limit less used.
fn strict() -> BoxedStrategy<Algorithm> {
    prop_oneof![
        strategy::token_bucket(),
        strategy::fixed_window(),
        strategy::window_from_first(),
        strategy::calendar_window(),
        strategy::sliding_log(),
        full_interval_bucket(),
        strategy::sliding_window(),
        strategy::sliding_counter(),
        strategy::redis_cell(),
        strategy::nginx().prop_filter("pays at once", |algorithm| !algorithm.delays()),
    ]
    .boxed()
}

/// The most that can be owed in the time there is, whichever width the state has.
fn payable(algorithm: &Algorithm) -> u64 {
    let quota = match *algorithm {
        Algorithm::TokenBucket(quota) => quota,
        Algorithm::RedisCell {
            max_burst,
            count,
            period_seconds,
        } => Quota::redis_cell(max_burst, count, period_seconds).expect("valid"),
        _ => return u64::MAX,
    };
    (1 << 62) / quota.rate().expect("valid").nanos()
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

proptest! {
    #![proptest_config(cases(500))]

    // proves: F4 (from any algorithm to any other)
    #[test]
    fn what_was_used_stays_used_whatever_the_limit_becomes(
        algorithms in prop::collection::vec(strict(), 2..8),
        part in 0..=1_000_u64,
        start in strategy::start(),
    ) {
        let clock = ManualClock::new(start);
        let mut limiter = limiter(algorithms[0], &clock);
        let limit = limiter.peek("key", Ask::ONE).limit;
        let used = (u128::from(limit) * u128::from(part) / 1_000) as u64;
        let used = algorithms.iter().map(payable).fold(used, u64::min);
        prop_assert!(limiter.check_ask("key", Ask::new(used)).is_allowed());
        for algorithm in &algorithms {
            limiter.set_limit(*algorithm, 100).expect("a valid limit");
            let now = limiter.peek("key", Ask::ONE);
            prop_assert_eq!(now.remaining, now.limit.saturating_sub(used), "{:?}", algorithm);
            let all = limiter.peek("key", Ask::new(now.remaining));
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
        passes(&Concurrency::new(limit).expect("valid"), used, now)?;
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
            new.succeed(old.drain().expect("no gate"), START, OnChange::KeepUsed);
            // Some are asked before the rest has been taken over.
            let check = |key: u64| {
                let now = new.peek(hasher.hash(&key), START, &Ask::ONE);
                assert_eq!(now.remaining, now.limit - (key % 50 + 1), "{from:?} {to:?}");
            };
            (0..5_000).step_by(997).for_each(check);
            new.adopt_all(START);
            assert_eq!(new.stats().keys, 5_000);
            assert_eq!(old.stats().keys, 0);
            (0..5_000).for_each(check);
        }
    }
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
        assert!(limiter.check_ask("key", Ask::new(5)).is_allowed());
        clock.advance(window);
        let quota = Quota::per_hour(5);
        limiter.set_limit(quota, 100).expect("a valid limit");
        assert_eq!(limiter.peek("key", Ask::ONE).remaining, 5, "{algorithm:?}");
    }
}
