//! The slow calls: a check while a table grows, while it gives old keys up, while its numbers
//! change, and with every key new.

use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::RateLimiter as Governor;
use tidegate::{KeyedLimiter, Quota};

use crate::floor::Table;
use crate::keys::{KEYS, STREAM, Spread, address, stream};
use crate::pairs::spread;
use crate::quanta_clock::QuantaClock;
use crate::stopwatch::time;

const RUNS: usize = 5;
/// Checks between two changes of the numbers.
const RELOAD: usize = 100_000;
const LONG: Duration = Duration::from_hours(10);

/// One side: makes its store, warms it up, and then hands over the call to measure.
type Side<'a> = (&'static str, Box<dyn Fn(&mut Samples) + 'a>);

/// Prints all rows whose title has `filter` in it.
pub(crate) fn run(filter: &str) {
    println!("tails: ns of a single check, the thread's own time; medians of five runs in turn,");
    println!("and of the slowest call the lowest and the highest of them");
    let keys: Vec<String> = (0..2 * KEYS).map(address).collect();
    let (old, new) = keys.split_at(KEYS as usize);
    let grows: [Side<'_>; 3] = [
        (
            "governor String",
            Box::new(|samples| governor(&[], old, samples)),
        ),
        ("floor table", Box::new(|samples| floor(old, samples))),
        (
            "tidegate",
            Box::new(|samples| ours(&[], 2 * old.len(), old, 0, samples)),
        ),
    ];
    row("grows from nothing to 1M keys", filter, &grows);
    let every_key_new: [Side<'_>; 2] = [
        (
            "governor String (grows)",
            Box::new(|samples| governor(old, new, samples)),
        ),
        (
            "tidegate (evicts)",
            Box::new(|samples| ours(old, old.len(), new, 0, samples)),
        ),
    ];
    row(
        "every key new, 1M there, all in use",
        filter,
        &every_key_new,
    );
    let known = stream(Spread::Uniform);
    let known = &known[..STREAM / 2];
    let steady: [Side<'_>; 3] = [
        (
            "governor String",
            Box::new(|samples| governor(old, known, samples)),
        ),
        (
            "tidegate",
            Box::new(|samples| ours(old, 2 * old.len(), known, 0, samples)),
        ),
        (
            "tidegate, new numbers each 100,000",
            Box::new(|samples| ours(old, 2 * old.len(), known, RELOAD, samples)),
        ),
    ];
    row("1M known keys, uniform", filter, &steady);
}

/// The calls of one run.
#[derive(Debug, Default)]
struct Samples(Vec<u64>);

impl Samples {
    fn measure(&mut self, keys: &[String], check: impl Fn(&String) -> bool) {
        self.0.reserve(keys.len());
        for key in keys {
            let nanos = time(|| {
                black_box(check(key));
            });
            self.0.push(nanos);
        }
    }

    /// p50, p99, p99.9 and the slowest.
    fn percentiles(mut self) -> [f64; 4] {
        self.0.sort_unstable();
        let last = self.0.len().saturating_sub(1);
        [500, 990, 999, 1_000].map(|thousandths| {
            let at = last * thousandths / 1_000;
            self.0.get(at).map_or(f64::NAN, |nanos| *nanos as f64)
        })
    }
}

fn row(title: &str, filter: &str, sides: &[Side<'_>]) {
    if !title.contains(filter) {
        return;
    }
    println!("{title}");
    let mut all = vec![Vec::new(); sides.len()];
    for _ in 0..RUNS {
        for ((_, run), all) in sides.iter().zip(&mut all) {
            let mut samples = Samples::default();
            run(&mut samples);
            all.push(samples.percentiles());
        }
    }
    for ((name, _), runs) in sides.iter().zip(&all) {
        let of = |at: usize| spread(&runs.iter().map(|run| run[at]).collect::<Vec<_>>());
        let (least, slowest, most) = of(3);
        let [p50, p99, p999] = [0, 1, 2].map(|at| of(at).1);
        println!(
            "  {name:<36} p50 {p50:6.0}  p99 {p99:6.0}  p99.9 {p999:7.0}  \
             max {slowest:10.0} ({least:.0}..{most:.0})"
        );
    }
}

fn governor(old: &[String], keys: &[String], samples: &mut Samples) {
    let quota = governor::Quota::with_period(LONG)
        .unwrap_or_else(|| governor::Quota::per_hour(NonZeroU32::MIN));
    let limiter = Governor::<String, _, _>::keyed(quota);
    for key in old {
        let _ = limiter.check_key(key);
    }
    samples.measure(keys, |key| limiter.check_key(key).is_ok());
}

fn floor(keys: &[String], samples: &mut Samples) {
    let (table, clock) = (Table::new(keys.len()), quanta::Clock::new());
    samples.measure(keys, |key| table.check(key, clock.raw(), 1, 1));
}

/// Beside `old` keys; with other numbers each so many checks, unless that is 0.
fn ours(old: &[String], max_keys: usize, keys: &[String], reload: usize, samples: &mut Samples) {
    let quota = |permits: u64| Quota::new(permits, LONG);
    let built = KeyedLimiter::builder(quota(1))
        .max_keys(max_keys)
        .clock(QuantaClock::new());
    let Ok(mut limiter) = built.build() else {
        return;
    };
    for key in old {
        let _ = limiter.check(key.as_str());
    }
    let each = if reload == 0 { keys.len() } else { reload };
    for (round, keys) in keys.chunks(each).enumerate() {
        let other = quota(1 + round as u64 % 2);
        if reload > 0 && limiter.set_limit(other, max_keys).is_err() {
            return;
        }
        samples.measure(keys, |key| limiter.check(key.as_str()).is_allowed());
    }
}
