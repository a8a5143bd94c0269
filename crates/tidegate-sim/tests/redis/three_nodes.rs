//! The table of cases through three processes that share a Redis, their clocks apart.
//!
//! Requests go to one process after the other. All of them ask a real Redis over sockets of their
//! own; what time it is there, and on each node, is told.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidegate::{Clock, ManualClock, Timestamp};
use tidegate_node::Node;
use tidegate_redis::exact::EXACT;
use tidegate_redis::{
    Answer, Endpoint, EndpointConfig, RedisStore, Script, ScriptCall, Scripts, State,
};
use tidegate_server::trace::TraceLine;
use tidegate_sim::conformance::{Case, Door, Told, ToldOutcome, ToldRetry, cases};
use tokio::runtime::Handle;
use tokio::task::yield_now;

use crate::conformance::{ask, can_be_exact, shared};
use crate::exact::store::{Store, at_told_time};

const PROCESSES: usize = 3;
/// How far the clock of each is ahead of the one before it: case 30.
const APART: Duration = Duration::from_millis(50);
const DEADLINE: Duration = Duration::from_mins(1);

const URL: &str = "TIDEGATE_TEST_CASES_REDIS";
const AHEAD_MS: &str = "TIDEGATE_TEST_CASES_AHEAD_MS";
/// What a node prints begins so; the rest is the test runner's.
const SAID: &str = "said: ";

/// A process that decides, and waits for what it is told.
struct OtherNode {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl OtherNode {
    fn start(url: &str, ahead: Duration) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "three_nodes::one_of_three", "--nocapture"])
            .env(URL, url)
            .env(AHEAD_MS, ahead.as_millis().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            to: child.stdin.take().unwrap(),
            from: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    /// Tells it something, and hears what it says to that.
    fn tell(&mut self, what: &Value) -> Value {
        writeln!(self.to, "{what}").unwrap();
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(
                self.from.read_line(&mut line).unwrap(),
                0,
                "it ended at {what}"
            );
            if let Some((_, said)) = line.split_once(SAID) {
                return serde_json::from_str(said).unwrap();
            }
        }
    }
}

impl Drop for OtherNode {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct OtherNodes {
    redis: Store,
    nodes: Vec<OtherNode>,
}

impl OtherNodes {
    fn start() -> Self {
        let redis = Store::at_told_time();
        let ahead = (0..PROCESSES).map(|number| APART * u32::try_from(number).unwrap());
        let nodes = ahead.map(|ahead| OtherNode::start(&redis.url(), ahead));
        Self {
            nodes: nodes.collect(),
            redis,
        }
    }

    fn tell_all(&mut self, what: &Value) -> Result<(), String> {
        for node in &mut self.nodes {
            let said = node.tell(what);
            if said != json!("done") {
                return Err(said.to_string());
            }
        }
        Ok(())
    }
}

impl Door for OtherNodes {
    fn run(&mut self, policy: &str, trace: &[String]) -> Result<Vec<Told>, String> {
        self.redis.forget_all();
        self.redis.set_time(0);
        self.tell_all(&json!({ "policy": policy }))?;
        let mut told = Vec::new();
        for line in trace {
            let parsed = TraceLine::parse(line).map_err(|error| error.reason)?;
            self.redis.set_time(parsed.at_ns() / 1_000);
            let what = json!({ "line": line });
            match parsed {
                TraceLine::Request(_) => {
                    let turn = told.len() % PROCESSES;
                    told.push(told_in(&self.nodes[turn].tell(&what))?);
                }
                TraceLine::Reload { .. } => self.tell_all(&what)?,
                TraceLine::Release { .. } => {}
            }
        }
        Ok(told)
    }
}

fn as_json(told: &Told) -> Value {
    let outcome = match told.outcome {
        ToldOutcome::Allowed => json!("allowed"),
        ToldOutcome::Denied => json!("denied"),
        ToldOutcome::Delayed(nanos) => json!(nanos),
    };
    let retry = match told.retry {
        None => Value::Null,
        Some(ToldRetry::AfterSeconds(seconds)) => json!(seconds),
        Some(ToldRetry::OnRelease) => json!("on release"),
        Some(ToldRetry::Never) => json!("never"),
        Some(ToldRetry::AfterNanos(_)) => unreachable!("it is told in seconds"),
    };
    json!({ "outcome": outcome, "limit": told.limit, "remaining": told.remaining, "retry": retry })
}

fn told_in(said: &Value) -> Result<Told, String> {
    let outcome = match &said["outcome"] {
        Value::Number(nanos) => ToldOutcome::Delayed(nanos.as_u64().unwrap()),
        Value::String(outcome) if outcome == "allowed" => ToldOutcome::Allowed,
        Value::String(outcome) if outcome == "denied" => ToldOutcome::Denied,
        _ => return Err(said.to_string()),
    };
    let retry = match &said["retry"] {
        Value::Number(seconds) => Some(ToldRetry::AfterSeconds(seconds.as_u64().unwrap())),
        Value::String(when) if when == "on release" => Some(ToldRetry::OnRelease),
        Value::String(_) => Some(ToldRetry::Never),
        _ => None,
    };
    Ok(Told {
        outcome,
        limit: said["limit"].as_str().map(ToOwned::to_owned),
        remaining: said["remaining"].as_u64(),
        retry,
    })
}

/// Carries calls of the script as it is when Redis is told the time.
#[derive(Debug)]
struct AtToldTime {
    endpoint: Endpoint,
    script: &'static Script,
}

impl Scripts for AtToldTime {
    fn call(&self, mut call: ScriptCall, budget: Duration) -> Answer<'_> {
        // Which nodes there are is asked at Redis's own time.
        if call.script.name == EXACT.name {
            call.script = self.script;
        }
        self.endpoint.call(call, budget)
    }
}

/// Not a test of its own: one of the processes that `the_table_through_three_processes` starts.
#[test]
fn one_of_three() {
    let (Ok(url), Ok(ahead)) = (std::env::var(URL), std::env::var(AHEAD_MS)) else {
        return;
    };
    let ahead = Duration::from_millis(ahead.parse().unwrap());
    // Time goes on when a line says so, and at no other moment: not while Redis is waited for,
    // either, which is what the task does that never ends.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    runtime.spawn_blocking(move || ended.recv());
    runtime.block_on(decide_as_told(&url, ahead));
    drop(end);
}

async fn decide_as_told(url: &str, ahead: Duration) {
    let script: &'static Script = Box::leak(Box::new(Script {
        name: "exact at a told time",
        text: Box::leak(at_told_time(EXACT.text).into_boxed_str()),
    }));
    let endpoint = Endpoint::start(EndpointConfig::single(url).unwrap(), &[script]).unwrap();
    let start = Instant::now();
    while endpoint.health().state != State::Up {
        assert!(start.elapsed() < DEADLINE, "{:?}", endpoint.health());
        yield_now().await;
    }
    let scripts: Arc<dyn Scripts> = Arc::new(AtToldTime { endpoint, script });
    let (mut clock, mut node) = (ManualClock::new(Timestamp::EPOCH), None);
    for line in std::io::stdin().lines() {
        let what: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let said = if let Some(policy) = what["policy"].as_str() {
            // One that was in use does not go back.
            clock = ManualClock::new(Timestamp::EPOCH);
            let store = Arc::new(RedisStore::new(scripts.clone(), &Handle::current()));
            let policy = shared(policy).unwrap();
            node = Some(Node::with_store(policy, Arc::new(clock.clone()), store).unwrap());
            json!("done")
        } else {
            let line = TraceLine::parse(what["line"].as_str().unwrap()).unwrap();
            let at = Timestamp::from_nanos(line.at_ns()).after(ahead);
            tokio::time::advance(at.since(clock.now())).await;
            clock.set(at);
            let node = node.as_ref().unwrap();
            match line {
                TraceLine::Request(request) => as_json(&ask(node, &request).await),
                TraceLine::Reload { policy, .. } => {
                    node.reload(shared(&policy).unwrap()).unwrap();
                    json!("done")
                }
                TraceLine::Release { .. } => unreachable!("nothing is held"),
            }
        };
        say(&said);
    }
}

#[expect(clippy::print_stdout, reason = "it is how a node answers")]
fn say(said: &Value) {
    println!("{SAID}{said}");
}

// shows: C1 (exact), C6 (clocks of nodes apart)
#[test]
fn the_table_through_three_processes() {
    let mut door = OtherNodes::start();
    let exact: Vec<&Case> = cases().filter(|case| can_be_exact(case)).collect();
    let ids: Vec<u8> = exact.iter().map(|case| case.id).collect();
    for id in [7, 8, 9, 12, 13, 14, 16, 17, 29] {
        assert!(ids.contains(&id), "case {id} is among them: {ids:?}");
    }
    let failures: Vec<String> = exact
        .iter()
        .filter_map(|case| {
            let differences = case.differences(&mut door);
            let first = differences.first()?;
            Some(format!("case {} ({}): {first}", case.id, case.title))
        })
        .collect();
    assert!(failures.is_empty(), "{ids:?}:\n{}", failures.join("\n"));
}
