//! Waiters in one line: what one costs to join it, in memory, to be served, and to give up.
//!
//! Each side in a process of its own, five times in turn. The futures stand one behind the other
//! in a list, as tasks would have them; they are counted, what wakes a task is not.

use std::future::Future;
use std::pin::Pin;
use std::process::Command;
use std::task::{Context, Waker};

use tidegate::{ConcurrencyLimiter, KeyedConcurrencyLimiter};
use tokio::sync::Semaphore;

use crate::keys::Random;
use crate::memory::resident_bytes;
use crate::pairs::spread;
use crate::stopwatch::thread_nanos;

const WAITERS: usize = 100_000;
const RUNS: usize = 5;
const SIDES: [&str; 3] = ["tokio", "tidegate, of many keys", "tidegate"];
const COLUMNS: [&str; 4] = ["B", "ns to join", "ns to be served", "ns to give up"];

/// Prints the row of each side.
pub(crate) fn run(filter: &str) -> Result<(), String> {
    let title = "waiters, 100,000 in one line: of each";
    if !title.contains(filter) {
        return Ok(());
    }
    println!("{title}");
    let mut all = vec![Vec::new(); SIDES.len()];
    for _ in 0..RUNS {
        for (side, all) in SIDES.iter().zip(&mut all) {
            all.push(measured_alone(side)?);
        }
    }
    for (side, runs) in SIDES.iter().zip(&all) {
        let cells = (0..).zip(COLUMNS).map(|(at, column)| {
            let of: Vec<f64> = runs.iter().map(|run| run[at]).collect();
            let to_first: Vec<f64> = of
                .iter()
                .zip(&all[0])
                .map(|(is, first)| is / first[at])
                .collect();
            let ((_, middle, _), (_, ratio, _)) = (spread(&of), spread(&to_first));
            format!("{middle:.0} {column} ({ratio:.2})")
        });
        println!("  {side:<24} {}", cells.collect::<Vec<_>>().join(" | "));
    }
    Ok(())
}

fn measured_alone(side: &str) -> Result<[f64; 4], String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(program)
        .args(["waiters-of", side])
        .output()
        .map_err(|error| format!("{side}: {error}"))?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = printed
        .split_whitespace()
        .filter_map(|number| number.parse().ok())
        .collect();
    let failed = || {
        let error = String::from_utf8_lossy(&output.stderr);
        format!("{side}: {printed}{error}")
    };
    numbers.try_into().map_err(|_| failed())
}

/// Lets them wait in the line of one side, and prints the numbers.
pub(crate) fn measure(side: &str) -> Result<(), String> {
    let invalid = |error: tidegate::QuotaError| error.to_string();
    let numbers = match side {
        "tokio" => {
            let semaphore = Semaphore::new(1);
            let inside = semaphore.try_acquire().ok();
            // They have to stay where they are once they wait.
            let wait = || Box::pin(semaphore.acquire());
            let is_free = || semaphore.available_permits() == 1;
            through_the_line(inside, wait, Result::is_ok, is_free)
        }
        "tidegate" => {
            let limiter = ConcurrencyLimiter::new(1).map_err(invalid)?;
            let limiter = limiter.queue_length(WAITERS as u64);
            let inside = limiter.try_acquire(1).1;
            let wait = || limiter.acquire_async(1);
            let is_free = || limiter.in_use() == 0;
            through_the_line(inside, wait, |answer| answer.1.is_some(), is_free)
        }
        "tidegate, of many keys" => {
            let limiter = KeyedConcurrencyLimiter::new(1, 1_000).map_err(invalid)?;
            let limiter = limiter.queue_length(WAITERS as u64);
            let inside = limiter.try_acquire("key", 1).1;
            let wait = || limiter.acquire_async("key", 1);
            let is_free = || limiter.in_use("key") == 0;
            through_the_line(inside, wait, |answer| answer.1.is_some(), is_free)
        }
        other => return Err(format!("no side `{other}`")),
    };
    println!("{}", numbers.map(|number| number.to_string()).join(" "));
    Ok(())
}

/// Bytes of each, and nanoseconds to join, to be served and to give up.
fn through_the_line<I, F: Future + Unpin>(
    inside: Option<I>,
    wait: impl Fn() -> F,
    goes_in: impl Fn(&F::Output) -> bool,
    is_free: impl Fn() -> bool,
) -> [f64; 4] {
    assert!(inside.is_some() && !is_free(), "somebody is inside");
    let mut context = Context::from_waker(Waker::noop());
    let mut line = Vec::with_capacity(WAITERS);
    let (bytes, start) = (resident_bytes(), thread_nanos());
    for _ in 0..WAITERS {
        let mut one = wait();
        let waits = Pin::new(&mut one).poll(&mut context).is_pending();
        assert!(waits, "one is inside, and there is room in the line");
        line.push(one);
    }
    let join = thread_nanos() - start;
    let bytes = resident_bytes() - bytes;
    // All of them are still there: nobody has been let in.
    let first = line
        .first_mut()
        .map(|one| Pin::new(one).poll(&mut context).is_pending());
    assert!(first == Some(true) && !is_free(), "all wait");
    // The second half gives up, in no order.
    let mut gives_up: Vec<F> = line.drain(WAITERS / 2..).collect();
    let mut random = Random(7);
    for at in (1..gives_up.len()).rev() {
        gives_up.swap(at, (random.next() % (at as u64 + 1)) as usize);
    }
    let start = thread_nanos();
    drop(gives_up);
    let give_up = thread_nanos() - start;
    // The others go in one after the other, as they came: each is let in by the one before.
    let start = thread_nanos();
    drop(inside);
    for mut one in line {
        let std::task::Poll::Ready(permit) = Pin::new(&mut one).poll(&mut context) else {
            panic!("it was its turn");
        };
        assert!(goes_in(&permit), "it has been let in");
    }
    let serve = thread_nanos() - start;
    assert!(is_free(), "nobody waits and nobody is inside");
    let half = (WAITERS / 2) as f64;
    [
        bytes / WAITERS as f64,
        join as f64 / WAITERS as f64,
        serve as f64 / half,
        give_up as f64 / half,
    ]
}
