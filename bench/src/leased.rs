//! One hot key that four processes lease through one Redis: what passes, against what is allowed.
//!
//! 1,000,000 requests a second are offered in all, and 100,000 a second allowed with a burst of
//! 10,000. Each process notes how many passed in each millisecond of the machine's clock; together
//! they are held against burst + rate * t in every stretch of milliseconds.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hdrhistogram::Histogram;
use tidegate::Quota;
use tidegate_redis::{Endpoint, EndpointConfig, LEASE, LeasedLimiter};

use crate::shared::start_redis;

const PROCESSES: usize = 4;
const RATE: u64 = 100_000;
const BURST: u64 = 10_000;
/// Requests that each process makes in a millisecond.
const OFFERED: u64 = 250;
const MILLIS: usize = 6_000;
/// When what is unused begins to count.
const STEADY_FROM: usize = 1_000;

/// What came of the run, of all processes together.
struct Run {
    /// In each millisecond.
    passed: Vec<u64>,
    calls: f64,
    asked: f64,
    /// Of the processes and of Redis, in seconds.
    cpu: f64,
    redis_cpu: f64,
    /// Nanoseconds that a check took: p50, p99, p99.9.
    took: [f64; 3],
}

pub(crate) fn run(filter: &str) -> Result<(), String> {
    let title = "hot key of 4 processes, leased";
    if !title.contains(filter) {
        return Ok(());
    }
    println!("{title}: 100,000/s allowed, burst 10,000, 1,000,000/s offered");
    let run = measured()?;
    let per_ms = RATE as f64 / 1e3;
    let (mut stretch, mut most) = (0.0_f64, f64::MIN);
    for slot in &run.passed {
        stretch = stretch.max(0.0) + *slot as f64 - per_ms;
        most = most.max(stretch);
    }
    let overshoot = most - BURST as f64;
    let steady = &run.passed[STEADY_FROM..];
    let unused = 1.0 - steady.iter().sum::<u64>() as f64 / (steady.len() as f64 * per_ms);
    let per_1000 = run.calls / run.asked * 1e3;
    let verdict = |met: bool| if met { "met" } else { "missed" };
    println!(
        "  above burst + rate * t in the worst stretch: {:.0} permits  <= 0: {}",
        overshoot.max(0.0),
        verdict(overshoot <= 0.0)
    );
    println!(
        "  unused from the second second on: {:.2} %  < 1 %: {}",
        unused * 100.0,
        verdict(unused < 0.01)
    );
    println!(
        "  {:.0} requests asked, {:.0} calls of Redis: {per_1000:.3} per 1,000  < 0.5: {}",
        run.asked,
        run.calls,
        verdict(per_1000 < 0.5)
    );
    let [p50, p99, p999] = run.took;
    println!(
        "  CPU s per 1M requests: {:.2} of the processes (their pacing in it), {:.3} of Redis | a \
         check takes p50 {p50:.0}, p99 {p99:.0}, p99.9 {p999:.0} ns",
        run.cpu / run.asked * 1e6,
        run.redis_cpu / run.asked * 1e6
    );
    Ok(())
}

fn measured() -> Result<Run, String> {
    let redis = start_redis()?;
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let redis_before = redis.cpu_seconds()?;
    let start = now_ms() + 1_000;
    let workers: Vec<_> = (0..PROCESSES)
        .map(|_| {
            Command::new(&program)
                .args(["leased-worker", &format!("{start} {}", redis.address())])
                .stdout(Stdio::piped())
                .spawn()
                .map_err(|error| error.to_string())
        })
        .collect::<Result<_, _>>()?;
    let mut run = Run {
        passed: vec![0; MILLIS],
        calls: 0.0,
        asked: 0.0,
        cpu: 0.0,
        redis_cpu: 0.0,
        took: [0.0; 3],
    };
    for worker in workers {
        let output = worker
            .wait_with_output()
            .map_err(|error| error.to_string())?;
        let printed = String::from_utf8_lossy(&output.stdout);
        let mut words = printed.split_whitespace();
        let mut next = || {
            words
                .next()
                .ok_or_else(|| format!("a worker said: {printed}"))
        };
        let number = |word: &str| word.parse::<f64>().map_err(|error| error.to_string());
        run.calls += number(next()?)?;
        run.asked += number(next()?)?;
        run.cpu += number(next()?)?;
        for took in &mut run.took {
            *took = took.max(number(next()?)?);
        }
        for slot in &mut run.passed {
            *slot += next()?.parse::<u64>().map_err(|error| error.to_string())?;
        }
    }
    run.redis_cpu = redis.cpu_seconds()? - redis_before;
    Ok(run)
}

/// One of the processes: prints calls, requests, CPU seconds, how long checks took, and what
/// passed in each millisecond.
pub(crate) fn worker(task: &str) -> Result<(), String> {
    let (start, address) = task.split_once(' ').ok_or("a start and an address")?;
    let start: u64 = start.parse().map_err(|_| "a start in ms")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let _inside = runtime.enter();
    let config = EndpointConfig::single(&format!("redis://{address}"));
    let config = config.map_err(|error| error.to_string())?;
    let endpoint = Endpoint::start(config, &[&LEASE]).map_err(|error| error.to_string())?;
    let endpoint = Arc::new(endpoint);
    let quota = Quota::per_second(RATE).burst(BURST);
    let built = LeasedLimiter::builder("hot", quota).build(endpoint.clone());
    let (limiter, driver) = built.map_err(|error| error.to_string())?;
    runtime.spawn(driver.run());
    while now_ms() < start {
        std::thread::sleep(Duration::from_micros(200));
    }
    let began = Instant::now();
    let calls_before = endpoint.health().counts.calls;
    let mut passed = vec![0_u64; MILLIS];
    let mut waits = Histogram::<u64>::new(3).map_err(|error| error.to_string())?;
    let mut asked = 0_u64;
    loop {
        let at = began.elapsed().as_millis() as usize;
        if at >= MILLIS {
            break;
        }
        let due = (at as u64 + 1) * OFFERED;
        while asked < due {
            let before = began.elapsed();
            let decision = limiter.check("all", 1);
            let after = began.elapsed();
            asked += 1;
            let took = after.saturating_sub(before).as_nanos() as u64;
            waits.record(took).map_err(|error| error.to_string())?;
            if decision.is_allowed()
                && let Some(slot) = passed.get_mut(after.as_millis() as usize)
            {
                *slot += 1;
            }
        }
        std::thread::sleep(Duration::from_micros(300));
    }
    let calls = endpoint.health().counts.calls - calls_before;
    let usage = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let cpu = usage.tv_sec as f64 + usage.tv_nsec as f64 / 1e9;
    let quantile = |at| waits.value_at_quantile(at);
    let slots: Vec<String> = passed.iter().map(ToString::to_string).collect();
    println!(
        "{calls} {asked} {cpu} {} {} {} {}",
        quantile(0.5),
        quantile(0.99),
        quantile(0.999),
        slots.join(" ")
    );
    Ok(())
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}
