//! Promise 3: exact rates. After 10^9 permits the count is what fractions say, no rate is rounded
//! to 0 or to "unlimited", and a limit of 0 refuses everything.

use core::num::NonZeroU32;
use core::time::Duration;

use proptest::prelude::*;
use tidegate::{Algorithm, Ask, CalendarUnit, Quota, Retry, Timestamp};
use tidegate_sim::oracle::nanos;
use tidegate_sim::strategy::{EXACT_RATES, cases};

use crate::door::Way;

const START: Timestamp = Timestamp::from_secs(1_700_000_000);

/// Takes all that there is, again and again, never letting the bucket overflow, until so many
/// permits or the end of time. Each time the sum is what arithmetic on fractions says.
fn all_that_there_is(quota: Quota, way: Way, permits: i128, gaps: &[u64]) {
    let algorithm = Algorithm::TokenBucket(quota);
    let (rate, period) = (i128::from(quota.permits()), nanos(quota.period()));
    let burst = i128::from(quota.burst_permits());
    // Within this the bucket does not overflow, nor does time end soon (2^58 ns are 9 years).
    let longest = ((burst - 1) * period / rate).min(1 << 58);
    let longest = u64::try_from(longest).expect("below 2^58");
    let mut door = way.open(&algorithm, START);
    let (mut now, mut taken) = (START, 0);
    for gap in gaps.iter().cycle().take(5_000) {
        let there = door.peek(now, &Ask::ONE).remaining;
        let all = door.check(now, &Ask::new(there));
        assert!(all.is_allowed() && all.remaining == 0);
        taken += i128::from(there);
        let passed = i128::from(now.nanos_since(START));
        assert_eq!(taken, burst + rate * passed / period, "after {passed} ns");
        if taken >= permits || now.after_nanos(longest) == Timestamp::MAX {
            return;
        }
        now = now.after_nanos(gap % (longest + 1));
    }
}

proptest! {
    #![proptest_config(cases(60))]

    // proves: A1, B5 (greedy refill)
    #[test]
    fn a_thousand_million_permits_later_nothing_has_drifted(
        (permits, seconds) in prop::sample::select(&EXACT_RATES[..]),
        way in prop::sample::select(&Way::ALL[..]),
        gaps in prop::collection::vec(any::<u64>(), 50),
    ) {
        // Big asks: about a thousand of them.
        let quota = Quota::new(permits, Duration::from_secs(seconds)).burst(2_000_003);
        all_that_there_is(quota, way, 1_000_000_000, &gaps);
        // And small ones.
        let quota = quota.burst(3);
        all_that_there_is(quota, way, 1_000, &gaps);
    }
}

// shows: A1, B5 (greedy refill)
#[test]
fn what_people_ask_for_is_what_they_get() {
    let second = Duration::from_secs(1);
    // (quota, how long, how many pass beyond the burst)
    let cases = [
        (Quota::per_minute(10), 6 * second, 1),
        (Quota::per_minute(10), 60 * second, 10),
        (Quota::per_second(3), 1_000 * second, 3_000),
        (Quota::per_second(80_000), second, 80_000),
        (Quota::per_second(3_000_000), second, 3_000_000),
        (Quota::per_second(10_000_000), second, 10_000_000),
        (Quota::per_month(1), 30 * 86_400 * second, 1),
        (Quota::per_second(7), 3_600 * second, 25_200),
        (Quota::per_second(999_999), second, 999_999),
        (Quota::new(3, 5 * second), 5 * second, 3),
    ];
    for (quota, time, more) in cases {
        for way in Way::ALL {
            let quota = quota.burst(quota.permits().max(more) + 1);
            let mut door = way.open(&Algorithm::TokenBucket(quota), START);
            let burst = quota.burst_permits();
            assert!(door.check(START, &Ask::new(burst)).is_allowed());
            assert!(door.check(START, &Ask::ONE).is_denied());
            let just_before = START.after(time).as_nanos() - 1;
            let just_before = Timestamp::from_nanos(just_before);
            assert_eq!(door.peek(just_before, &Ask::ONE).remaining, more - 1);
            let then = START.after(time);
            assert!(door.check(then, &Ask::new(more + 1)).is_denied());
            assert!(door.check(then, &Ask::new(more)).is_allowed(), "{quota:?}");
        }
    }
}

// shows: A1
#[test]
fn a_limit_of_zero_refuses_everything_and_is_never_unlimited() {
    let none = Quota::per_second(0);
    let (permits, window) = (0, Duration::from_secs(1));
    let max_debt = Duration::from_hours(1);
    let limits = [
        Algorithm::TokenBucket(none),
        Algorithm::FixedWindow { permits, window },
        Algorithm::WindowFromFirst { permits, window },
        Algorithm::CalendarWindow {
            permits,
            unit: CalendarUnit::Month,
        },
        Algorithm::SlidingLog { permits, window },
        Algorithm::SmoothBursty {
            quota: none,
            max_debt,
        },
        Algorithm::SmoothWarmUp {
            quota: none,
            warm_up: window,
            cold_factor: 3,
            max_debt,
        },
        Algorithm::IntervalBucket {
            quota: none,
            aligned: true,
        },
        Algorithm::SlidingWindow {
            permits,
            window,
            parts: NonZeroU32::MIN,
        },
        Algorithm::SlidingCounter { permits, window },
        Algorithm::SentinelWarmUp {
            count: 0,
            warm_up_seconds: 10,
            cold_factor: 3,
        },
        Algorithm::SentinelWarmUpQueue {
            count: 0,
            warm_up_seconds: 10,
            cold_factor: 3,
        },
        Algorithm::Concurrency { max: 0 },
    ];
    for algorithm in limits {
        for way in Way::ALL {
            if way == Way::Limiter && algorithm.is_gate() {
                continue;
            }
            let mut door = way.open(&algorithm, START);
            for now in [START, START.after(Duration::from_hours(9_999_999))] {
                let patient = Ask::ONE.within(Duration::MAX);
                for ask in [Ask::ONE, patient, Ask::new(u64::MAX)] {
                    let decision = door.check(now, &ask);
                    assert_eq!(decision.retry(), Some(Retry::Never), "{algorithm:?}");
                    assert_eq!((decision.limit, decision.remaining), (0, 0));
                }
                assert!(
                    door.check(now, &Ask::new(0)).is_allowed(),
                    "it asks nothing"
                );
            }
        }
    }
}

// shows: A1
#[test]
fn the_largest_and_the_smallest_limits_there_are() {
    let most = Quota::MAX_PERMITS;
    let extremes = [
        Quota::new(most, Duration::from_nanos(1)),
        Quota::new(1, Quota::MAX_PERIOD),
        Quota::new(most, Quota::MAX_PERIOD).burst(1),
        Quota::new(1, Quota::MAX_PERIOD).burst(most),
        Quota::new(most - 1, Duration::from_nanos(34_559_999_999_999_999)).burst(most),
    ];
    for quota in extremes {
        for way in Way::ALL {
            for start in [Timestamp::EPOCH, START] {
                let mut door = way.open(&Algorithm::TokenBucket(quota), start);
                let burst = quota.burst_permits();
                assert!(door.check(start, &Ask::new(burst + 1)).is_denied());
                assert!(door.check(start, &Ask::new(burst)).is_allowed());
                let denied = door.check(start, &Ask::ONE);
                let wait = denied.retry_after().expect("a wait, however long");
                let exact = quota.period().as_nanos().div_ceil(quota.permits().into());
                assert_eq!(wait.as_nanos(), exact, "{quota:?}");
                assert!(door.check(start.after(wait), &Ask::ONE).is_allowed());
            }
        }
    }
    let beyond = [
        Quota::new(most + 1, Duration::from_secs(1)),
        Quota::per_second(1).burst(most + 1),
        Quota::new(1, Quota::MAX_PERIOD + Duration::from_nanos(1)),
        Quota::per_second(u64::MAX),
        Quota::new(u64::MAX, Duration::MAX),
        Quota::new(1, Duration::ZERO),
    ];
    for quota in beyond {
        assert!(
            Algorithm::TokenBucket(quota).validate().is_err(),
            "{quota:?}"
        );
    }
}
