//! The engine's rows: one hot key, many keys, concurrency.

use std::hint::black_box;
use std::num::NonZeroU32;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use governor::RateLimiter as Governor;
use throttlecrab::{PeriodicStore, RateLimiter as Throttlecrab};
use tidegate::{Clock, ConcurrencyLimiter, Limiter, Quota, SystemClock};
use tokio::sync::Semaphore;

use crate::floor::gcra;
use crate::keys::Spread;
use crate::many;
use crate::pairs::{Side, Target, row};
use crate::quanta_clock::{CachedClock, QuantaClock};

/// So much that all is allowed, on both sides.
fn open() -> (governor::Quota, Quota) {
    let most = NonZeroU32::MAX;
    let each = NonZeroU32::new(1_000_000_000).unwrap_or(most);
    let theirs = governor::Quota::per_second(each).allow_burst(most);
    (
        theirs,
        Quota::per_second(1_000_000_000).burst(u64::from(u32::MAX)),
    )
}

/// So little that all but the first is denied, on both sides.
pub(crate) fn shut() -> (governor::Quota, Quota) {
    let theirs = governor::Quota::with_period(Duration::from_hours(10))
        .unwrap_or_else(|| governor::Quota::per_hour(NonZeroU32::MIN));
    (theirs, Quota::one_per(Duration::from_hours(10)))
}

/// Runs all rows whose title has `filter` in it.
pub(crate) fn run(filter: &str) {
    println!("engine: ns per operation and thread, five paired runs; ratio = tidegate / first");
    hot(filter);
    concurrency(filter);
    for spread in [Spread::Uniform, Spread::Zipf] {
        many::run(filter, spread);
    }
}

fn hot(filter: &str) {
    let (theirs, ours) = open();
    for threads in [1, 2] {
        let governor = Governor::direct(theirs);
        let word = AtomicU64::new(0);
        let quanta = quanta::Clock::new();
        let limiter = limiter(ours, QuantaClock::new());
        let sides = [
            Side::new("governor", |_| {
                black_box(governor.check().is_ok());
            }),
            Side::new("floor CAS + rdtsc", |_| {
                black_box(gcra(&word, quanta.raw(), 1, 1 << 50));
            }),
            Side::new("tidegate", |_| {
                black_box(limiter.check().is_allowed());
            }),
        ];
        row(
            &format!("hot key, allowed, {threads} thread(s), quanta"),
            (
                filter,
                Target::Ratio(if threads == 1 { 0.95 } else { 1.0 / 1.2 }),
            ),
            threads,
            &sides,
        );
    }
    hot_striped(filter);
    hot_as_it_comes(filter);
    hot_cached(filter);
    denied(filter);
}

/// The word of memory that cores hand to each other is what a check costs them: so each has a part
/// of the limit lent to it.
fn hot_striped(filter: &str) {
    thread_local! {
        static OWN: AtomicU64 = const { AtomicU64::new(0) };
    }
    for (verdict, (theirs, ours)) in [("allowed", open()), ("1M/s", crowded())] {
        for threads in [1, 2] {
            let governor = Governor::direct(theirs);
            let quanta = quanta::Clock::new();
            let limiter = match Limiter::striped_with_clock(ours, QuantaClock::new()) {
                Ok(limiter) => limiter,
                Err(error) => panic!("the benchmark's own quota: {error}"),
            };
            let sides = [
                Side::new("governor", |_| {
                    black_box(governor.check().is_ok());
                }),
                Side::new("floor fetch_add of one's own + rdtsc", |_| {
                    let now = quanta.raw();
                    black_box(OWN.with(|own| own.fetch_add(now, Ordering::AcqRel)));
                }),
                Side::new("tidegate", |_| {
                    black_box(limiter.check().is_allowed());
                }),
            ];
            let target = if threads == 2 {
                Target::Ratio(0.25)
            } else {
                Target::Nothing
            };
            row(
                &format!("hot key, striped, {verdict}, {threads} thread(s), quanta"),
                (filter, target),
                threads,
                &sides,
            );
        }
    }
}

/// A limit that a core or two ask for more than it has.
fn crowded() -> (governor::Quota, Quota) {
    let each = NonZeroU32::new(1_000_000).unwrap_or(NonZeroU32::MIN);
    let burst = NonZeroU32::new(10_000).unwrap_or(NonZeroU32::MIN);
    let theirs = governor::Quota::per_second(each).allow_burst(burst);
    (theirs, Quota::per_second(1_000_000).burst(10_000))
}

/// Most of a refusal is the reading of a clock: beside it, what is left without one.
fn denied(filter: &str) {
    let (theirs, ours) = shut();
    for threads in [1, 2] {
        let governor = Governor::direct(theirs);
        let (word, quanta) = (AtomicU64::new(u64::MAX), quanta::Clock::new());
        let limiter = limiter(ours, QuantaClock::new());
        let _ = (governor.check(), limiter.check());
        let sides = [
            Side::new("governor", |_| {
                black_box(governor.check().is_ok());
            }),
            Side::new("floor rdtsc alone", |_| {
                black_box(quanta.raw());
            }),
            Side::new("floor load + rdtsc", |_| {
                black_box(gcra(&word, quanta.raw(), 1, 1));
            }),
            Side::new("tidegate", |_| {
                black_box(limiter.check().is_allowed());
            }),
        ];
        row(
            &format!("hot key, denied, {threads} thread(s), quanta"),
            (filter, Target::Ratio(0.4)),
            threads,
            &sides,
        );
    }
    let governor =
        Governor::direct_with_clock(theirs, governor::clock::FakeRelativeClock::default());
    let limiter = limiter(ours, CachedClock(SystemClock::new().now()));
    let _ = (governor.check(), limiter.check());
    let sides = [
        Side::new("governor", |_| {
            black_box(governor.check().is_ok());
        }),
        Side::new("tidegate", |_| {
            black_box(limiter.check().is_allowed());
        }),
    ];
    row(
        "hot key, denied, a clock that stands",
        (filter, Target::Nothing),
        1,
        &sides,
    );
}

/// Each with the clock that it has unless told otherwise.
fn hot_as_it_comes(filter: &str) {
    let (theirs, ours) = open();
    let (governor, clock) = (Governor::direct(theirs), SystemClock::new());
    let limiter = limiter(ours, SystemClock::new());
    let sides = [
        Side::new("governor (quanta)", |_| {
            black_box(governor.check().is_ok());
        }),
        Side::new("floor system clock alone", |_| {
            black_box(clock.now());
        }),
        Side::new("tidegate (system clock)", |_| {
            black_box(limiter.check().is_allowed());
        }),
    ];
    row(
        "hot key, allowed, as it comes",
        (filter, Target::Nothing),
        1,
        &sides,
    );
}

fn hot_cached(filter: &str) {
    let (theirs, ours) = open();
    let governor = Governor::direct(theirs);
    let limiter = limiter(ours, CachedClock(SystemClock::new().now()));
    let word = AtomicU64::new(0);
    let throttlecrab = Mutex::new(Throttlecrab::new(PeriodicStore::new()));
    let most = 1_000_000_000;
    let sides = [
        Side::new("governor (quanta)", |_| {
            black_box(governor.check().is_ok());
        }),
        Side::new("throttlecrab (system clock)", |_| {
            if let Ok(mut limiter) = throttlecrab.lock() {
                let _ = black_box(limiter.rate_limit("k", most, most, 1, 1, SystemTime::now()));
            }
        }),
        Side::new("floor CAS alone", |_| {
            black_box(gcra(&word, 1, 1, 1 << 50));
        }),
        Side::new("tidegate (cached clock)", |_| {
            black_box(limiter.check().is_allowed());
        }),
    ];
    row(
        "hot key, allowed, cached clock",
        (filter, Target::Ratio(0.4)),
        1,
        &sides,
    );
}

fn concurrency(filter: &str) {
    for threads in [1, 2] {
        let semaphore = Semaphore::new(1_000);
        let Ok(limiter) = ConcurrencyLimiter::new(1_000) else {
            return;
        };
        let count = AtomicU64::new(0);
        let sides = [
            Side::new("tokio", |_| drop(black_box(semaphore.try_acquire().ok()))),
            Side::new("floor 2 x fetch_add", |_| {
                count.fetch_add(1, Ordering::AcqRel);
                black_box(count.fetch_sub(1, Ordering::AcqRel));
            }),
            Side::new("tidegate", |_| drop(black_box(limiter.try_acquire(1)))),
        ];
        row(
            &format!("concurrency, take + drop, {threads} thread(s)"),
            (filter, Target::Ratio(1.0)),
            threads,
            &sides,
        );
    }
}

fn limiter<C: Clock>(quota: Quota, clock: C) -> Limiter<C> {
    match Limiter::with_clock(quota, clock) {
        Ok(limiter) => limiter,
        Err(error) => panic!("the benchmark's own quota: {error}"),
    }
}
