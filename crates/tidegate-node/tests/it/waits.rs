//! What is told of those who wait, and of those who are inside.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use tidegate::{Algorithm, Quota};
use tidegate_node::{NodeMetrics, Turn};
use tidegate_policy::{LimitRule, Queue};

use crate::request::{Patient, ask, bucket, node, rule, user};

fn with_queue(rule: LimitRule) -> LimitRule {
    LimitRule {
        queue: Some(Queue {
            length: 100,
            max_wait: Duration::from_secs(10),
            first: None,
        }),
        ..rule
    }
}

fn look<T>(wait: &mut Pin<Box<impl Future<Output = T>>>) -> Poll<T> {
    wait.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

// shows: A8 (queue), G1 (metrics)
#[test]
fn who_waits_for_a_place_is_counted_and_for_how_long_and_who_is_inside() {
    let slots = Algorithm::Concurrency { max: 1 };
    let (node, clock) = node(vec![with_queue(rule("slots", slots, user()))]);
    let snapshot = node.snapshot();
    let limit = &snapshot.limits()[0];
    assert_eq!((limit.counts().waits().now, limit.in_use()), (0, Some(0)));
    let inside = ask(&node, &snapshot, Turn::First).unwrap().into_hold();
    assert_eq!(limit.in_use(), Some(1));
    let wait = || ask(&node, &snapshot, Turn::First).expect_err("there is no place");
    let mut waits = Box::pin(wait().wait(&Patient));
    let mut gives_up = Box::pin(wait().wait(&Patient));
    assert!(look(&mut waits).is_pending() && look(&mut gives_up).is_pending());
    assert_eq!(limit.counts().waits().now, 2);
    drop(gives_up);
    assert_eq!(limit.counts().waits().now, 1);
    clock.advance(Duration::from_millis(7));
    drop(inside);
    let Poll::Ready(turn) = look(&mut waits) else {
        panic!("there is a place");
    };
    let admission = ask(&node, &snapshot, turn).unwrap();
    let waits = limit.counts().waits();
    assert_eq!((waits.now, waits.count(), limit.in_use()), (0, 1, Some(1)));
    assert_eq!(waits.total, Duration::from_millis(7));
    drop(admission);
    assert_eq!(limit.in_use(), Some(0));
}

// shows: A8 (queue)
#[test]
fn who_waits_for_a_rate_is_counted_until_it_goes_ahead() {
    let rate = bucket(Quota::per_second(1).burst(1));
    let (node, _) = node(vec![with_queue(rule("rate", rate, user()))]);
    let snapshot = node.snapshot();
    let limit = &snapshot.limits()[0];
    let _ = ask(&node, &snapshot, Turn::First).unwrap();
    assert_eq!((limit.counts().waits().now, limit.in_use()), (0, None));
    let mut first = ask(&node, &snapshot, Turn::First).unwrap().into_hold();
    let second = ask(&node, &snapshot, Turn::First).unwrap().into_hold();
    assert_eq!(limit.counts().waits().now, 2);
    first.go_ahead();
    assert_eq!(limit.counts().waits().now, 1);
    drop(second);
    let waits = limit.counts().waits();
    assert_eq!((waits.now, waits.count()), (0, 2));
    assert_eq!(waits.total, Duration::from_secs(3));
}

#[test]
fn a_histogram_adds_up() {
    let rate = bucket(Quota::per_second(1).burst(1));
    let (node, _) = node(vec![with_queue(rule("rate", rate, user()))]);
    let holds: Vec<_> = (0..4)
        .map(|_| {
            ask(&node, &node.snapshot(), Turn::First)
                .unwrap()
                .into_hold()
        })
        .collect();
    let mut registry = Registry::default();
    registry.register_collector(Box::new(NodeMetrics::new(node)));
    let mut told = String::new();
    text::encode(&mut told, &registry).unwrap();
    for line in [
        r#"tidegate_limit_waiting{limit="rate"} 3"#,
        r#"tidegate_limit_wait_seconds_sum{limit="rate"} 6.0"#,
        r#"tidegate_limit_wait_seconds_count{limit="rate"} 3"#,
        r#"tidegate_limit_wait_seconds_bucket{le="0.5",limit="rate"} 0"#,
        r#"tidegate_limit_wait_seconds_bucket{le="1.0",limit="rate"} 1"#,
        r#"tidegate_limit_wait_seconds_bucket{le="5.0",limit="rate"} 3"#,
        r#"tidegate_limit_wait_seconds_bucket{le="+Inf",limit="rate"} 3"#,
    ] {
        assert!(told.lines().any(|told| told == line), "{line}\n{told}");
    }
    drop(holds);
}
