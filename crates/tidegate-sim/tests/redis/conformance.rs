//! The table of cases through exact mode: a node whose limits are all kept in Redis, at the times
//! of the trace.

use std::future::Future;
use std::io::Cursor;
use std::pin::Pin;
use std::sync::Arc;

use tidegate::{Clock, Decision, ManualClock, Retry, Sharing, Timestamp, Verdict};
use tidegate_gateway::RequestView;
use tidegate_node::{Admission, Call, Node, Timer, Turn};
use tidegate_policy::{OnUnavailable, Policy, SharedRule};
use tidegate_redis::RedisStore;
use tidegate_redis::exact::Numbers;
use tidegate_server::trace::{TraceLine, TraceReader, TraceRequest};
use tidegate_sim::conformance::{Case, Door, Told, ToldOutcome, ToldRetry, cases};
use tokio::runtime::Handle;

use crate::exact::store::Store;

/// A node on a Redis that is told what time it is.
struct ExactDoor {
    redis: Arc<Store>,
}

/// Nobody is ever told that it took too long.
#[derive(Debug)]
struct Patient;

impl Timer for Patient {
    fn sleep_until(&self, _at: Timestamp) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::pending())
    }
}

/// The policy with all of its limits in Redis; `None` where one of them cannot be.
pub(crate) fn shared(text: &str) -> Option<Policy> {
    let mut policy = tidegate_policy::parse("case", text).ok()?.policy;
    for rule in &mut policy.limits {
        let overrides = rule.overrides.iter().map(|one| &one.limit);
        let mut limits = std::iter::once(&rule.limit).chain(overrides);
        if !limits.all(|limit| Numbers::of(limit.algorithm()).is_ok()) {
            return None;
        }
        rule.shared = Some(SharedRule {
            sharing: Sharing::Exact,
            on_unavailable: OnUnavailable::Closed,
        });
    }
    Some(policy)
}

impl Door for ExactDoor {
    fn run(&mut self, policy: &str, trace: &[String]) -> Result<Vec<Told>, String> {
        // Time goes on for the node as the trace says; its calls are answered at once.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .map_err(|error| error.to_string())?;
        runtime.block_on(self.run_trace(policy, trace))
    }
}

impl ExactDoor {
    async fn run_trace(&self, text: &str, trace: &[String]) -> Result<Vec<Told>, String> {
        self.redis.forget_all();
        let policy = shared(text).ok_or("a limit that stays local")?;
        let clock = ManualClock::new(Timestamp::EPOCH);
        let store = RedisStore::new(self.redis.clone(), &Handle::current());
        let node = Node::with_store(policy, Arc::new(clock.clone()), Arc::new(store));
        let node = node.map_err(|error| error.to_string())?;
        let mut told = Vec::new();
        for line in TraceReader::new(Cursor::new(trace.join("\n"))) {
            let (_, line) = line.map_err(|error| error.to_string())?;
            let at = Timestamp::from_nanos(line.at_ns());
            tokio::time::advance(at.since(clock.now())).await;
            clock.set(at);
            self.redis.set_time(clock.now().as_nanos() / 1_000);
            match line {
                TraceLine::Request(request) => told.push(ask(&node, &request).await),
                TraceLine::Release { .. } => {}
                TraceLine::Reload { policy, .. } => {
                    let policy = shared(&policy).ok_or("a limit that stays local")?;
                    node.reload(policy).map_err(|error| error.to_string())?;
                }
            }
        }
        Ok(told)
    }
}

pub(crate) async fn ask(node: &Node, request: &TraceRequest) -> Told {
    let snapshot = node.snapshot();
    let view = RequestView::new(&request.parts, request.client_ip);
    let limits: Vec<usize> = match &request.limits {
        None => (0..snapshot.limits().len()).collect(),
        Some(names) => names
            .iter()
            .filter_map(|name| snapshot.policy().limit_named(name))
            .flatten()
            .collect(),
    };
    let call = Call {
        request: &view,
        route: "",
        limits: &limits,
        permits: request.permits,
        max_wait: request.timeout_ns.map(std::time::Duration::from_nanos),
        peek: false,
        now: node.clock().now(),
    };
    let mut turn = Turn::First;
    loop {
        match snapshot.decide_or_wait(&call, call.now, turn) {
            Ok(admission) => return as_told(admission),
            Err(pending) => turn = pending.wait(&Patient).await,
        }
    }
}

fn as_told(admission: Admission<'_>) -> Told {
    let decision = admission.decision().copied();
    let limit = admission.limit().map(ToOwned::to_owned);
    let (is_allowed, delay) = (admission.is_allowed(), admission.delay());
    let mut hold = admission.into_hold();
    hold.go_ahead();
    let retry = decision.and_then(|Decision { verdict, .. }| match verdict {
        // In ticks of Redis: whole seconds are the same everywhere.
        Verdict::Denied {
            retry: Retry::After(wait),
        } => Some(ToldRetry::AfterSeconds(
            u64::try_from(wait.as_nanos().div_ceil(1_000_000_000)).ok()?,
        )),
        Verdict::Denied {
            retry: Retry::OnRelease,
        } => Some(ToldRetry::OnRelease),
        Verdict::Denied { .. } => Some(ToldRetry::Never),
        Verdict::Allowed { .. } => None,
    });
    Told {
        outcome: match (is_allowed, delay.is_zero()) {
            (true, true) => ToldOutcome::Allowed,
            (true, false) => {
                ToldOutcome::Delayed(u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX))
            }
            (false, _) => ToldOutcome::Denied,
        },
        limit,
        remaining: decision.map(|decision| decision.remaining),
        retry,
    }
}

/// Whether all limits of a case can be exact; nobody waits in line there.
pub(crate) fn can_be_exact(case: &Case) -> bool {
    let can_wait = |policy: &Policy| policy.limits.iter().any(|rule| rule.queue.is_some());
    shared(&(case.script)().policy).is_some_and(|policy| !can_wait(&policy))
}

// shows: C1 (exact)
#[test]
fn the_table_through_exact_mode() {
    let mut door = ExactDoor {
        redis: Arc::new(Store::at_told_time()),
    };
    let mut failures = Vec::new();
    let mut ran = Vec::new();
    for case in cases().filter(|case| can_be_exact(case)) {
        ran.push(case.id);
        let differences = case.differences(&mut door);
        if let Some(first) = differences.first() {
            let (id, title, count) = (case.id, case.title, differences.len());
            failures.push(format!(
                "case {id} ({title}): {first} ({count} differences)"
            ));
        }
    }
    assert!(ran.len() >= 12, "the table is there: {ran:?}");
    assert!(failures.is_empty(), "{ran:?}:\n{}", failures.join("\n"));
}
