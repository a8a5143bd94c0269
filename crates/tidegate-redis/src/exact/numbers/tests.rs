use std::num::NonZeroU32;

use proptest::prelude::*;

use super::*;

fn numbers(algorithm: impl Into<Algorithm>) -> Result<(u64, u64, u64), NotShared> {
    Numbers::of(&algorithm.into()).map(|numbers| (numbers.a, numbers.b, numbers.tick))
}

#[test]
fn rates_are_in_lowest_terms_at_the_finest_tick() {
    assert_eq!(numbers(Quota::per_minute(10)), Ok((1, 6_000_000, 1)));
    assert_eq!(numbers(Quota::per_second(3)), Ok((3, 1_000_000, 1)));
    assert_eq!(numbers(Quota::per_second(80_000)), Ok((2, 25, 1)));
    assert_eq!(numbers(Quota::per_second(3_000_000)), Ok((3, 1, 1)));
    assert_eq!(numbers(Quota::per_month(1)), Ok((1, 2_592_000_000_000, 1)));
    assert_eq!(numbers(Quota::per_second(0)), Ok((1_000, 1, 1)));
    // 99,991 is a prime: 2.6e12 us a month, times the burst, is too much. Milliseconds are not.
    let prime = Quota::per_month(99_991);
    assert_eq!(numbers(prime), Ok((99_991, 2_592_000_000, 1_000)));
}

#[test]
fn what_redis_does_not_count_exactly_is_refused() {
    let days = |days: u64| Duration::from_hours(24 * days);
    let fixed = |window| Algorithm::FixedWindow { permits: 1, window };
    let parts = |window, parts| Algorithm::SlidingWindow {
        permits: 1,
        window,
        parts: NonZeroU32::new(parts).unwrap(),
    };
    let counter = |permits, window| Algorithm::SlidingCounter { permits, window };
    let log = |permits| Algorithm::SlidingLog {
        permits,
        window: days(1),
    };
    let odd = Duration::from_nanos(1_500);
    let uneven = days(399) + Duration::from_micros(1);
    let micro = Duration::from_micros(1);
    let cases = [
        (fixed(odd), NotShared::Ticks(odd)),
        (parts(micro, 10), NotShared::Ticks(micro)),
        (counter(1 << 40, days(400)), NotShared::TooLarge),
        (counter(1 << 20, uneven), NotShared::Ticks(uneven)),
        (log((1 << 16) + 1), NotShared::LogTooLong((1 << 16) + 1)),
        (Quota::per_month((1 << 40) - 87).into(), NotShared::TooLarge),
    ];
    for (algorithm, expected) in cases {
        assert_eq!(numbers(algorithm), Err(expected), "{algorithm:?}");
    }
    for algorithm in [
        fixed(micro),
        fixed(uneven),
        counter(1 << 26, days(300)),
        log(1 << 16),
    ] {
        assert!(numbers(algorithm).is_ok(), "{algorithm:?}");
    }
}

#[test]
fn what_stays_local_says_so() {
    let quota = Quota::per_second(1);
    let algorithms = [
        Algorithm::Nginx {
            requests: 1,
            per_minute: false,
            burst: 0,
            delay: None,
        },
        Algorithm::SentinelWarmUp {
            count: 10,
            warm_up_seconds: 10,
            cold_factor: 3,
        },
        Algorithm::SentinelWarmUpQueue {
            count: 10,
            warm_up_seconds: 10,
            cold_factor: 3,
        },
        Algorithm::RedisCell {
            max_burst: 1,
            count: 1,
            period_seconds: 1,
        },
        Algorithm::smooth_warm_up(quota, Duration::from_secs(10), 3),
        Algorithm::CalendarWindow {
            permits: 1,
            unit: CalendarUnit::Month,
        },
        Algorithm::CalendarWindow {
            permits: 1,
            unit: CalendarUnit::Year,
        },
        Algorithm::Concurrency { max: 1 },
    ];
    for algorithm in algorithms {
        let error = Numbers::of(&algorithm).unwrap_err();
        assert!(matches!(error, NotShared::Local(_)), "{algorithm:?}");
        assert!(
            error.to_string().contains("by each node by itself"),
            "{error}"
        );
    }
    let none = Quota::new(1, Duration::ZERO);
    assert_eq!(numbers(none), Err(NotShared::Quota(QuotaError::ZeroPeriod)));
}

proptest! {
    /// The rate is the quota's, in lowest terms, and what the script multiplies stays exact; no
    /// finer tick would do.
    #[test]
    fn no_rate_is_rounded(
        permits in 1..=Quota::MAX_PERMITS,
        shift in 0..40_u32,
        nanos in 1..=34_560_000_000_000_000_u64,
        period_shift in 0..50_u32,
        burst in 1..=1_000_000_u64,
    ) {
        let (permits, nanos) = ((permits >> shift).max(1), (nanos >> period_shift).max(1));
        let quota = Quota::new(permits, Duration::from_nanos(nanos)).burst(burst);
        let most = 1_u128 << 51;
        let exact = |tick: u64| {
            let (up, down) = (u128::from(permits) * u128::from(tick) * 1_000, u128::from(nanos));
            let divisor = gcd(up, down);
            (up / divisor, down / divisor)
        };
        let fits = |tick: &u64| {
            let (a, b) = exact(*tick);
            a <= most && b <= most && b * u128::from(burst) <= most
        };
        let finest = TICKS.into_iter().find(fits);
        match numbers(quota) {
            Ok((a, b, tick)) => {
                prop_assert_eq!(Some(tick), finest);
                prop_assert_eq!((u128::from(a), u128::from(b)), exact(tick));
            }
            Err(error) => {
                prop_assert_eq!(error, NotShared::TooLarge);
                prop_assert_eq!(finest, None);
            }
        }
    }
}
