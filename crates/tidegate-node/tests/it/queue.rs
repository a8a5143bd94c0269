//! Requests that wait in line for a place, among other limits.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tidegate::{Algorithm, Limit, Quota};
use tidegate_node::{Node, Turn};
use tidegate_policy::{LimitRule, Override, Queue};

use crate::request::{Patient, ask, bucket, node, policy, rule, user};

fn places(max: u64) -> LimitRule {
    LimitRule {
        queue: Some(Queue {
            length: 100,
            max_wait: Duration::from_millis(100),
            first: None,
        }),
        ..rule("places", Algorithm::Concurrency { max }, user())
    }
}

type Wait<'a> = Pin<Box<dyn Future<Output = Turn> + 'a>>;

fn look(wait: &mut Wait<'_>) -> Poll<Turn> {
    wait.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

fn joins(node: &Node) -> Wait<'static> {
    let line = ask(node, &node.snapshot(), Turn::First).expect_err("there is no place");
    let mut wait: Wait<'static> = Box::pin(line.wait(&Patient));
    assert!(look(&mut wait).is_pending());
    wait
}

// shows: A2 (bounded waiting), A6
#[test]
fn who_waits_for_a_place_has_taken_nothing_of_the_other_limits() {
    let rate = rule("rate", bucket(Quota::per_hour(2)), user());
    let (node, _) = node(vec![rate, places(1)]);
    let snapshot = node.snapshot();
    let inside = ask(&node, &snapshot, Turn::First).unwrap().into_hold();
    let mut first = joins(&node);
    let mut second = joins(&node);
    drop(inside);
    let Poll::Ready(Turn::With(place)) = look(&mut first) else {
        panic!("a place is free");
    };
    assert!(look(&mut second).is_pending());
    // Of two an hour one is left, and that is this one's.
    let admission = ask(&node, &snapshot, Turn::With(place)).unwrap();
    assert!(admission.is_allowed());
    assert_eq!(admission.applied().len(), 2);
    drop(admission.into_hold());
    let Poll::Ready(Turn::With(place)) = look(&mut second) else {
        panic!("a place is free");
    };
    // The rate refuses, and the place goes back at once.
    let admission = ask(&node, &snapshot, Turn::With(place)).unwrap();
    assert!(!admission.is_allowed());
    assert_eq!(admission.limit(), Some("rate"));
    assert_eq!(snapshot.limits()[1].store_stats().keys, 1);
    node.reload(policy(vec![places(1)])).unwrap();
    assert!(ask(&node, &node.snapshot(), Turn::First).is_ok());
}

// shows: A6, B8
#[test]
fn a_bulkhead_is_not_held_while_a_rate_is_waited_for() {
    // SEMANTICS case 34: the rate cannot be waited for long enough, so nobody else waits.
    let rate = LimitRule {
        queue: Some(Queue {
            length: 100,
            max_wait: Duration::from_millis(100),
            first: None,
        }),
        ..rule("rate", bucket(Quota::per_second(1)), user())
    };
    let (node, _) = node(vec![places(150), rate]);
    let snapshot = node.snapshot();
    let admissions: Vec<_> = (0..200)
        .map(|_| ask(&node, &snapshot, Turn::First).expect("nobody waits in line"))
        .collect();
    let allowed = admissions.iter().filter(|one| one.is_allowed()).count();
    assert_eq!(allowed, 1);
    let refused = admissions.iter().filter(|one| !one.is_allowed());
    assert!(refused.clone().all(|one| one.limit() == Some("rate")));
    // 149 places are free while the one that passed is inside.
    let left = refused.map(|one| one.applied()[0].decision.remaining);
    assert!(
        left.min() >= Some(148),
        "each saw itself inside and one more"
    );
}

// shows: F4, B8
#[test]
fn more_places_let_in_who_waits_from_before_the_reload() {
    let (node, _) = node(vec![places(1)]);
    let snapshot = node.snapshot();
    let inside = ask(&node, &snapshot, Turn::First).unwrap().into_hold();
    let mut waits = joins(&node);
    node.reload(policy(vec![places(2)])).unwrap();
    let Poll::Ready(Turn::With(place)) = look(&mut waits) else {
        panic!("there are two places now");
    };
    let snapshot = node.snapshot();
    let admission = ask(&node, &snapshot, Turn::With(place)).unwrap();
    assert!(admission.is_allowed());
    assert!(
        ask(&node, &snapshot, Turn::First).is_err(),
        "both are taken"
    );
    drop((inside, admission.into_hold()));
    assert!(ask(&node, &snapshot, Turn::First).is_ok());
}

// shows: F4, A10 (overrides)
#[test]
fn more_places_let_in_who_waits_also_where_other_keys_have_other_numbers() {
    let with_override = |max| {
        let mut rule = places(max);
        rule.overrides = vec![Override {
            matches: vec![Some(Box::from(&b"vip"[..]))],
            limit: Limit::new("places", Algorithm::Concurrency { max: 50 }).unwrap(),
        }];
        rule
    };
    let (node, _) = node(vec![with_override(1)]);
    let inside = ask(&node, &node.snapshot(), Turn::First)
        .unwrap()
        .into_hold();
    let mut waits = joins(&node);
    node.reload(policy(vec![with_override(2)])).unwrap();
    assert!(matches!(look(&mut waits), Poll::Ready(Turn::With(_))));
    drop(inside);
}

// shows: F4
#[test]
fn who_waits_for_a_limit_that_is_gone_is_decided_on_anew() {
    let mut by_address = places(1);
    by_address.key = Vec::new();
    for next in [vec![], vec![by_address]] {
        let (node, _) = node(vec![places(1)]);
        let inside = ask(&node, &node.snapshot(), Turn::First)
            .unwrap()
            .into_hold();
        let mut waits = joins(&node);
        node.reload(policy(next)).unwrap();
        assert!(matches!(look(&mut waits), Poll::Ready(Turn::Last)));
        let snapshot = node.snapshot();
        assert!(ask(&node, &snapshot, Turn::Last).unwrap().is_allowed());
        drop(inside);
    }
}

// shows: F4
#[test]
fn a_place_of_a_limit_that_is_gone_goes_back() {
    let (node, _) = node(vec![places(1)]);
    let old = node.snapshot();
    let inside = ask(&node, &old, Turn::First).unwrap().into_hold();
    let mut waits = joins(&node);
    drop(inside);
    node.reload(policy(vec![rule(
        "rate",
        bucket(Quota::per_hour(1)),
        user(),
    )]))
    .unwrap();
    let Poll::Ready(Turn::With(place)) = look(&mut waits) else {
        panic!("a place is free");
    };
    let new = node.snapshot();
    assert!(ask(&node, &new, Turn::With(place)).unwrap().is_allowed());
    assert!(ask(&node, &old, Turn::First).is_ok(), "nobody holds it");
}

#[test]
fn a_wait_that_is_over_or_in_vain_is_a_refusal() {
    let (node, clock) = node(vec![places(1)]);
    let snapshot = node.snapshot();
    let inside = ask(&node, &snapshot, Turn::First).unwrap().into_hold();
    let line = ask(&node, &snapshot, Turn::First).expect_err("full");
    drop(line);
    let refused = ask(&node, &snapshot, Turn::Last).unwrap();
    assert!(!refused.is_allowed());
    // It came 100 ms ago: there is no time left to wait.
    clock.advance(Duration::from_millis(100));
    assert!(!ask(&node, &snapshot, Turn::First).unwrap().is_allowed());
    let counts = snapshot.limits()[0].counts();
    assert_eq!(counts.get(tidegate_node::Outcome::Denied), 2);
    drop(inside);
}
