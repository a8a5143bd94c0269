//! What a node tells the store of what it shares, and has against a policy.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate::{
    Algorithm, Decision, Limit, Quota, SharedAnswers, SharedAsk, SharedFuture, SharedLimit,
    SharedStore, Sharing, SystemClock, Unavailable,
};
use tidegate_node::Node;
use tidegate_policy::{KeyPart, LimitRule, OnUnavailable, Override, Policy, Severity, SharedRule};

use crate::request::{bucket, policy, rule};

/// Only listens; and has no logs.
#[derive(Debug, Default)]
struct Told(Mutex<Vec<Arc<SharedLimit>>>);

impl SharedStore for Told {
    fn validate(&self, limit: &SharedLimit) -> Result<(), String> {
        match limit.algorithm {
            Algorithm::SlidingLog { .. } => Err("no logs here".to_owned()),
            _ => Ok(()),
        }
    }

    fn define(&self, limits: Vec<Arc<SharedLimit>>) {
        *self.0.lock().unwrap() = limits;
    }

    fn check_all(&self, _: Vec<SharedAsk>) -> SharedFuture<SharedAnswers> {
        unreachable!("nobody asks")
    }

    fn peek(&self, _: SharedAsk) -> SharedFuture<Result<Decision, Unavailable>> {
        unreachable!("nobody asks")
    }

    fn reset(&self, _: Arc<SharedLimit>, _: Box<[u8]>) -> SharedFuture<Result<bool, Unavailable>> {
        unreachable!("nobody asks")
    }

    fn live_nodes(&self) -> u64 {
        1
    }
}

impl Told {
    /// Name, version, and how long it takes to say which keys.
    fn defined(&self) -> Vec<(String, u64, usize)> {
        let limits = self.0.lock().unwrap();
        let one = |limit: &Arc<SharedLimit>| (limit.name.clone(), limit.version, limit.keys.len());
        limits.iter().map(one).collect()
    }
}

fn ten() -> Algorithm {
    bucket(Quota::per_hour(10))
}

fn shared(name: &str, algorithm: Algorithm) -> LimitRule {
    LimitRule {
        shared: Some(SharedRule {
            sharing: Sharing::Exact,
            on_unavailable: OnUnavailable::Closed,
        }),
        ..rule(name, algorithm, vec![KeyPart::Method, KeyPart::Path])
    }
}

fn of_version(version: u64, limits: Vec<LimitRule>) -> Policy {
    Policy {
        version,
        ..policy(limits)
    }
}

fn node(policy: Policy) -> (Arc<Node>, Arc<Told>) {
    let told = Arc::new(Told::default());
    let node = Node::with_store(policy, Arc::new(SystemClock::new()), told.clone());
    (node.unwrap(), told)
}

// shows: B11 (versions)
#[test]
fn the_store_is_told_what_is_shared_with_each_version_of_the_policy() {
    let mut one = shared("one", ten());
    one.overrides = vec![Override {
        matches: vec![None, Some(Box::from(&b"alice"[..]))],
        limit: Limit::new("one", ten()).unwrap(),
    }];
    let local = rule("local", ten(), Vec::new());
    let (node, told) = node(of_version(7, vec![one.clone(), local]));
    let of_one = |version| {
        let of_override = 1 + 1 + 8 + "alice".len();
        [0, of_override].map(|keys| ("one".to_owned(), version, keys))
    };
    assert_eq!(told.defined(), of_one(7));
    node.reload(of_version(8, vec![one, shared("two", ten())]))
        .unwrap();
    assert_eq!(told.defined()[..2], of_one(8));
    assert_eq!(told.defined()[2..], [("two".to_owned(), 8, 0)]);
    // One that is refused changes nothing.
    let log = Algorithm::SlidingLog {
        permits: 5,
        window: Duration::from_secs(1),
    };
    let refused = of_version(9, vec![shared("log", log)]);
    node.reload(refused).unwrap_err();
    assert_eq!(told.defined().len(), 3);
}

// shows: F1 (file)
#[test]
fn what_is_wrong_with_a_reload_is_told_with_its_place() {
    let (node, _) = node(policy(vec![]));
    let text = "limits:\n  log: { rate: 5/s, algorithm: sliding_log, store: exact }\n\
                redis: { url: \"redis://h\", nodes: 3 }\n";
    let read = tidegate_policy::parse_with("p.yaml", text, &|policy| node.complaints(policy));
    let problems = read.unwrap_err();
    let is_error = |problem: &&tidegate_policy::Problem| problem.severity() == Severity::Error;
    let told: Vec<_> = problems
        .iter()
        .filter(is_error)
        .map(|error| (error.line(), error.column(), error.message()))
        .collect();
    let expected = [
        (2, 16, "this cannot be shared: no logs here"),
        (3, 8, "what `redis` says changes with a restart only"),
    ];
    assert_eq!(told, expected);
}

#[test]
fn how_many_nodes_to_expect_may_change_without_a_restart() {
    let expecting = |nodes| {
        let redis = format!("redis: {{ url: \"redis://h\", nodes: {nodes} }}\n");
        let text = format!("limits: {{ l: {{ rate: 1/s }} }}\n{redis}");
        tidegate_policy::parse("p.yaml", &text).unwrap().policy
    };
    let (node, _) = node(expecting(3));
    assert_eq!(node.complaints(&expecting(4)), []);
    assert_eq!(node.reload(expecting(4)), Ok(2));
}
