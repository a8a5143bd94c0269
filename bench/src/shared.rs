//! One hot key that four processes share through one Redis.
//!
//! What each process does and how long it took is what it prints itself; Redis's own CPU is read
//! from the system. Callers come as fast as they are answered.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tidegate::{Ask, Quota};
use tidegate_redis::exact::{EXACT, Group, What, decide};
use tidegate_redis::{Endpoint, EndpointConfig, Exact, ExactLimiter, Scripts, Subject};

use crate::gateway::{Server, free_address, start};
use crate::pairs::spread;

const PROCESSES: usize = 4;
/// Callers of each process, each with one request at a time.
const CALLERS: usize = 128;
const RUNS: usize = 3;
const RUN: Duration = Duration::from_secs(3);

/// What came of one run, of all processes together.
struct Round {
    decisions: f64,
    calls: f64,
    /// Of the processes and of Redis, in seconds.
    cpu: f64,
    redis_cpu: f64,
    /// Microseconds that callers waited: p50, p99, p99.9.
    waits: [f64; 3],
}

pub(crate) fn run(filter: &str) -> Result<(), String> {
    let title = "hot key of 4 processes, exact";
    if !title.contains(filter) {
        return Ok(());
    }
    println!("{title}: {PROCESSES} x {CALLERS} callers, all allowed, {RUNS} paired runs");
    let mut sides = [
        ("one EVALSHA each", "each", Vec::new()),
        ("tidegate", "exact", Vec::new()),
    ];
    for _ in 0..RUNS {
        for (_, mode, rounds) in &mut sides {
            rounds.push(round(mode)?);
        }
    }
    for (name, _, rounds) in &sides {
        let of = |read: fn(&Round) -> f64| {
            let values: Vec<f64> = rounds.iter().map(read).collect();
            spread(&values).1
        };
        let seconds = RUN.as_secs_f64();
        println!(
            "  {name:<18} {:>9.0} decisions/s | {:>6.1} calls of Redis per 1,000 | CPU s per 1M: \
             {:.2} in all, {:.2} of Redis | waits p50 {:.0}, p99 {:.0}, p99.9 {:.0} us",
            of(|round| round.decisions) / seconds,
            of(|round| round.calls / round.decisions * 1e3),
            of(|round| (round.cpu + round.redis_cpu) / round.decisions * 1e6),
            of(|round| round.redis_cpu / round.decisions * 1e6),
            of(|round| round.waits[0]),
            of(|round| round.waits[1]),
            of(|round| round.waits[2]),
        );
    }
    let ratios: Vec<f64> = (sides[1].2.iter().zip(&sides[0].2))
        .map(|(ours, theirs)| ours.decisions / theirs.decisions)
        .collect();
    let (least, median, most) = spread(&ratios);
    let verdict = if median >= 5.0 { "met" } else { "missed" };
    println!("  ratio {median:.1} ({least:.1}..{most:.1})  >= 5: {verdict}");
    Ok(())
}

fn round(mode: &str) -> Result<Round, String> {
    let redis = start_redis()?;
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let before = redis.cpu_seconds()?;
    let workers: Vec<_> = (0..PROCESSES)
        .map(|_| {
            Command::new(&program)
                .args(["shared-worker", &format!("{mode} {}", redis.address())])
                .stdout(Stdio::piped())
                .spawn()
                .map_err(|error| error.to_string())
        })
        .collect::<Result<_, _>>()?;
    let mut round = Round {
        decisions: 0.0,
        calls: 0.0,
        cpu: 0.0,
        redis_cpu: 0.0,
        waits: [0.0; 3],
    };
    for worker in workers {
        let output = worker
            .wait_with_output()
            .map_err(|error| error.to_string())?;
        let printed = String::from_utf8_lossy(&output.stdout);
        let numbers: Vec<f64> = printed
            .split_whitespace()
            .filter_map(|number| number.parse().ok())
            .collect();
        let &[decisions, calls, cpu, p50, p99, p999] = &numbers[..] else {
            return Err(format!("a worker said: {printed}"));
        };
        round.decisions += decisions;
        round.calls += calls;
        round.cpu += cpu;
        for (all, of_one) in round.waits.iter_mut().zip([p50, p99, p999]) {
            *all = all.max(of_one);
        }
    }
    round.redis_cpu = redis.cpu_seconds()? - before;
    Ok(round)
}

pub(crate) fn start_redis() -> Result<Server, String> {
    let address = free_address()?;
    let mut command = Command::new("redis-server");
    command
        .args(["--port", &address.port().to_string(), "--bind", "127.0.0.1"])
        .args(["--save", ""]);
    start(command, address)
}

/// One of the processes: prints decisions, calls, CPU seconds and waits.
pub(crate) fn worker(task: &str) -> Result<(), String> {
    let (mode, address) = task.split_once(' ').ok_or("a mode and an address")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let config = EndpointConfig::single(&format!("redis://{address}"));
        let config = config.map_err(|error| error.to_string())?;
        let endpoint = Endpoint::start(config, &[&EXACT]).map_err(|error| error.to_string())?;
        let endpoint = Arc::new(endpoint);
        let exact = Exact::new(endpoint.clone());
        // So much that all is allowed.
        let quota = Quota::per_second(10_000_000).burst(10_000_000);
        let limit = tidegate::Limit::new("hot", quota.into()).map_err(|error| error.to_string())?;
        let limiter = exact.limiter(&limit).map_err(|error| error.to_string())?;
        until_up(&limiter).await?;
        let calls_before = endpoint.health().counts.calls;
        let start = Instant::now();
        let callers: Vec<_> = (0..CALLERS)
            .map(|_| {
                let (limiter, endpoint) = (limiter.clone(), endpoint.clone());
                let is_each = mode == "each";
                tokio::spawn(async move {
                    let mut waits = Histogram::<u64>::new(3).map_err(|error| error.to_string())?;
                    while start.elapsed() < RUN {
                        let before = Instant::now();
                        if is_each {
                            one_call(&limiter, &*endpoint).await?;
                        } else {
                            let decision = limiter.check("all", 1).await;
                            let decision = decision.map_err(|error| error.to_string())?;
                            if !decision.is_allowed() {
                                return Err("refused: this measures something else".to_owned());
                            }
                        }
                        let took = before.elapsed().as_nanos() as u64;
                        waits.record(took).map_err(|error| error.to_string())?;
                    }
                    Ok(waits)
                })
            })
            .collect();
        let mut waits = Histogram::<u64>::new(3).map_err(|error| error.to_string())?;
        for caller in callers {
            let of_one: Result<_, String> = caller.await.map_err(|error| error.to_string())?;
            waits.add(of_one?).map_err(|error| error.to_string())?;
        }
        let calls = endpoint.health().counts.calls - calls_before;
        let at = |quantile| waits.value_at_quantile(quantile) as f64 / 1e3;
        let cpu = crate::stopwatch::thread_nanos() as f64 / 1e9;
        println!(
            "{} {calls} {cpu} {} {} {}",
            waits.len(),
            at(0.5),
            at(0.99),
            at(0.999)
        );
        Ok(())
    })
}

async fn until_up(limiter: &ExactLimiter) -> Result<(), String> {
    let deadline = Instant::now() + Duration::from_secs(5);
    while Instant::now() < deadline {
        if limiter.check("other", 1).await.is_ok() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Err("no Redis".to_owned())
}

/// What a limiter does that asks Redis about each request by itself.
async fn one_call(limiter: &ExactLimiter, scripts: &dyn Scripts) -> Result<(), String> {
    let limits = [limiter.asked(&Subject::from("all"))];
    let group = Group {
        requests: 1,
        ask: Ask::ONE,
    };
    let call = decide(What::Check, &limits, &[group]);
    let answer = scripts.call(call, Duration::from_secs(1)).await;
    answer.map(drop).map_err(|error| error.to_string())
}
