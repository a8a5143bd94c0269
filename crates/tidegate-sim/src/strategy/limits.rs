//! Random limits of each algorithm.

use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;
use tidegate::{Algorithm, CalendarUnit, Quota};

use super::{EXACT_RATES, log_uniform};

fn duration(most: Duration) -> BoxedStrategy<Duration> {
    log_uniform(most.as_nanos() as u64)
        .prop_map(Duration::from_nanos)
        .boxed()
}

/// A rate that grants something, and a burst.
pub fn quota() -> BoxedStrategy<Quota> {
    let known = prop::sample::select(&EXACT_RATES[..])
        .prop_map(|(permits, seconds)| Quota::new(permits, Duration::from_secs(seconds)));
    let any = (log_uniform(Quota::MAX_PERMITS), duration(Quota::MAX_PERIOD))
        .prop_map(|(permits, period)| Quota::new(permits, period));
    let rate = prop_oneof![2 => known, 1 => any];
    let burst = prop_oneof![
        2 => Just(None),
        2 => (1..=20_u64).prop_map(Some),
        1 => log_uniform(Quota::MAX_PERMITS).prop_map(Some),
    ];
    (rate, burst)
        .prop_map(|(rate, burst)| burst.map_or(rate, |burst| rate.burst(burst)))
        .boxed()
}

/// A token bucket.
pub fn token_bucket() -> BoxedStrategy<Algorithm> {
    quota().prop_map(Algorithm::TokenBucket).boxed()
}

/// A fixed window.
pub fn fixed_window() -> BoxedStrategy<Algorithm> {
    (log_uniform(Quota::MAX_PERMITS), duration(Quota::MAX_PERIOD))
        .prop_map(|(permits, window)| Algorithm::FixedWindow { permits, window })
        .boxed()
}

/// Windows that begin with a request.
pub fn window_from_first() -> BoxedStrategy<Algorithm> {
    (log_uniform(Quota::MAX_PERMITS), duration(Quota::MAX_PERIOD))
        .prop_map(|(permits, window)| Algorithm::WindowFromFirst { permits, window })
        .boxed()
}

/// Days, weeks, months and years.
pub fn calendar_window() -> BoxedStrategy<Algorithm> {
    let unit = prop::sample::select(vec![
        CalendarUnit::Day,
        CalendarUnit::Week,
        CalendarUnit::Month,
        CalendarUnit::Year,
    ]);
    let permits = prop_oneof![3 => 1..=20_u64, 1 => log_uniform(Quota::MAX_PERMITS)];
    (permits, unit)
        .prop_map(|(permits, unit)| Algorithm::CalendarWindow { permits, unit })
        .boxed()
}

/// A token bucket that is not full at first.
pub fn initial_bucket() -> BoxedStrategy<Algorithm> {
    initial_quota().prop_map(Algorithm::TokenBucket).boxed()
}

/// A quota of which a new key has less than the burst.
fn initial_quota() -> BoxedStrategy<Quota> {
    let part = prop_oneof![1 => Just(0), 3 => 0..1_000_u64];
    (quota(), part)
        .prop_map(|(quota, part)| {
            let burst = u128::from(quota.burst_permits());
            quota.initial((burst * u128::from(part) / 1_000) as u64)
        })
        .boxed()
}

/// A token bucket that is refilled by whole periods, aligned or not.
pub fn interval_bucket() -> BoxedStrategy<Algorithm> {
    let quota = prop_oneof![2 => quota(), 1 => initial_quota()];
    (quota, any::<bool>())
        .prop_map(|(quota, aligned)| Algorithm::IntervalBucket { quota, aligned })
        .boxed()
}

/// A sliding window of parts.
pub fn sliding_window() -> BoxedStrategy<Algorithm> {
    let parts = prop_oneof![2 => 1..=12_u32, 1 => 1..=1_000_u32];
    (
        log_uniform(Quota::MAX_PERMITS),
        duration(Quota::MAX_PERIOD),
        parts,
    )
        .prop_map(|(permits, window, parts)| {
            // A part is at least a nanosecond.
            let most = u32::try_from(window.as_nanos()).unwrap_or(u32::MAX);
            let parts = NonZeroU32::new(parts.min(most)).unwrap_or(NonZeroU32::MIN);
            Algorithm::SlidingWindow {
                permits,
                window,
                parts,
            }
        })
        .boxed()
}

/// A two-window counter.
pub fn sliding_counter() -> BoxedStrategy<Algorithm> {
    (log_uniform(Quota::MAX_PERMITS), duration(Quota::MAX_PERIOD))
        .prop_map(|(permits, window)| Algorithm::SlidingCounter { permits, window })
        .boxed()
}

/// nginx's `limit_req`.
pub fn nginx() -> BoxedStrategy<Algorithm> {
    let requests = prop_oneof![3 => 1..=3_000_u64, 1 => log_uniform(Quota::MAX_PERMITS)];
    let burst = prop_oneof![3 => 0..=20_u64, 1 => log_uniform(Quota::MAX_PERMITS)];
    let delay = prop_oneof![
        2 => Just(None),
        2 => Just(Some(0)),
        2 => (0..=20_u64).prop_map(Some),
        1 => log_uniform(Quota::MAX_PERMITS).prop_map(Some),
    ];
    (requests, any::<bool>(), burst, delay)
        .prop_map(|(requests, per_minute, burst, delay)| Algorithm::Nginx {
            requests,
            per_minute,
            burst,
            delay,
        })
        .boxed()
}

/// Sentinel's warm-up with queueing.
pub fn sentinel_warm_up_queue() -> BoxedStrategy<Algorithm> {
    let count = prop_oneof![3 => 1..=40_u64, 1 => log_uniform(Quota::MAX_PERMITS >> 8)];
    let warm_up = prop_oneof![3 => 1..=20_u32, 1 => 1..=34_560_000_u32];
    let cold_factor = prop_oneof![2 => Just(3), 1 => 2..=100_u32];
    (count, warm_up, cold_factor)
        .prop_map(
            |(count, warm_up_seconds, cold_factor)| Algorithm::SentinelWarmUpQueue {
                count,
                warm_up_seconds,
                cold_factor,
            },
        )
        .boxed()
}

/// redis-cell's `CL.THROTTLE`.
pub fn redis_cell() -> BoxedStrategy<Algorithm> {
    let max_burst = prop_oneof![3 => 0..=20_u64, 1 => 0..Quota::MAX_PERMITS];
    let count = prop_oneof![3 => 1..=100_u64, 1 => log_uniform(Quota::MAX_PERMITS)];
    let period = prop_oneof![3 => 1..=3_600_u64, 1 => log_uniform(1 << 40)];
    (max_burst, count, period)
        .prop_map(|(max_burst, count, period_seconds)| Algorithm::RedisCell {
            max_burst,
            count,
            period_seconds,
        })
        .prop_filter("an interval", |algorithm| algorithm.validate().is_ok())
        .boxed()
}

/// A sliding log.
pub fn sliding_log() -> BoxedStrategy<Algorithm> {
    (log_uniform(1 << 24), duration(Quota::MAX_PERIOD))
        .prop_map(|(permits, window)| Algorithm::SlidingLog { permits, window })
        .boxed()
}

fn max_debt() -> BoxedStrategy<Duration> {
    prop_oneof![
        1 => Just(Duration::ZERO),
        1 => Just(Duration::from_hours(1)),
        2 => duration(Duration::from_hours(24 * 365)),
    ]
    .boxed()
}

/// Guava's smooth bursty.
pub fn smooth_bursty() -> BoxedStrategy<Algorithm> {
    let bounded = (quota(), max_debt())
        .prop_map(|(quota, max_debt)| Algorithm::SmoothBursty { quota, max_debt });
    let default = quota().prop_map(Algorithm::smooth_bursty);
    prop_oneof![3 => bounded, 1 => default].boxed()
}

/// Guava's smooth warm-up.
pub fn smooth_warm_up() -> BoxedStrategy<Algorithm> {
    let cold_factor = prop_oneof![2 => Just(3), 1 => 2..=100_u32];
    let warm_up = prop_oneof![
        2 => (1..=60_u64).prop_map(Duration::from_secs),
        1 => duration(Duration::from_hours(24)),
    ];
    let algorithm = (quota(), warm_up, cold_factor, prop::option::of(max_debt())).prop_map(
        |(quota, warm_up, cold_factor, max_debt)| match max_debt {
            None => Algorithm::smooth_warm_up(quota, warm_up, cold_factor),
            Some(max_debt) => Algorithm::SmoothWarmUp {
                quota,
                warm_up,
                cold_factor,
                max_debt,
            },
        },
    );
    algorithm
        .prop_filter("too long a warm-up for this rate", |algorithm| {
            algorithm.validate().is_ok()
        })
        .boxed()
}

/// A concurrency limit.
pub fn concurrency() -> BoxedStrategy<Algorithm> {
    prop_oneof![3 => 0..=10_u64, 1 => log_uniform(Quota::MAX_PERMITS)]
        .prop_map(|max| Algorithm::Concurrency { max })
        .boxed()
}

/// Any limit that counts over time, in exact whole numbers.
pub fn exact() -> BoxedStrategy<Algorithm> {
    prop_oneof![
        2 => token_bucket(),
        1 => fixed_window(),
        1 => window_from_first(),
        1 => calendar_window(),
        1 => sliding_log(),
        1 => smooth_bursty(),
        1 => initial_bucket(),
        1 => interval_bucket(),
        1 => sliding_window(),
        1 => sliding_counter(),
        1 => nginx(),
        1 => sentinel_warm_up_queue(),
        1 => redis_cell(),
    ]
    .boxed()
}

/// Any limit that counts over time.
pub fn rate_limit() -> BoxedStrategy<Algorithm> {
    prop_oneof![4 => exact(), 1 => smooth_warm_up()].boxed()
}

/// A limit that holds in every window.
pub fn every_window() -> BoxedStrategy<Algorithm> {
    prop_oneof![sliding_log(), sliding_window()].boxed()
}

/// A limit of windows in which callers can wait.
pub fn window_or_log() -> BoxedStrategy<Algorithm> {
    prop_oneof![
        2 => fixed_window(),
        2 => window_from_first(),
        1 => calendar_window(),
        2 => every_window(),
    ]
    .boxed()
}
