//! Memory per key, and the longest pause of one call while a store grows: each store in a process
//! of its own.

use std::num::NonZeroU32;
use std::process::Command;
use std::time::Duration;

use governor::RateLimiter as Governor;
use tidegate::{Algorithm, Ask, Clock, KeyedConcurrencyLimiter, KeyedLimiter, Quota, SystemClock};

use crate::algorithms;
use crate::floor::Table;
use crate::keys::address;
use crate::quanta_clock::CachedClock;
use crate::stopwatch::{thread_nanos, time};

/// What each key is asked for at first. One request of nginx's leaves nothing to remember.
pub(crate) const fn first_ask(algorithm: &Algorithm) -> Ask {
    match algorithm {
        Algorithm::Nginx { .. } => Ask::new(2),
        _ => Ask::ONE,
    }
}

const STORES: [&str; 4] = [
    "governor String",
    "floor table",
    "tidegate",
    "tidegate fixed_window",
];
const SIZES: [u32; 2] = [1_000_000, 10_000_000];

/// Prints a row for each store and size.
pub(crate) fn run() {
    println!("memory: bytes of resident memory per key, and the longest single insertion");
    for keys in SIZES {
        for store in STORES {
            row_of(store, keys);
        }
    }
}

/// Prints the row of one store, which it fills in a process of its own.
pub(crate) fn row_of(store: &str, keys: u32) {
    let what = format!("{store}/{keys}");
    let Ok(program) = std::env::current_exe() else {
        return;
    };
    match Command::new(program).args(["memory-of", &what]).output() {
        Ok(output) => print!("{}", String::from_utf8_lossy(&output.stdout)),
        Err(error) => println!("{store}: {error}"),
    }
}

/// Fills the store that `what` names (`store/keys`) and prints its row.
pub(crate) fn measure(what: &str) -> Result<(), String> {
    let (store, keys) = what.rsplit_once('/').ok_or("store/keys")?;
    let keys: u32 = keys.parse().map_err(|_| "store/keys")?;
    let ten_hours = Duration::from_hours(10);
    match store {
        "governor String" => {
            let quota = governor::Quota::per_hour(NonZeroU32::MIN);
            let limiter = Governor::<String, _, _>::keyed(quota);
            fill(store, keys, |key| drop(limiter.check_key(&key)));
            drop(limiter);
        }
        "floor table" => {
            let before = resident_bytes();
            let table = Table::new(keys as usize * 10 / 17);
            fill_from(store, keys, before, |key| {
                let _ = table.check(&key, 1, 1, 1);
            });
            drop(table);
        }
        "tidegate" => fill_ours(store, keys, Quota::one_per(ten_hours).into())?,
        "tidegate fixed_window" => {
            fill_ours(
                store,
                keys,
                Algorithm::FixedWindow {
                    permits: 1,
                    window: ten_hours,
                },
            )?;
        }
        "concurrency" => {
            let built = KeyedConcurrencyLimiter::new(1_000, keys as usize);
            let limiter = built.map_err(|error| error.to_string())?;
            // Their guards are never dropped, so that nobody leaves.
            fill(store, keys, |key| {
                std::mem::forget(limiter.try_acquire(key.as_str(), 1).1);
            });
        }
        other => match algorithms::named(other) {
            Some(algorithm) => fill_ours(store, keys, algorithm)?,
            None => return Err(format!("no store `{other}`")),
        },
    }
    Ok(())
}

fn fill_ours(store: &str, keys: u32, algorithm: Algorithm) -> Result<(), String> {
    let first = first_ask(&algorithm);
    // Time stands still: a key that is as good as new may be dropped, and none is.
    let built = KeyedLimiter::builder(algorithm)
        .max_keys(keys as usize)
        .clock(CachedClock(SystemClock::new().now()))
        .build();
    let limiter = built.map_err(|error| error.to_string())?;
    fill(store, keys, |key| {
        let _ = limiter.check_ask(key.as_str(), first);
    });
    if limiter.stats().keys != keys as usize {
        return Err(format!("{} of {keys} keys are there", limiter.stats().keys));
    }
    Ok(())
}

fn fill(store: &str, keys: u32, insert: impl Fn(String)) {
    fill_from(store, keys, resident_bytes(), insert);
}

fn fill_from(store: &str, keys: u32, before: f64, insert: impl Fn(String)) {
    let mut longest = 0;
    let start = thread_nanos();
    for n in 0..keys {
        let key = address(n);
        longest = longest.max(time(|| insert(key)));
    }
    let each = (thread_nanos() - start) as f64 / f64::from(keys);
    let bytes = (resident_bytes() - before) / f64::from(keys);
    println!(
        "{store:<32} {keys:>9} keys: {bytes:6.1} B per key, {each:5.0} ns per insertion \
         (key included), longest {:.1?}",
        Duration::from_nanos(longest)
    );
}

pub(crate) fn resident_bytes() -> f64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let resident = pages
        .split_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse().ok());
    resident.unwrap_or(0.0) * 4096.0
}
