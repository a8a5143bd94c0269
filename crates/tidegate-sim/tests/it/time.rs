//! Promise 7: a step back counts as no time passed, years of rest neither overflow nor give more
//! than the limit, and time may begin and end anywhere.

use core::num::NonZeroU32;
use core::time::Duration;

use proptest::prelude::*;
use tidegate::{Algorithm, Ask, CalendarUnit, Quota, Timestamp};
use tidegate_sim::oracle::{Request, oracle_of};
use tidegate_sim::strategy::{self, Allowed, cases, scale};

use crate::agree::Pair;
use crate::door::Way;

const STEPS_BACK: Allowed = Allowed {
    steps_back: true,
    patience: true,
    give_back: true,
    force: false,
};

proptest! {
    #![proptest_config(cases(500))]

    // proves: H1 (bounded memory)
    #[test]
    fn a_step_back_counts_as_no_time_passed(
        algorithm in strategy::exact(),
        start in strategy::start(),
        steps in strategy::schedule(60, STEPS_BACK),
    ) {
        Pair::new(algorithm, Way::Keyed, start).run(&steps)?;
    }

    // A meter by itself remembers no more of the time than its state says. It may refuse more
    // while the clock is behind, never admit more.
    // proves: H1 (bounded memory)
    #[test]
    fn a_step_back_grants_nothing_to_a_bare_meter(
        algorithm in strategy::exact(),
        start in strategy::start(),
        steps in strategy::schedule(60, STEPS_BACK),
    ) {
        let scale = scale(&algorithm);
        let (mut now, mut told) = (start.as_nanos(), 0);
        let mut door = Way::Meter.open(&algorithm, Timestamp::EPOCH);
        let mut oracle = oracle_of(&algorithm, 0);
        for step in &steps {
            now = step.time.from(now, scale, told);
            let request = Request::at(now, step.size.permits(&*oracle, now));
            let decision = door.check(Timestamp::from_nanos(now), &Ask::new(request.permits));
            if decision.is_allowed() {
                prop_assert_eq!(oracle.delay_of(request), Some(0));
                if request.permits > 0 {
                    oracle.take(request);
                }
            }
            told = decision.retry_after().map_or(0, |wait| wait.as_nanos() as u64);
        }
    }
}

proptest! {
    #![proptest_config(cases(100))]

    // proves: H1 (bounded memory)
    #[test]
    fn a_step_back_counts_as_no_time_passed_while_warming_up(
        algorithm in strategy::smooth_warm_up(),
        start in strategy::start(),
        steps in strategy::schedule(40, STEPS_BACK),
    ) {
        Pair::new(algorithm, Way::Keyed, start).run(&steps)?;
    }
}

fn nginx(delay: Option<u64>) -> Algorithm {
    Algorithm::Nginx {
        requests: 59,
        per_minute: true,
        burst: 4,
        delay,
    }
}

fn every_algorithm() -> Vec<Algorithm> {
    let quota = Quota::per_second(10).burst(20);
    let (permits, window) = (20, Duration::from_secs(3));
    vec![
        Algorithm::TokenBucket(quota),
        Algorithm::TokenBucket(Quota::per_second(999_999_937).burst(20)),
        Algorithm::TokenBucket(Quota::per_month(1)),
        Algorithm::FixedWindow { permits, window },
        Algorithm::WindowFromFirst { permits, window },
        Algorithm::CalendarWindow {
            permits,
            unit: CalendarUnit::Year,
        },
        Algorithm::SlidingLog { permits, window },
        Algorithm::TokenBucket(quota.initial(3)),
        Algorithm::IntervalBucket {
            quota,
            aligned: false,
        },
        Algorithm::IntervalBucket {
            quota: quota.initial(1),
            aligned: true,
        },
        Algorithm::SlidingWindow {
            permits,
            window,
            parts: NonZeroU32::new(7).expect("not 0"),
        },
        Algorithm::SlidingCounter { permits, window },
        nginx(None),
        nginx(Some(2)),
        Algorithm::RedisCell {
            max_burst: 19,
            count: 7,
            period_seconds: 3,
        },
        Algorithm::SentinelWarmUpQueue {
            count: 10,
            warm_up_seconds: 10,
            cold_factor: 3,
        },
        Algorithm::SmoothBursty {
            quota,
            max_debt: Duration::from_secs(10),
        },
        Algorithm::SmoothWarmUp {
            quota,
            warm_up: window,
            cold_factor: 3,
            max_debt: Duration::from_secs(10),
        },
    ]
}

// shows: A1, H1 (bounded memory)
#[test]
fn a_key_idle_for_years_has_its_limit_and_no_more() {
    for algorithm in every_algorithm() {
        for way in Way::ALL {
            let start = Timestamp::from_secs(1_700_000_000);
            let mut door = way.open(&algorithm, start);
            let first = door.check(start, &Ask::ONE);
            assert!(first.is_allowed(), "{algorithm:?}");
            for years in [10, 50, 90] {
                let later = start.after(Duration::from_hours(24 * 365 * years));
                let rested = door.peek(later, &Ask::ONE);
                assert_eq!(rested.remaining, rested.limit, "{algorithm:?}");
                let all = door.check(later, &Ask::new(rested.limit));
                assert!(all.is_allowed() && all.delay().is_zero(), "{algorithm:?}");
                assert_eq!(all.remaining, 0, "{algorithm:?}");
            }
        }
    }
}

// shows: H1 (bounded memory)
#[test]
fn time_ends_without_harm() {
    let sentinel = Algorithm::SentinelWarmUp {
        count: 10,
        warm_up_seconds: 10,
        cold_factor: 3,
    };
    for algorithm in every_algorithm().into_iter().chain([sentinel]) {
        for way in Way::ALL {
            for start in [Timestamp::EPOCH, Timestamp::MAX] {
                let mut door = way.open(&algorithm, start);
                for nanos in [1 << 62, (1 << 62) + 1, 1 << 63, u64::MAX] {
                    let now = Timestamp::from_nanos(nanos);
                    let permits = door.check(now, &Ask::ONE).limit;
                    let huge = door.check(now, &Ask::new(u64::MAX).within(Duration::MAX));
                    assert!(huge.is_denied(), "{algorithm:?}");
                    let patient = Ask::new(permits).within(Duration::MAX);
                    let decision = door.check(now, &patient);
                    assert!(decision.remaining <= decision.limit, "{algorithm:?}");
                }
                let _ = door.check(Timestamp::EPOCH, &Ask::ONE);
            }
        }
    }
}
