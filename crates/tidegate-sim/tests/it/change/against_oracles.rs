//! Through changes of its numbers, a limit answers as its oracle does.

use core::time::Duration;

use proptest::prelude::*;
use tidegate::{Algorithm, Ask, Clock, KeyHasher, ManualClock, OnChange, Quota, Timestamp};
use tidegate_sim::oracle::{
    ConcurrencyOracle, IntervalBucketOracle, NginxOracle, Oracle, Request,
    SentinelWarmUpQueueOracle, SlidingCounterOracle, SlidingLogOracle, SlidingWindowOracle,
    TokenBucketOracle,
};
use tidegate_sim::strategy::{self, Step, cases, scale};

use super::{Outcome, PLAIN, START, full_interval_bucket, limiter};
use crate::door::keyed;

const HUNDRED_YEARS: u64 = 100 * 365 * 86_400 * 1_000_000_000;

/// A new limit now and then, and steps between.
fn story(
    algorithm: BoxedStrategy<Algorithm>,
) -> impl Strategy<Value = Vec<(Algorithm, Vec<Step>)>> {
    prop::collection::vec((algorithm, strategy::schedule(15, PLAIN)), 1..6)
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
                patience: u64::MAX,
                ..Request::at(now, permits)
            };
            let due = oracle.delay_of(request);
            let decision = limiter.check_ask("key", Ask::new(permits));
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
            let decision = limiter.check_ask("key", Ask::new(request.permits));
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

fn sentinel_warm_up_queue_follows(story: &[(Algorithm, Vec<Step>)]) -> Outcome {
    let oracle_of = |algorithm: &Algorithm| match *algorithm {
        Algorithm::SentinelWarmUpQueue {
            count,
            warm_up_seconds,
            cold_factor,
        } => SentinelWarmUpQueueOracle::new(count, warm_up_seconds, cold_factor),
        ref other => panic!("no warm-up with queueing: {other:?}"),
    };
    follows(story, oracle_of(&story[0].0), |oracle, algorithm, now| {
        oracle.change(&oracle_of(algorithm), now);
    })
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

    // proves: F4 (warm-up and queueing)
    #[test]
    fn a_changed_warm_up_queue_keeps_its_line(
        story in story(strategy::sentinel_warm_up_queue()),
    ) {
        sentinel_warm_up_queue_follows(&story)?;
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
            let renumbered = limit.renumbered(&[algorithm], 10, START, OnChange::KeepUsed);
            limit = renumbered.expect("same kind").remove(0);
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
}
