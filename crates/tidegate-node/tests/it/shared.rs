//! Limits that several nodes share, over a store that is no further away than a mutex.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tidegate::{
    Algorithm, Asked, Clock, Decision, Enforcer, KeyHasher, LeaseScheme, ManualClock, Quota,
    Receipt, SharedAnswers, SharedAsk, SharedFuture, SharedLimit, SharedStore, SharedTaken,
    Sharing, Timestamp, Unavailable, check_all_with_receipts,
};
use tidegate_node::{Admission, Node, Outcome, Pending, PolicyError, Snapshot, Turn};
use tidegate_policy::{LimitRule, OnUnavailable, RedisSettings, RedisTopology, SharedRule};

use crate::request::{Patient, ask, bucket, policy, rule, user};

/// Keeps what nodes share in memory.
#[derive(Debug)]
struct Store {
    clock: ManualClock,
    limits: Mutex<HashMap<String, Enforcer>>,
    is_down: AtomicBool,
    had_lease: AtomicBool,
    asked: AtomicU64,
    given_back: Arc<AtomicU64>,
    nodes: AtomicU64,
}

#[derive(Debug)]
struct InStore {
    taken: Vec<(Enforcer, Receipt)>,
    clock: ManualClock,
    given_back: Arc<AtomicU64>,
}

impl SharedTaken for InStore {
    fn give_back(mut self: Box<Self>) {
        for (enforcer, receipt) in self.taken.drain(..) {
            self.given_back.fetch_add(1, Ordering::Relaxed);
            enforcer.give_back(receipt, self.clock.now()).unwrap();
        }
    }

    fn has_places(&self) -> bool {
        self.taken.iter().any(|(enforcer, _)| enforcer.is_gate())
    }
}

impl Drop for InStore {
    fn drop(&mut self) {
        for (enforcer, receipt) in self.taken.drain(..) {
            if enforcer.is_gate() {
                enforcer.give_back(receipt, self.clock.now()).unwrap();
            }
        }
    }
}

impl Store {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            clock: ManualClock::new(Timestamp::from_secs(1_000)),
            limits: Mutex::default(),
            is_down: AtomicBool::new(false),
            had_lease: AtomicBool::new(false),
            asked: AtomicU64::new(0),
            given_back: Arc::default(),
            nodes: AtomicU64::new(2),
        })
    }

    fn limit(&self, limit: &SharedLimit) -> Enforcer {
        let mut limits = self.limits.lock().unwrap();
        let made = || {
            tidegate::enforcers(&[limit.algorithm], 100)
                .unwrap()
                .remove(0)
        };
        let name = format!("{} {:?}", limit.name, limit.algorithm);
        Arc::clone(limits.entry(name).or_insert_with(made))
    }

    fn decide(&self, asks: &[SharedAsk]) -> SharedAnswers {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.is_down.load(Ordering::Relaxed) {
            let had_lease = self.had_lease.load(Ordering::Relaxed);
            let down = || {
                Err(Unavailable {
                    had_lease,
                    ..Unavailable::new("down")
                })
            };
            return SharedAnswers {
                decisions: asks.iter().map(|_| down()).collect(),
                taken: None,
            };
        }
        let hasher = KeyHasher::with_keys(5, 6);
        let limits: Vec<_> = asks.iter().map(|ask| self.limit(&ask.limit)).collect();
        let asked: Vec<_> = asks
            .iter()
            .zip(&limits)
            .map(|(ask, limit)| Asked::new(&**limit, hasher.hash_bytes(&ask.key), ask.ask))
            .collect();
        let answers = check_all_with_receipts(&asked, self.clock.now()).unwrap();
        let decisions = answers.iter().map(|answer| Ok(answer.decision)).collect();
        let taken: Vec<_> = limits
            .into_iter()
            .zip(answers)
            .filter_map(|(limit, answer)| Some((limit, answer.receipt?)))
            .collect();
        let taken = InStore {
            taken,
            clock: self.clock.clone(),
            given_back: Arc::clone(&self.given_back),
        };
        SharedAnswers {
            decisions,
            taken: (!taken.taken.is_empty()).then(|| Box::new(taken) as Box<dyn SharedTaken>),
        }
    }

    fn given_back(&self) -> u64 {
        self.given_back.load(Ordering::Relaxed)
    }
}

#[derive(Debug)]
struct Kept(Arc<Store>);

impl SharedStore for Kept {
    fn validate(&self, limit: &SharedLimit) -> Result<(), String> {
        match limit.algorithm {
            Algorithm::SlidingLog { .. } => Err("no logs here".to_owned()),
            _ => Ok(()),
        }
    }

    fn check_all(&self, asks: Vec<SharedAsk>) -> SharedFuture<SharedAnswers> {
        let store = Arc::clone(&self.0);
        Box::pin(async move { store.decide(&asks) })
    }

    fn peek(&self, ask: SharedAsk) -> SharedFuture<Result<Decision, Unavailable>> {
        let key = KeyHasher::with_keys(5, 6).hash_bytes(&ask.key);
        let peeked = self
            .0
            .limit(&ask.limit)
            .peek(key, self.0.clock.now(), &ask.ask);
        Box::pin(async move { Ok(peeked) })
    }

    fn reset(
        &self,
        _limit: Arc<SharedLimit>,
        _key: Box<[u8]>,
    ) -> SharedFuture<Result<bool, Unavailable>> {
        Box::pin(async { Ok(false) })
    }

    fn live_nodes(&self) -> u64 {
        self.0.nodes.load(Ordering::Relaxed)
    }
}

fn shared(name: &str, algorithm: Algorithm, on_unavailable: OnUnavailable) -> LimitRule {
    let sharing = if algorithm.is_gate() {
        Sharing::Slots
    } else {
        Sharing::Exact
    };
    LimitRule {
        shared: Some(SharedRule {
            sharing,
            on_unavailable,
        }),
        ..rule(name, algorithm, user())
    }
}

fn node(store: &Arc<Store>, limits: Vec<LimitRule>) -> Arc<Node> {
    let clock = Arc::new(store.clock.clone());
    Node::with_store(policy(limits), clock, Arc::new(Kept(Arc::clone(store)))).unwrap()
}

/// The store answers at once.
fn answered(pending: Pending) -> Turn {
    let mut wait = pin!(pending.wait(&Patient));
    match wait.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(turn) => turn,
        Poll::Pending => panic!("it waits for something else"),
    }
}

fn decide<'a>(node: &Node, at: &'a Snapshot) -> Admission<'a> {
    let mut turn = Turn::First;
    loop {
        match ask(node, at, turn) {
            Ok(admission) => return admission,
            Err(pending) => turn = answered(pending),
        }
    }
}

fn passed(node: &Node, n: usize) -> usize {
    let snapshot = node.snapshot();
    (0..n)
        .filter(|_| decide(node, &snapshot).is_allowed())
        .count()
}

const CLOSED: OnUnavailable = OnUnavailable::Closed;

fn ten() -> Algorithm {
    bucket(Quota::per_hour(10))
}

// shows: C1 (exact)
#[test]
fn nodes_that_share_a_limit_grant_it_once() {
    let store = Store::new();
    let limits = vec![shared("all", ten(), CLOSED)];
    let nodes = [node(&store, limits.clone()), node(&store, limits)];
    assert_eq!(passed(&nodes[0], 4), 4);
    assert_eq!(passed(&nodes[1], 10), 6);
    let snapshot = nodes[0].snapshot();
    let refused = decide(&nodes[0], &snapshot);
    assert_eq!(refused.limit(), Some("all"));
    assert_eq!(snapshot.limits()[0].counts().get(Outcome::Denied), 1);
    assert_eq!(snapshot.limits()[0].counts().get(Outcome::Allowed), 4);
}

#[test]
fn whom_this_node_refuses_nobody_else_is_asked_about() {
    let store = Store::new();
    let own = rule("own", bucket(Quota::per_hour(1)), user());
    let node = node(&store, vec![shared("all", ten(), CLOSED), own]);
    assert_eq!(passed(&node, 5), 1);
    assert_eq!(store.asked.load(Ordering::Relaxed), 1);
    let snapshot = node.snapshot();
    assert_eq!(snapshot.limits()[1].counts().get(Outcome::Denied), 4);
}

// shows: A6
#[test]
fn what_others_took_goes_back_where_this_node_refuses_after_all() {
    let store = Store::new();
    let own = rule("own", bucket(Quota::per_hour(1)), user());
    let node = node(&store, vec![shared("all", ten(), CLOSED), own]);
    let snapshot = node.snapshot();
    let turns: Vec<_> = (0..2)
        .map(|_| answered(ask(&node, &snapshot, Turn::First).unwrap_err()))
        .collect();
    let allowed = turns.into_iter().map(|turn| {
        let admission = ask(&node, &snapshot, turn).unwrap();
        admission.is_allowed()
    });
    assert_eq!(allowed.collect::<Vec<_>>(), [true, false]);
    assert_eq!(store.given_back(), 1);
    // A refusal of the others takes nothing of this node's.
    let _ = node.reload(policy(vec![
        shared("all", bucket(Quota::per_hour(1)), CLOSED),
        rule("own", bucket(Quota::per_hour(3)), user()),
    ]));
    assert_eq!(passed(&node, 5), 1);
    let snapshot = node.snapshot();
    assert_eq!(
        snapshot.limits()[1].counts().get(Outcome::Denied),
        1,
        "before"
    );
}

#[test]
fn who_goes_away_meanwhile_has_taken_nothing() {
    let store = Store::new();
    let node = node(&store, vec![shared("all", ten(), CLOSED)]);
    let snapshot = node.snapshot();
    drop(ask(&node, &snapshot, Turn::First).unwrap_err());
    drop(answered(ask(&node, &snapshot, Turn::First).unwrap_err()));
    assert_eq!(store.given_back(), 1);
    assert_eq!(passed(&node, 20), 10);
}

#[test]
fn a_policy_that_changes_meanwhile_is_asked_about_anew() {
    let store = Store::new();
    let node = node(&store, vec![shared("all", ten(), CLOSED)]);
    let turn = {
        let snapshot = node.snapshot();
        answered(ask(&node, &snapshot, Turn::First).unwrap_err())
    };
    let none = shared("all", bucket(Quota::per_hour(0)), CLOSED);
    node.reload(policy(vec![none])).unwrap();
    let snapshot = node.snapshot();
    let pending = ask(&node, &snapshot, turn).unwrap_err();
    assert_eq!(store.given_back(), 1);
    assert!(
        !ask(&node, &snapshot, answered(pending))
            .unwrap()
            .is_allowed()
    );
}

// shows: C5
#[test]
fn what_holds_while_the_others_cannot_be_reached_is_the_limits_to_say() {
    let share = |then_open| OnUnavailable::LocalShare { then_open };
    for (on_unavailable, at_once, later) in [
        (OnUnavailable::Open, 20, 20),
        (CLOSED, 0, 0),
        // Half of ten an hour.
        (share(false), 5, 0),
        (share(true), 5, 20),
    ] {
        let store = Store::new();
        let node = node(&store, vec![shared("all", ten(), on_unavailable)]);
        store.is_down.store(true, Ordering::Relaxed);
        assert_eq!(passed(&node, 20), at_once, "{on_unavailable:?}");
        let since = node.snapshot().limits()[0].unavailable_since();
        assert_eq!(since, Some(Timestamp::from_secs(1_000)));
        store.clock.advance(Duration::from_secs(10));
        assert_eq!(passed(&node, 20), later, "{on_unavailable:?}, later");
        store.is_down.store(false, Ordering::Relaxed);
        assert_eq!(passed(&node, 20), 10, "{on_unavailable:?}, reached again");
        assert_eq!(node.snapshot().limits()[0].unavailable_since(), None);
    }
}

/// Every key of `store: auto` that was not leased was refused while Redis was away, and all of them
/// on a node that had started without it.
#[test]
fn a_key_that_is_not_leased_has_a_share_and_one_that_was_has_no_other() {
    for sharing in [
        Sharing::Auto(LeaseScheme::Strict),
        Sharing::Leased(LeaseScheme::Strict),
    ] {
        for (had_lease, passes) in [(false, 5), (true, 0)] {
            let store = Store::new();
            let share = OnUnavailable::LocalShare { then_open: false };
            let mut limit = shared("all", ten(), share);
            limit.shared.as_mut().unwrap().sharing = sharing;
            let node = node(&store, vec![limit]);
            store.had_lease.store(had_lease, Ordering::Relaxed);
            store.is_down.store(true, Ordering::Relaxed);
            assert_eq!(passed(&node, 20), passes, "{sharing:?}");
        }
    }
}

// shows: C5
#[test]
fn a_reload_gives_a_share_no_more_time() {
    let store = Store::new();
    let share = OnUnavailable::LocalShare { then_open: false };
    let limits = vec![shared("all", ten(), share)];
    let node = node(&store, limits.clone());
    store.is_down.store(true, Ordering::Relaxed);
    assert_eq!(passed(&node, 20), 5);
    node.reload(policy(limits)).unwrap();
    let since = node.snapshot().limits()[0].unavailable_since();
    assert_eq!(since, Some(Timestamp::from_secs(1_000)));
    store.clock.advance(Duration::from_secs(10));
    assert_eq!(passed(&node, 20), 0);
}

#[test]
fn who_was_not_asked_for_anothers_refusal_is_not_reached_by_it() {
    let store = Store::new();
    let share = OnUnavailable::LocalShare { then_open: false };
    let none = bucket(Quota::per_hour(0));
    let limits = vec![shared("all", ten(), share), shared("none", none, share)];
    let node = node(&store, limits);
    store.is_down.store(true, Ordering::Relaxed);
    assert_eq!(passed(&node, 1), 0);
    store.is_down.store(false, Ordering::Relaxed);
    assert_eq!(passed(&node, 1), 0);
    let snapshot = node.snapshot();
    let since = |at: usize| snapshot.limits()[at].unavailable_since();
    assert_eq!(since(0), Some(Timestamp::from_secs(1_000)));
    assert_eq!(since(1), None, "its own answer");
}

#[test]
fn a_share_follows_the_number_of_nodes_and_is_nothing_where_there_are_too_many() {
    let store = Store::new();
    let share = OnUnavailable::LocalShare { then_open: true };
    let node = node(&store, vec![shared("all", ten(), share)]);
    store.is_down.store(true, Ordering::Relaxed);
    store.nodes.store(5, Ordering::Relaxed);
    assert_eq!(passed(&node, 20), 2);
    store.nodes.store(11, Ordering::Relaxed);
    assert_eq!(passed(&node, 20), 0);
}

#[test]
fn a_place_that_nodes_share_is_held_until_the_request_has_ended() {
    let store = Store::new();
    let node = node(
        &store,
        vec![shared("places", Algorithm::Concurrency { max: 1 }, CLOSED)],
    );
    let snapshot = node.snapshot();
    let mut hold = decide(&node, &snapshot).into_hold();
    hold.go_ahead();
    assert!(!hold.is_empty());
    assert_eq!(passed(&node, 1), 0);
    drop(hold);
    assert_eq!(passed(&node, 1), 1);
}

#[test]
fn a_wait_that_is_given_up_gives_back_what_others_took() {
    let store = Store::new();
    let pays_later = Algorithm::smooth_bursty(Quota::per_second(1));
    let node = node(&store, vec![shared("all", pays_later, CLOSED)]);
    let snapshot = node.snapshot();
    for _ in 0..3 {
        let _ = decide(&node, &snapshot).into_hold();
    }
    // The first two paid nothing and waited nothing, or gave back what they waited for.
    assert!(store.given_back() >= 1);
}

#[test]
fn a_shadow_limit_that_nodes_share_counts_and_refuses_nobody() {
    let store = Store::new();
    let shadow = LimitRule {
        shadow: true,
        ..shared("shadow", bucket(Quota::per_hour(2)), CLOSED)
    };
    let node = node(&store, vec![shadow, shared("all", ten(), CLOSED)]);
    assert_eq!(passed(&node, 12), 10);
    let snapshot = node.snapshot();
    let counts = snapshot.limits()[0].counts();
    assert_eq!(counts.get(Outcome::Allowed), 2);
    assert_eq!(counts.get(Outcome::ShadowDenied), 8);
    store.is_down.store(true, Ordering::Relaxed);
    assert_eq!(passed(&node, 3), 0, "the other is closed");
}

#[test]
fn a_limit_that_the_store_cannot_keep_is_refused_with_the_policy() {
    let store = Store::new();
    let log = Algorithm::SlidingLog {
        permits: 5,
        window: Duration::from_secs(1),
    };
    let kept = Arc::new(Kept(Arc::clone(&store)));
    let limits = vec![shared("log", log, CLOSED)];
    let made = Node::with_store(policy(limits), Arc::new(store.clock.clone()), kept);
    let error = made.unwrap_err();
    assert!(matches!(error, PolicyError::Shared { .. }));
    assert_eq!(
        error.to_string(),
        "the limit `log` cannot be shared: no logs here"
    );
}

#[test]
fn a_node_that_is_alone_has_no_limits_that_nodes_share_unless_it_simulates_them() {
    let alone = Arc::new(ManualClock::new(Timestamp::from_secs(1_000)));
    let shared = policy(vec![shared("all", ten(), CLOSED)]);
    let error = Node::new(shared.clone(), alone.clone()).unwrap_err();
    let expected = "the limit `all` cannot be shared: this node has no Redis";
    assert_eq!(error.to_string(), expected);
    let node = Node::with_hasher(shared, alone, KeyHasher::random()).unwrap();
    assert_eq!(passed(&node, 20), 10);
}

#[test]
fn another_redis_comes_with_a_restart() {
    let store = Store::new();
    let node = node(&store, vec![shared("all", ten(), CLOSED)]);
    let other = RedisSettings {
        urls: vec!["redis://elsewhere".to_owned()],
        topology: RedisTopology::Server,
        nodes: 1,
        user: None,
        password_file: None,
        ca_file: None,
    };
    let mut changed = policy(vec![shared("all", ten(), CLOSED)]);
    changed.redis = Some(other);
    assert_eq!(node.reload(changed), Err(PolicyError::OtherRedis));
}
