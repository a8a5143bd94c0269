//! Each algorithm beside the token bucket: what a check costs, and what a key.

use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::Duration;

use tidegate::{Algorithm, CalendarUnit, KeyedLimiter, Limiter, Quota};

use crate::keys::{KEYS, STREAM, Spread, address, stream};
use crate::memory;
use crate::pairs::{Side, compare};
use crate::quanta_clock::QuantaClock;

const HOUR: Duration = Duration::from_hours(1);

/// The name of each, and one of so many permits in a window.
fn all(permits: u64, window: Duration) -> Vec<(&'static str, Algorithm)> {
    let (quota, max_debt) = (Quota::new(permits, window), HOUR);
    let mut all = vec![
        ("token_bucket", Algorithm::TokenBucket(quota)),
        (
            "token_bucket, refill: interval",
            Algorithm::IntervalBucket {
                quota,
                aligned: false,
            },
        ),
        ("fixed_window", Algorithm::FixedWindow { permits, window }),
        (
            "fixed_window, align: first",
            Algorithm::WindowFromFirst { permits, window },
        ),
        (
            "fixed_window, align: calendar",
            Algorithm::CalendarWindow {
                permits: Quota::MAX_PERMITS,
                unit: CalendarUnit::Month,
            },
        ),
        (
            "sliding_window, 10 parts",
            Algorithm::SlidingWindow {
                permits,
                window,
                parts: NonZeroU32::MIN.saturating_add(9),
            },
        ),
        (
            "sliding_counter",
            Algorithm::SlidingCounter { permits, window },
        ),
        ("sliding_log", Algorithm::SlidingLog { permits, window }),
        ("smooth_bursty", Algorithm::SmoothBursty { quota, max_debt }),
        (
            "smooth_warm_up",
            Algorithm::SmoothWarmUp {
                quota,
                warm_up: window / 2,
                cold_factor: 3,
                max_debt,
            },
        ),
    ];
    all.extend(of_other_systems(permits));
    all
}

/// Those that copy another system.
fn of_other_systems(permits: u64) -> Vec<(&'static str, Algorithm)> {
    vec![
        (
            "nginx",
            Algorithm::Nginx {
                requests: permits,
                per_minute: true,
                burst: 1_000_000_000,
                delay: None,
            },
        ),
        (
            "sentinel_warm_up",
            Algorithm::SentinelWarmUp {
                count: 1_000_000_000,
                warm_up_seconds: 1,
                cold_factor: 3,
            },
        ),
        (
            "sentinel_warm_up_queue",
            Algorithm::SentinelWarmUpQueue {
                count: 1_000_000_000,
                warm_up_seconds: 1,
                cold_factor: 3,
            },
        ),
    ]
}

/// The algorithm of this name.
pub(crate) fn named(name: &str) -> Option<Algorithm> {
    let found = all(1_000, HOUR)
        .into_iter()
        .find(|(known, _)| *known == name);
    found.map(|(_, algorithm)| algorithm)
}

/// Prints what a check costs, and then what a key costs, of each whose name has `filter` in it.
pub(crate) fn run(filter: &str) -> Result<(), String> {
    println!("algorithms: ns per check, allowed, one thread, quanta clock, five runs in turn");
    let chosen = |(name, _): &(&str, Algorithm)| name.contains(filter);
    // A window that ends soon, and in which more fit than come: nothing is ever refused.
    let short = all(2_000, Duration::from_micros(10));
    let mut hot = Vec::new();
    for (name, algorithm) in short.iter().filter(|one| chosen(one)) {
        let limiter = Limiter::with_clock(*algorithm, QuantaClock::new());
        hot.push((*name, limiter.map_err(|error| error.to_string())?));
    }
    let sides: Vec<Side<'_>> = hot
        .iter()
        .map(|(name, limiter)| {
            Side::new(name, |_| {
                black_box(limiter.check().is_allowed());
            })
        })
        .collect();
    let hot = compare(1, &sides);
    let keys = stream(Spread::Uniform);
    let algorithms: Vec<_> = all(1_000, HOUR).into_iter().filter(chosen).collect();
    for ((name, algorithm), hot) in algorithms.iter().zip(hot) {
        let many = many(name, *algorithm, &keys)?;
        println!("{name:<32} one hot key {hot:6.1} ns | 1M IPv4-text keys {many:6.1} ns");
    }
    println!("bytes of resident memory per key, which has been asked once");
    for (name, _) in algorithms {
        memory::row_of(name, KEYS);
    }
    if "concurrency".contains(filter) {
        memory::row_of("concurrency", KEYS);
    }
    Ok(())
}

/// Nanoseconds of a check of one of a million keys.
fn many(name: &'static str, algorithm: Algorithm, keys: &[String]) -> Result<f64, String> {
    let first = memory::first_ask(&algorithm);
    let built = KeyedLimiter::builder(algorithm)
        .max_keys(2 * KEYS as usize)
        .clock(QuantaClock::new());
    let limiter = built.build().map_err(|error| error.to_string())?;
    for key in (0..KEYS).map(address) {
        let _ = limiter.check_ask(key.as_str(), first);
    }
    let side = Side::new(name, |index| {
        let key = &keys[index & (STREAM - 1)];
        black_box(limiter.check(key.as_str()).is_allowed());
    });
    compare(1, &[side]).pop().ok_or_else(|| name.to_owned())
}
