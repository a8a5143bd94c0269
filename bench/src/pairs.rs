//! Paired runs: each side in turn, five times over, so that drift of the machine meets all alike.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Runs of each side.
const RUNS: usize = 5;
/// How long each runs.
const RUN: Duration = Duration::from_millis(200);
/// Calls between two looks at whether time is up.
const BATCH: usize = 512;

/// One side of a row: does `BATCH` operations from a place in the stream on.
pub(crate) struct Side<'a> {
    pub(crate) name: &'static str,
    run: Box<dyn Fn(usize) + Sync + 'a>,
}

impl<'a> Side<'a> {
    /// A side whose operation is `op`, called with a running index.
    pub(crate) fn new(name: &'static str, op: impl Fn(usize) + Sync + 'a) -> Self {
        let run = move |from: usize| {
            for index in from..from + BATCH {
                op(index);
            }
        };
        Self {
            name,
            run: Box::new(run),
        }
    }
}

/// A row of the table: the rival first, then floors, then tidegate last.
pub(crate) fn row(title: &str, filter: &str, threads: usize, sides: &[Side<'_>]) {
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
    let ratios: Vec<f64> = ours
        .iter()
        .zip(rival)
        .map(|(ours, rival)| ours / rival)
        .collect();
    let (least, median, most) = spread(&ratios);
    println!(
        "{title:<44} {}  ratio {median:.2} ({least:.2}..{most:.2})",
        cells.join(" | ")
    );
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

/// The time that this thread has had a core for: what else the machine does is not in it.
fn thread_nanos() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
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
                    (thread_nanos() - start) / done as f64
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
