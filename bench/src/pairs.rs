//! Paired runs: each side in turn, five times over, so that drift of the machine meets all alike.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::stopwatch::thread_nanos;

/// Runs of each side.
const RUNS: usize = 5;
/// How long each runs.
const RUN: Duration = Duration::from_millis(200);
/// Calls between two looks at whether time is up.
const BATCH: usize = 512;

/// One side of a row: does `BATCH` operations from a place in the stream on.
pub(crate) struct Side<'a> {
    pub(crate) name: &'a str,
    run: Box<dyn Fn(usize) + Sync + 'a>,
}

impl<'a> Side<'a> {
    /// A side whose operation is `op`, called with a running index.
    pub(crate) fn new(name: &'a str, op: impl Fn(usize) + Sync + 'a) -> Self {
        Self::by(1, name, op)
    }

    /// A side whose operation is so many in one, from a running index on.
    pub(crate) fn by(many: usize, name: &'a str, op: impl Fn(usize) + Sync + 'a) -> Self {
        let run = move |from: usize| {
            for index in (from..from + BATCH).step_by(many) {
                op(index);
            }
        };
        Self {
            name,
            run: Box::new(run),
        }
    }
}

/// What a row is to show.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// At most so many times the rival's time.
    Ratio(f64),
    /// At most so many nanoseconds.
    Nanos(f64),
    Nothing,
}

/// A row of the table: the rival first, then floors, then tidegate last.
pub(crate) fn row(
    title: &str,
    (filter, target): (&str, Target),
    threads: usize,
    sides: &[Side<'_>],
) {
    if !title.contains(filter) {
        return;
    }
    let nanos = runs(threads, sides);
    let cells: Vec<String> = sides
        .iter()
        .zip(&nanos)
        .map(|(side, nanos)| format!("{} {:.1} ns", side.name, spread(nanos).1))
        .collect();
    let (Some(rival), Some(ours)) = (nanos.first(), nanos.last()) else {
        return;
    };
    let (least, median, most) = spread(&ratios(ours, rival));
    let verdict = |is: f64, target: f64| if is <= target { "met" } else { "missed" };
    let target = match target {
        Target::Ratio(target) => format!("  <= {target:.2}: {}", verdict(median, target)),
        Target::Nanos(target) => {
            let verdict = verdict(spread(ours).1, target);
            format!("  <= {target:.0} ns: {verdict}")
        }
        Target::Nothing => String::new(),
    };
    println!("{title}");
    println!("  {}", cells.join(" | "));
    println!("  ratio {median:.2} ({least:.2}..{most:.2}){target}");
}

/// A row of the same at several widths: each, and its ratio to the first.
pub(crate) fn row_of_widths(title: &str, filter: &str, sides: &[Side<'_>]) {
    if !title.contains(filter) {
        return;
    }
    let nanos = runs(1, sides);
    let Some(first) = nanos.first() else { return };
    let cells = sides.iter().zip(&nanos).map(|(side, nanos)| {
        let (least, median, most) = spread(&ratios(nanos, first));
        let each = spread(nanos).1;
        format!(
            "{}: {each:.0} ns, {median:.2} ({least:.2}..{most:.2})",
            side.name
        )
    });
    println!("{title}");
    println!("  {}", cells.collect::<Vec<_>>().join(" | "));
}

pub(crate) fn ratios(ours: &[f64], theirs: &[f64]) -> Vec<f64> {
    ours.iter()
        .zip(theirs)
        .map(|(ours, theirs)| ours / theirs)
        .collect()
}

/// The median of each side.
pub(crate) fn compare(threads: usize, sides: &[Side<'_>]) -> Vec<f64> {
    let median = |nanos: &Vec<f64>| spread(nanos).1;
    runs(threads, sides).iter().map(median).collect()
}

/// Nanoseconds of each run of each side, in turn; the first round does not count.
fn runs(threads: usize, sides: &[Side<'_>]) -> Vec<Vec<f64>> {
    for side in sides {
        measure(threads, side);
    }
    let mut nanos = vec![Vec::new(); sides.len()];
    for _ in 0..RUNS {
        for (side, nanos) in sides.iter().zip(&mut nanos) {
            nanos.push(measure(threads, side));
        }
    }
    nanos
}

/// Lowest, median and highest.
pub(crate) fn spread(values: &[f64]) -> (f64, f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
    (
        at(0),
        at(sorted.len() / 2),
        at(sorted.len().saturating_sub(1)),
    )
}

/// Nanoseconds per operation and thread, of the thread's own time.
fn measure(threads: usize, side: &Side<'_>) -> f64 {
    let stop = AtomicBool::new(false);
    let barrier = Barrier::new(threads + 1);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                let (stop, barrier) = (&stop, &barrier);
                scope.spawn(move || {
                    let mut index = thread * 1_000_003;
                    let mut done = 0_u64;
                    barrier.wait();
                    let start = thread_nanos();
                    while !stop.load(Ordering::Relaxed) {
                        (side.run)(index);
                        index += BATCH;
                        done += BATCH as u64;
                    }
                    (thread_nanos() - start) as f64 / done as f64
                })
            })
            .collect();
        barrier.wait();
        std::thread::sleep(RUN);
        stop.store(true, Ordering::Relaxed);
        let each: Vec<f64> = workers
            .into_iter()
            .filter_map(|worker| worker.join().ok())
            .collect();
        each.iter().sum::<f64>() / each.len().max(1) as f64
    })
}
