//! Callers in several processes that wait for one log, each as long as it is told: case 15, in a
//! tenth of its time.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tidegate::Algorithm;
use tidegate_redis::exact::EXACT;
use tidegate_redis::{Endpoint, EndpointConfig, ExactLimiter};

use crate::endpoint::{is_up, until};
use crate::server::RedisServer;

const PROCESSES: u32 = 4;
const CALLERS: u32 = 5;
const PERMITS: usize = 3;
const WINDOW: Duration = Duration::from_millis(500);
/// What a busy machine may add: to each wait, and until all have started.
const LATE: Duration = Duration::from_secs(5);

const URL: &str = "TIDEGATE_TEST_WAITING_REDIS";
const KEY: &str = "TIDEGATE_TEST_WAITING_KEY";
const START: &str = "TIDEGATE_TEST_WAITING_START";
const SAID: &str = "passed: ";

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

#[expect(clippy::print_stdout, reason = "it is how a caller tells its test")]
fn say(at: Duration) {
    println!("{SAID}{}", at.as_micros());
}

/// Not a test of its own: the callers of one process.
#[tokio::test]
async fn five_callers() {
    let Ok(url) = std::env::var(URL) else { return };
    let key = std::env::var(KEY).unwrap();
    let start = Duration::from_micros(std::env::var(START).unwrap().parse().unwrap());
    let config = EndpointConfig::single(&url).unwrap();
    let endpoint = Endpoint::start(config, &[&EXACT]).unwrap();
    until(&endpoint, is_up).await;
    let log = Algorithm::SlidingLog {
        permits: PERMITS as u64,
        window: WINDOW,
    };
    let limiter = ExactLimiter::new(Arc::new(endpoint), "log", log).unwrap();
    tokio::time::sleep(start.checked_sub(now()).expect("started in time")).await;
    let callers = (0..CALLERS).map(|_| {
        let (limiter, key) = (limiter.clone(), key.clone());
        tokio::spawn(async move {
            loop {
                let decision = limiter.check(key.as_str(), 1).await.unwrap();
                match decision.retry_after() {
                    Some(wait) => tokio::time::sleep(wait).await,
                    None => break,
                }
            }
            say(now());
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
}

/// When the callers of all processes passed, in order, counted from when they came.
fn run(key_of: impl Fn(u32) -> String) -> Vec<Duration> {
    let server = RedisServer::start();
    let start = now() + LATE;
    let child = |number| {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child
            .args(["--exact", "waiting::five_callers", "--nocapture"])
            .env(URL, server.url())
            .env(KEY, key_of(number))
            .env(START, start.as_micros().to_string())
            .stdout(Stdio::piped());
        child.spawn().unwrap()
    };
    let children: Vec<Child> = (0..PROCESSES).map(child).collect();
    let mut passed = Vec::new();
    for mut child in children {
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            if let Some((_, at)) = line.unwrap().split_once(SAID) {
                let at = Duration::from_micros(at.parse().unwrap());
                passed.push(at.checked_sub(start).expect("nobody is early"));
            }
        }
        assert!(child.wait().unwrap().success());
    }
    passed.sort();
    assert_eq!(passed.len(), (PROCESSES * CALLERS) as usize);
    passed
}

fn is_as_told(passed: &[Duration], at_once: usize) {
    for (number, at) in passed.iter().enumerate() {
        let due = WINDOW * u32::try_from(number / at_once).unwrap();
        // A caller's clock and Redis's are read at different times, a call apart.
        let earliest = due.saturating_sub(Duration::from_millis(25));
        assert!(
            (earliest..due + LATE).contains(at),
            "{number} after {at:?}, not {due:?}: {passed:?}"
        );
    }
}

// shows: B3 (on several machines), C3
#[test]
fn twenty_callers_of_a_log_that_four_processes_share_are_done_after_six_windows() {
    is_as_told(&run(|_| "all".to_owned()), PERMITS);
}

// shows: B3 (on several machines), C3
#[test]
fn twenty_callers_of_logs_of_their_processes_are_done_after_one_window() {
    let passed = run(|number| number.to_string());
    is_as_told(&passed, PERMITS * PROCESSES as usize);
}
