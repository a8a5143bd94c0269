//! Limits of bandwidth: what a node says when pieces of a body may pass.

use std::sync::Arc;
use std::time::Duration;

use tidegate::{Limit, ManualClock, Quota};
use tidegate_node::{Node, Outcome, Pacer};
use tidegate_policy::{BandwidthRule, BodyOf, Direction, LimitRule, OnMissing, Override};

use crate::request::{Sent, bucket, decide, node, policy, rule, user};

/// 1,000 B/s of each user, 100 at once.
fn per_user(name: &str) -> LimitRule {
    LimitRule {
        bandwidth: Some(BandwidthRule::default()),
        ..rule(name, bucket(Quota::per_second(1_000).burst(100)), user())
    }
}

fn pacer(node: &Node, user: &'static str, body: BodyOf) -> Option<Pacer> {
    let snapshot = node.snapshot();
    let admission = decide(node, &snapshot, &Sent::by(user));
    assert!(admission.is_allowed());
    // It decides on nothing, and nobody is told of it.
    assert!(admission.told().is_none());
    admission.pacer(body)
}

fn response(node: &Node, user: &'static str) -> Pacer {
    pacer(node, user, BodyOf::Response).unwrap()
}

/// A piece of so many bytes passes after this time, in ms; the clock stays.
fn takes(node: &Node, pacer: &mut Pacer, bytes: u64) -> u128 {
    let now = node.clock().now();
    assert!(pacer.most(node, now) >= bytes);
    let wait = pacer.take(bytes, now).unwrap();
    pacer.passed();
    wait.as_millis()
}

fn most(node: &Node, pacer: &mut Pacer) -> u64 {
    pacer.most(node, node.clock().now())
}

// shows: A3
#[test]
fn bodies_of_a_key_share_one_bandwidth_and_others_have_their_own() {
    let (node, clock) = node(vec![per_user("user")]);
    let (mut one, mut other) = (response(&node, "ann"), response(&node, "ann"));
    assert_eq!(most(&node, &mut one), 100);
    assert_eq!(takes(&node, &mut one, 100), 0);
    assert_eq!(takes(&node, &mut other, 50), 50);
    assert_eq!(takes(&node, &mut one, 100), 150);
    assert_eq!(takes(&node, &mut response(&node, "ben"), 100), 0);
    clock.advance(Duration::from_millis(150));
    assert_eq!(takes(&node, &mut other, 10), 10);
    let snapshot = node.snapshot();
    let counts = snapshot.limits()[0].counts();
    assert_eq!(counts.bytes(BodyOf::Response), 100 + 50 + 100 + 100 + 10);
    assert_eq!(counts.bytes(BodyOf::Request), 0);
    assert_eq!(counts.held_back(), Duration::from_millis(50 + 150 + 10));
    assert_eq!(counts.get(Outcome::Allowed), 3);
}

// shows: A3 (directions)
#[test]
fn a_direction_says_which_bodies_are_held_back() {
    for (direction, requests, responses) in [
        (Direction::Responses, false, true),
        (Direction::Requests, true, false),
        (Direction::Both, true, true),
    ] {
        let mut limit = per_user("user");
        limit.bandwidth = Some(BandwidthRule {
            direction,
            ..BandwidthRule::default()
        });
        let (node, _) = node(vec![limit]);
        let of = |body| pacer(&node, "ann", body).is_some();
        assert_eq!(of(BodyOf::Request), requests, "{direction:?}");
        assert_eq!(of(BodyOf::Response), responses, "{direction:?}");
        if direction == Direction::Both {
            // In one count.
            let mut request = pacer(&node, "ann", BodyOf::Request).unwrap();
            assert_eq!(takes(&node, &mut request, 100), 0);
            assert_eq!(takes(&node, &mut response(&node, "ann"), 100), 100);
        }
    }
}

// shows: A3 (after), A6 (bandwidth)
#[test]
fn a_piece_waits_for_the_slowest_of_its_limits_and_is_taken_of_all_or_none() {
    let mut in_all = per_user("all");
    in_all.key = Vec::new();
    in_all.limit = Limit::new("all", bucket(Quota::per_second(500).burst(200))).unwrap();
    in_all.bandwidth = Some(BandwidthRule {
        after: 150,
        ..BandwidthRule::default()
    });
    let (node, clock) = node(vec![per_user("user"), in_all]);
    let mut body = response(&node, "ann");
    // Free for the one, counted by the other; no more than either lets.
    assert_eq!(most(&node, &mut body), 100);
    assert_eq!(takes(&node, &mut body, 100), 0);
    assert_eq!(most(&node, &mut body), 50);
    assert_eq!(takes(&node, &mut body, 50), 50);
    assert_eq!(most(&node, &mut body), 100);
    assert_eq!(takes(&node, &mut body, 100), 150);
    // Of the slower limit there are 100 left: 50 more are 100 ms, of the other they are 200.
    assert_eq!(takes(&node, &mut body, 50), 200);
    assert_eq!(takes(&node, &mut body, 100), 300);
    assert_eq!(takes(&node, &mut body, 100), 400);
    // What does not pass is given back to both: 50 and 450 ms from here it is as before.
    let now = clock_now(&clock);
    let _ = most(&node, &mut body);
    let wait = body.take(100, now).unwrap();
    assert_eq!(wait.as_millis(), 500);
    body.give_back(now);
    assert_eq!(takes(&node, &mut body, 100), 500);
}

fn clock_now(clock: &ManualClock) -> tidegate::Timestamp {
    tidegate::Clock::now(clock)
}

// shows: A10 (bandwidth)
#[test]
fn an_override_is_another_bandwidth_for_a_key() {
    let mut limit = per_user("user");
    let fast = Quota::per_second(10_000).burst(1_000);
    limit.overrides = vec![Override {
        matches: vec![Some(Box::from(&b"ann"[..]))],
        limit: Limit::new("user", bucket(fast)).unwrap(),
    }];
    let (node, _) = node(vec![limit]);
    let mut ann = response(&node, "ann");
    assert_eq!(most(&node, &mut ann), 1_000);
    assert_eq!(takes(&node, &mut ann, 1_000), 0);
    assert_eq!(takes(&node, &mut ann, 1_000), 100);
    assert_eq!(most(&node, &mut response(&node, "ben")), 100);
}

#[test]
fn who_lacks_the_key_is_refused_passed_or_counted_with_the_others() {
    for (on_missing, allowed, paced) in [
        (OnMissing::Deny, false, false),
        (OnMissing::Pass, true, false),
        (OnMissing::Shared, true, true),
    ] {
        let limit = LimitRule {
            on_missing,
            ..per_user("user")
        };
        let (node, _) = node(vec![limit]);
        let snapshot = node.snapshot();
        let admission = decide(&node, &snapshot, &Sent::from("192.0.2.1"));
        assert_eq!(admission.is_allowed(), allowed, "{on_missing:?}");
        let pacer = admission.pacer(BodyOf::Response);
        assert_eq!(pacer.is_some(), paced, "{on_missing:?}");
    }
}

#[test]
fn a_request_that_is_refused_by_another_limit_has_no_bodies_to_hold_back() {
    let refuses = rule("none", bucket(Quota::per_second(0)), Vec::new());
    let (node, _) = node(vec![refuses, per_user("user")]);
    let snapshot = node.snapshot();
    let admission = decide(&node, &snapshot, &Sent::by("ann"));
    assert!(!admission.is_allowed());
    assert!(admission.pacer(BodyOf::Response).is_none());
    assert_eq!(snapshot.limits()[1].counts().get(Outcome::Allowed), 0);
}

// shows: A9 (bandwidth)
#[test]
fn a_shadow_limit_holds_nothing_back_and_counts_what_it_would_have() {
    let shadow = LimitRule {
        shadow: true,
        ..per_user("user")
    };
    let (node, clock) = node(vec![shadow]);
    let held_back = || node.snapshot().limits()[0].counts().held_back();
    let mut body = response(&node, "ann");
    // 1,100 bytes at once would have taken a second.
    assert_eq!(takes(&node, &mut body, 600), 0);
    assert_eq!(takes(&node, &mut body, 500), 0);
    assert_eq!(held_back(), Duration::from_secs(1));
    // A body that comes beside it would have waited as long, and its own part more.
    assert_eq!(takes(&node, &mut response(&node, "ann"), 100), 0);
    assert_eq!(held_back(), Duration::from_millis(2_100));
    // 1.5 s later there is something again: the same 100 are in time.
    clock.advance(Duration::from_millis(1_500));
    assert_eq!(takes(&node, &mut body, 100), 0);
    assert_eq!(held_back(), Duration::from_millis(2_100));
    // However much comes, nothing is owed for longer than a minute.
    for _ in 0..10 {
        takes(&node, &mut body, 1_000_000);
    }
    assert!(held_back() <= Duration::from_secs(63), "{:?}", held_back());
    // Once it is enforced, nobody pays for what was never held back.
    node.reload(policy(vec![per_user("user")])).unwrap();
    assert_eq!(takes(&node, &mut response(&node, "ann"), 100), 0);
}

fn reloaded(node: &Arc<Node>, limits: Vec<LimitRule>) {
    node.reload(policy(limits)).unwrap();
}

// shows: F4 (bandwidth)
#[test]
fn a_policy_that_is_reloaded_holds_from_the_next_piece_on() {
    let (node, _) = node(vec![per_user("user")]);
    let mut body = response(&node, "ann");
    assert_eq!(takes(&node, &mut body, 100), 0);
    // Ten times as fast, and at another place in the file: what was used stays used.
    let mut faster = per_user("user");
    faster.limit = Limit::new("user", bucket(Quota::per_second(10_000).burst(200))).unwrap();
    reloaded(&node, vec![per_user("other"), faster.clone()]);
    assert_eq!(most(&node, &mut body), 200);
    assert_eq!(takes(&node, &mut body, 200), 10);
    // An override for it.
    let mut slower = faster.clone();
    slower.overrides = vec![Override {
        matches: vec![Some(Box::from(&b"ann"[..]))],
        limit: Limit::new("user", bucket(Quota::per_second(100).burst(10))).unwrap(),
    }];
    reloaded(&node, vec![slower]);
    assert_eq!(most(&node, &mut body), 10);
    // More room for keys makes another store: what is reserved goes on there.
    let larger = LimitRule {
        max_keys: 1_000_000,
        ..faster
    };
    let now = node.clock().now();
    let before = body.take(10, now).unwrap();
    reloaded(&node, vec![larger.clone()]);
    body.give_back(now);
    let _ = most(&node, &mut body);
    assert!(body.take(10, now).unwrap() <= before);
    body.give_back(now);
    // By another key, or gone: it holds no longer.
    let other_key = LimitRule {
        key: Vec::new(),
        ..larger
    };
    reloaded(&node, vec![other_key]);
    assert_eq!(most(&node, &mut body), u64::MAX);
    assert_eq!(takes(&node, &mut body, 1_000_000), 0);
}

#[test]
fn requests_are_no_bytes_when_a_limit_of_a_name_becomes_another_kind() {
    let rate = rule(
        "user",
        bucket(Quota::per_second(1_000).burst(1_000)),
        user(),
    );
    let (node, _) = node(vec![per_user("user")]);
    assert_eq!(takes(&node, &mut response(&node, "ann"), 100), 0);
    reloaded(&node, vec![rate]);
    let snapshot = node.snapshot();
    let admission = decide(&node, &snapshot, &Sent::by("ann"));
    assert_eq!(admission.decision().unwrap().remaining, 999);
    assert!(admission.pacer(BodyOf::Response).is_none());
}
