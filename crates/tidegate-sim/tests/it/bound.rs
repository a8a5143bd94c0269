//! Promises 1 and 2: never more than the bound in any interval, and each request that the exact
//! model admits is admitted. Each runs through every way into the engine.

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use tidegate::{Algorithm, Timestamp};
use tidegate_sim::interval::{Pass, first_excess};
use tidegate_sim::oracle::nanos;
use tidegate_sim::strategy::{self, Allowed, Step, cases};

use crate::agree::Pair;
use crate::door::Way;

pub(crate) type Outcome = Result<(), TestCaseError>;

/// Permits come back, nobody waits.
const GIVES_BACK: Allowed = Allowed {
    steps_back: false,
    patience: false,
    give_back: true,
    force: false,
};
/// Callers wait, nothing comes back.
const WAITS: Allowed = Allowed {
    steps_back: false,
    patience: true,
    give_back: false,
    force: false,
};
/// Callers wait, and some change their minds.
const WAITS_AND_GIVES_BACK: Allowed = Allowed {
    steps_back: false,
    patience: true,
    give_back: true,
    force: false,
};

/// A limit, and calls of it.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) algorithm: Algorithm,
    start: Timestamp,
    steps: Vec<Step>,
}

/// Up to so many steps.
pub(crate) fn run(
    algorithm: impl Strategy<Value = Algorithm>,
    steps: usize,
    allowed: Allowed,
) -> impl Strategy<Value = Run> {
    let schedule = strategy::schedule(steps, allowed);
    (algorithm, strategy::start(), schedule).prop_map(|(algorithm, start, steps)| Run {
        algorithm,
        start,
        steps,
    })
}

impl Run {
    /// By each way into the engine, each answer is the oracle's, and `check` sees what passed.
    pub(crate) fn each_way(&self, check: impl Fn(&[Pass]) -> Outcome) -> Outcome {
        for way in Way::ALL {
            if way == Way::Limiter && self.algorithm.is_gate() {
                continue; // Its guards have tests of their own.
            }
            let mut pair = Pair::new(self.algorithm, way, self.start);
            pair.run(&self.steps)?;
            check(&pair.passes)?;
        }
        Ok(())
    }

    /// Each answer is the oracle's.
    pub(crate) fn agrees(&self) -> Outcome {
        self.each_way(|_| Ok(()))
    }

    /// That, and in no interval passes more than is allowed for its length, a fraction.
    pub(crate) fn keeps_within(&self, allowed: impl Fn(u64) -> (i128, i128)) -> Outcome {
        self.each_way(|passes| {
            prop_assert_eq!(first_excess(passes, &allowed), None);
            Ok(())
        })
    }
}

/// `burst + rate * (length + ahead)`, as a fraction.
pub(crate) fn burst_and_rate(algorithm: &Algorithm) -> impl Fn(u64) -> (i128, i128) {
    let (quota, burst, ahead) = match *algorithm {
        Algorithm::TokenBucket(quota) => (quota, quota.burst_permits(), 0),
        Algorithm::SmoothBursty { quota, max_debt } => {
            (quota, quota.burst_permits(), nanos(max_debt))
        }
        // Stored permits are paid for too.
        Algorithm::SmoothWarmUp {
            quota, max_debt, ..
        } => (quota, 0, nanos(max_debt)),
        ref other => panic!("no burst and rate: {other:?}"),
    };
    let period = nanos(quota.period());
    let (permits, burst) = (i128::from(quota.permits()), i128::from(burst));
    move |length| {
        let granted = permits * (i128::from(length) + ahead);
        (burst * period + granted, period)
    }
}

/// Whether what has passed since the key was new is ever more than `allowed`, a fraction.
fn from_first(passes: &[Pass], start: Timestamp, allowed: impl Fn(u64) -> (i128, i128)) -> Outcome {
    let mut passed = 0;
    for pass in passes {
        passed += pass.permits;
        let (numerator, denominator) = allowed(pass.at - start.as_nanos());
        prop_assert!(
            passed * denominator <= numerator,
            "{} at {}",
            passed,
            pass.at
        );
    }
    Ok(())
}

/// Whether more passes in any window of the clock than its permits.
pub(crate) fn in_each_window(passes: &[Pass], permits: u64, window: u64) -> Outcome {
    for edge in passes.iter().map(|pass| pass.at / window * window) {
        let inside = passes
            .iter()
            .filter(|pass| pass.at / window * window == edge);
        let passed: i128 = inside.map(|pass| pass.permits).sum();
        prop_assert!(passed <= permits.into(), "{} from {}", passed, edge);
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(1_000))]

    // proves: A1, B4 (meter), B5 (greedy refill)
    #[test]
    fn token_bucket_passes_burst_and_rate_times_time_and_no_less(
        run in run(strategy::token_bucket(), 60, GIVES_BACK),
    ) {
        run.keeps_within(burst_and_rate(&run.algorithm))?;
    }

    // proves: B5 (greedy refill), B10 (sync)
    #[test]
    fn token_bucket_holds_its_bound_where_callers_wait(
        run in run(strategy::token_bucket(), 60, WAITS),
    ) {
        // Who waits goes on at a whole nanosecond, up to one later than the exact time.
        let allowed = burst_and_rate(&run.algorithm);
        run.keeps_within(|length| allowed(length + 1))?;
    }

    // proves: A7 (cost and peek and give back)
    #[test]
    fn token_bucket_agrees_where_callers_wait_and_give_back(
        run in run(strategy::token_bucket(), 60, WAITS_AND_GIVES_BACK),
    ) {
        run.agrees()?;
    }

    // proves: B1 (local)
    #[test]
    fn fixed_window_passes_its_permits_in_each_window_and_no_less(
        run in run(strategy::fixed_window(), 60, GIVES_BACK),
    ) {
        let Algorithm::FixedWindow { permits, window } = run.algorithm else { unreachable!() };
        let window = window.as_nanos() as u64;
        run.each_way(|passes| {
            in_each_window(passes, permits, window)?;
            // Across an edge: twice, and so on.
            let allowed = |length: u64| (i128::from(permits) * i128::from(length / window + 2), 1);
            prop_assert_eq!(first_excess(passes, allowed), None);
            Ok(())
        })?;
    }

    // proves: B1 (local), B10 (sync)
    #[test]
    fn fixed_window_holds_its_bound_where_callers_wait(
        run in run(strategy::fixed_window(), 60, WAITS),
    ) {
        let Algorithm::FixedWindow { permits, window } = run.algorithm else { unreachable!() };
        run.each_way(|passes| in_each_window(passes, permits, window.as_nanos() as u64))?;
    }

    // proves: B1 (from the first request)
    #[test]
    fn windows_from_the_first_request_hold_and_begin_with_one(
        run in run(strategy::window_from_first(), 60, WAITS),
    ) {
        let Algorithm::WindowFromFirst { permits, window } = run.algorithm else { unreachable!() };
        let window = window.as_nanos() as u64;
        run.each_way(|passes| {
            let allowed = |length: u64| (i128::from(permits) * i128::from(length / window + 2), 1);
            prop_assert_eq!(first_excess(passes, allowed), None);
            // Drawn from the first on, and again from the first after each.
            let mut rest = passes;
            while let Some(first) = rest.first() {
                let inside = rest.partition_point(|pass| pass.at - first.at < window);
                let passed: i128 = rest[..inside].iter().map(|pass| pass.permits).sum();
                prop_assert!(passed <= permits.into(), "{} from {}", passed, first.at);
                rest = &rest[inside..];
            }
            Ok(())
        })?;
    }

    // proves: B2 (local), B3 (local), B10 (sync)
    #[test]
    fn every_window_holds_where_callers_wait(
        run in run(strategy::every_window(), 60, WAITS),
    ) {
        let (Algorithm::SlidingLog { permits, window }
        | Algorithm::SlidingWindow { permits, window, .. }) = run.algorithm else { unreachable!() };
        let window = window.as_nanos() as u64;
        run.keeps_within(|length| (i128::from(permits) * i128::from(length / window + 1), 1))?;
    }

    // proves: B1 (local), B2 (local), B3 (local), B10 (sync), A7 (cost and peek and give back)
    #[test]
    fn windows_and_logs_agree_where_callers_wait_and_give_back(
        run in run(strategy::window_or_log(), 60, WAITS_AND_GIVES_BACK),
    ) {
        run.agrees()?;
    }

    // proves: B3 (local)
    #[test]
    fn sliding_log_passes_its_permits_in_every_window_and_no_less(
        run in run(strategy::sliding_log(), 60, GIVES_BACK),
    ) {
        let Algorithm::SlidingLog { permits, window } = run.algorithm else { unreachable!() };
        let window = window.as_nanos() as u64;
        run.keeps_within(|length| (i128::from(permits) * i128::from(length / window + 1), 1))?;
    }

    // proves: B2 (local)
    #[test]
    fn sliding_window_passes_its_permits_in_every_window_and_no_less(
        run in run(strategy::sliding_window(), 60, GIVES_BACK),
    ) {
        let Algorithm::SlidingWindow { permits, window, .. } = run.algorithm else {
            unreachable!()
        };
        let window = window.as_nanos() as u64;
        run.keeps_within(|length| (i128::from(permits) * i128::from(length / window + 1), 1))?;
    }

    // proves: B2 (local)
    #[test]
    fn sliding_counter_never_passes_twice_its_permits_within_a_windows_length(
        run in run(strategy::sliding_counter(), 60, GIVES_BACK),
    ) {
        let Algorithm::SlidingCounter { permits, window } = run.algorithm else { unreachable!() };
        let window = window.as_nanos() as u64;
        // The estimate itself is what the oracle compares.
        run.keeps_within(|length| {
            let most = if length <= window { 2 * i128::from(permits) - 1 } else { i128::MAX };
            (most, 1)
        })?;
    }

    // proves: B5 (interval and aligned refill)
    #[test]
    fn interval_bucket_passes_burst_and_whole_refills_and_no_less(
        run in run(strategy::interval_bucket(), 60, GIVES_BACK),
    ) {
        let Algorithm::IntervalBucket { quota, aligned } = run.algorithm else { unreachable!() };
        let period = quota.period().as_nanos() as u64;
        let granted = |refills: u64| i128::from(quota.permits()) * i128::from(refills);
        let (burst, initial) = (quota.burst_permits(), quota.initial_permits());
        run.each_way(|passes| {
            let allowed = |length: u64| (i128::from(burst) + granted(length / period + 1), 1);
            prop_assert_eq!(first_excess(passes, allowed), None);
            from_first(passes, run.start, |length| {
                (i128::from(initial) + granted(length / period + u64::from(aligned)), 1)
            })
        })?;
    }

    // proves: B5 (interval refill), B10 (sync), A7 (cost and peek and give back)
    #[test]
    fn interval_bucket_agrees_where_callers_wait_and_give_back(
        run in run(strategy::interval_bucket(), 60, WAITS_AND_GIVES_BACK),
    ) {
        run.agrees()?;
    }

    // proves: B5 (initial permits)
    #[test]
    fn a_new_bucket_passes_its_initial_permits_and_rate_times_time_and_no_less(
        run in run(strategy::initial_bucket(), 60, GIVES_BACK),
    ) {
        let Algorithm::TokenBucket(quota) = run.algorithm else { unreachable!() };
        let period = nanos(quota.period());
        run.each_way(|passes| {
            prop_assert_eq!(first_excess(passes, burst_and_rate(&run.algorithm)), None);
            from_first(passes, run.start, |length| {
                let granted = i128::from(quota.permits()) * i128::from(length);
                (i128::from(quota.initial_permits()) * period + granted, period)
            })
        })?;
    }

    // proves: B4 (nginx), A7 (cost and peek and give back)
    #[test]
    fn nginx_is_nginxs_number_by_number(
        run in run(strategy::nginx(), 60, WAITS_AND_GIVES_BACK),
    ) {
        run.agrees()?;
    }

    // proves: B4 (nginx)
    #[test]
    fn nginx_passes_its_burst_and_one_and_rate_times_time(
        run in run(strategy::nginx(), 60, GIVES_BACK),
    ) {
        let Algorithm::Nginx { requests, per_minute, burst, .. } = run.algorithm else {
            unreachable!()
        };
        let per_second = i128::from(requests) * 1_000 / if per_minute { 60 } else { 1 };
        // In thousandths of a request; times are cut to milliseconds, so one more may count.
        run.keeps_within(|length| {
            let millis = i128::from(length / 1_000_000) + 1;
            let granted = per_second * millis / 1_000;
            ((i128::from(burst) + 1) * 1_000 + granted, 1_000)
        })?;
    }

    // proves: B4 (redis-cell), A7 (cost and peek and give back)
    #[test]
    fn redis_cell_is_redis_cells_nanosecond_by_nanosecond(
        run in run(strategy::redis_cell(), 60, WAITS_AND_GIVES_BACK),
    ) {
        run.agrees()?;
    }

    // proves: B4 (redis-cell)
    #[test]
    fn redis_cell_passes_its_burst_and_one_each_interval(
        run in run(strategy::redis_cell(), 60, GIVES_BACK),
    ) {
        let Algorithm::RedisCell { max_burst, count, period_seconds } = run.algorithm else {
            unreachable!()
        };
        let interval = (period_seconds as f64 * 1e9 / count as f64) as i128;
        run.keeps_within(|length| {
            ((i128::from(max_burst) + 1) * interval + i128::from(length), interval)
        })?;
    }

    // proves: B7 (warm-up and queueing), A7 (cost and peek and give back)
    #[test]
    fn sentinel_warm_up_queue_is_sentinels_and_exact(
        run in run(strategy::sentinel_warm_up_queue(), 60, WAITS_AND_GIVES_BACK),
    ) {
        run.agrees()?;
    }

    // proves: B7 (warm-up and queueing)
    #[test]
    fn sentinel_warm_up_queue_passes_one_and_its_warm_rate_times_time(
        run in run(strategy::sentinel_warm_up_queue(), 60, WAITS),
    ) {
        let Algorithm::SentinelWarmUpQueue { count, .. } = run.algorithm else { unreachable!() };
        let second = 1_000_000_000;
        // Who waits goes on at a whole nanosecond, up to one later than the exact time.
        run.keeps_within(|length| {
            (second + i128::from(count) * (i128::from(length) + 1), second)
        })?;
    }

    // proves: B6 (local)
    #[test]
    fn smooth_bursty_is_guavas_within_its_debt(
        run in run(strategy::smooth_bursty(), 60, WAITS),
    ) {
        run.keeps_within(burst_and_rate(&run.algorithm))?;
    }

    // proves: B6 (local), A7 (cost and peek and give back)
    #[test]
    fn smooth_bursty_agrees_where_callers_give_back(
        run in run(strategy::smooth_bursty(), 60, WAITS_AND_GIVES_BACK),
    ) {
        run.agrees()?;
    }

    // proves: A2 (refusing), B8 (permits with a guard)
    #[test]
    fn concurrency_never_has_more_inside_than_places_and_no_less(
        run in run(strategy::concurrency(), 60, GIVES_BACK),
    ) {
        let Algorithm::Concurrency { max } = run.algorithm else { unreachable!() };
        run.each_way(|passes| {
            let mut inside = 0;
            for pass in passes {
                inside += pass.permits;
                prop_assert!((0..=i128::from(max)).contains(&inside));
            }
            Ok(())
        })?;
    }
}

proptest! {
    #![proptest_config(cases(500))]

    // proves: B6 (local)
    #[test]
    fn smooth_warm_up_is_guavas_within_its_debt(
        run in run(strategy::smooth_warm_up(), 40, WAITS),
    ) {
        run.keeps_within(burst_and_rate(&run.algorithm))?;
    }

    // proves: B6 (local), A7 (cost and peek and give back)
    #[test]
    fn smooth_warm_up_agrees_where_callers_give_back(
        run in run(strategy::smooth_warm_up(), 40, WAITS_AND_GIVES_BACK),
    ) {
        run.agrees()?;
    }
}
