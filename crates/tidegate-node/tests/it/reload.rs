//! Policies that change while requests come.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use tidegate::{Algorithm, OnChange, Quota, QuotaError};
use tidegate_node::{Outcome, PolicyError, ReloadFailure};
use tidegate_policy::{KeyPart, Override};

use crate::request::{Sent, bucket, decide, node, passed, policy, rule, user};

// shows: F4
#[test]
fn what_was_used_stays_used() {
    let with = |algorithm| vec![rule("l", algorithm, user())];
    let window = Duration::from_hours(1);
    let others = [
        bucket(Quota::per_hour(20)),
        // Another width of state.
        bucket(Quota::per_second(7).burst(20)),
        Algorithm::FixedWindow {
            permits: 20,
            window,
        },
        Algorithm::SlidingLog {
            permits: 20,
            window,
        },
    ];
    for from in others {
        for to in others {
            let (node, _) = node(with(from));
            assert_eq!(passed(&node, &Sent::by("a"), 12), 12);
            node.reload(policy(with(to))).unwrap();
            assert_eq!(passed(&node, &Sent::by("a"), 100), 8, "{from:?} -> {to:?}");
            assert_eq!(passed(&node, &Sent::by("b"), 100), 20, "{from:?} -> {to:?}");
        }
    }
}

// shows: F4
#[test]
fn a_lower_limit_holds_at_once_and_the_debt_is_worked_off() {
    let (node, clock) = node(vec![rule("l", bucket(Quota::per_minute(60)), vec![])]);
    let request = Sent::by("a");
    assert_eq!(passed(&node, &request, 50), 50);
    node.reload(policy(vec![rule(
        "l",
        bucket(Quota::per_minute(60).burst(10)),
        vec![],
    )]))
    .unwrap();
    assert_eq!(passed(&node, &request, 1), 0);
    clock.advance(Duration::from_secs(40));
    assert_eq!(passed(&node, &request, 1), 0, "50 used of 10: a debt of 40");
    clock.advance(Duration::from_secs(1));
    assert_eq!(passed(&node, &request, 5), 1);
}

// shows: F4, B5 (change at run time)
#[test]
fn a_policy_says_what_stays_when_a_limit_changes() {
    let (node, _) = node(vec![rule("l", bucket(Quota::per_hour(100)), user())]);
    assert_eq!(passed(&node, &Sent::by("a"), 60), 60);
    let mut wider = rule("l", bucket(Quota::per_hour(200)), user());
    wider.on_change = OnChange::Proportional;
    node.reload(policy(vec![wider.clone()])).unwrap();
    assert_eq!(passed(&node, &Sent::by("a"), 200), 80);
    // The same policy again is no change, whatever it would do at one.
    wider.on_change = OnChange::Reset;
    node.reload(policy(vec![wider.clone()])).unwrap();
    assert_eq!(passed(&node, &Sent::by("a"), 1), 0);
    wider.limit = tidegate::Limit::new("l", bucket(Quota::per_hour(5))).unwrap();
    node.reload(policy(vec![wider])).unwrap();
    assert_eq!(passed(&node, &Sent::by("a"), 10), 5);
}

// shows: A10 (overrides), F4
#[test]
fn a_key_that_gets_an_override_keeps_what_it_used() {
    let plain = rule("l", bucket(Quota::per_hour(10)), user());
    let mut with_vip = plain.clone();
    let vip = tidegate::Limit::new("l", bucket(Quota::per_hour(100))).unwrap();
    with_vip.overrides = vec![Override {
        matches: vec![Some(Box::from(&b"vip"[..]))],
        limit: vip,
    }];
    let (node, _) = node(vec![plain.clone()]);
    assert_eq!(passed(&node, &Sent::by("vip"), 50), 10);
    node.reload(policy(vec![with_vip])).unwrap();
    assert_eq!(passed(&node, &Sent::by("vip"), 500), 90);
    node.reload(policy(vec![plain])).unwrap();
    assert_eq!(passed(&node, &Sent::by("vip"), 1), 0, "and back");
}

// shows: F1 (file), F4
#[test]
fn a_policy_that_is_refused_for_a_later_limit_has_not_touched_an_earlier_one() {
    let first = |burst| rule("a", bucket(Quota::per_hour(10).burst(burst)), user());
    let (node, _) = node(vec![first(10)]);
    let someone = Sent::by("u");
    assert_eq!(passed(&node, &someone, 4), 4);
    // No file says this: an override of another kind than its limit.
    let mut mixed = rule("b", bucket(Quota::per_hour(10)), user());
    let window = Algorithm::FixedWindow {
        permits: 10,
        window: Duration::from_hours(1),
    };
    mixed.overrides = vec![Override {
        matches: vec![Some(Box::from(&b"vip"[..]))],
        limit: tidegate::Limit::new("b", window).unwrap(),
    }];
    let mut shrunk = first(1_000);
    shrunk.max_keys = 1;
    assert_eq!(
        node.reload(policy(vec![shrunk, mixed])),
        Err(PolicyError::Quota(QuotaError::MixedAlgorithms))
    );
    assert_eq!(
        node.snapshot().limits()[0].store_stats().max_keys,
        first(10).max_keys
    );
    assert_eq!(passed(&node, &someone, 100), 6, "ten less four, as before");
}

#[test]
fn another_key_starts_afresh_and_counts_go_on() {
    let (node, _) = node(vec![rule("l", bucket(Quota::per_hour(10)), user())]);
    assert_eq!(passed(&node, &Sent::by("a"), 50), 10);
    let by_ip = rule("l", bucket(Quota::per_hour(10)), vec![KeyPart::ClientIp]);
    node.reload(policy(vec![by_ip])).unwrap();
    assert_eq!(passed(&node, &Sent::by("a"), 50), 10);
    assert_eq!(
        node.snapshot().limits()[0].counts().get(Outcome::Allowed),
        20
    );
}

// shows: F4, A2 (refusing)
#[test]
fn sentinel_1965_guards_of_before_a_reload_still_count() {
    let slots = |max| vec![rule("slots", Algorithm::Concurrency { max }, vec![])];
    let (node, _) = node(slots(5));
    let request = Sent::by("a");
    let holds: Vec<_> = (0..5)
        .map(|_| decide(&node, &node.snapshot(), &request).into_hold())
        .collect();
    node.reload(policy(slots(6))).unwrap();
    let sixth = decide(&node, &node.snapshot(), &request).into_hold();
    assert!(!sixth.is_empty());
    assert!(!decide(&node, &node.snapshot(), &request).is_allowed());
    drop(holds);
    drop(sixth);
    let all: Vec<_> = (0..10)
        .map(|_| decide(&node, &node.snapshot(), &request).into_hold())
        .collect();
    assert_eq!(
        all.iter().filter(|hold| !hold.is_empty()).count(),
        6,
        "none was lost"
    );
}

// shows: F1 (file)
#[test]
fn a_refused_policy_leaves_the_old_one() {
    let (node, _) = node(vec![rule("l", bucket(Quota::per_hour(10)), vec![])]);
    let failure = ReloadFailure {
        file: "p.yaml".into(),
        line: 3,
        column: 5,
        reason: "no".into(),
    };
    node.refuse(failure.clone());
    assert_eq!(node.status().failure, Some(failure));
    assert_eq!((node.status().revision, node.status().refused), (1, 1));
    node.reload(policy(vec![rule("l", bucket(Quota::per_hour(11)), vec![])]))
        .unwrap();
    assert_eq!(node.status().failure, None);
    assert_eq!(node.status().revision, 2);
}

// shows: F4
#[test]
fn decisions_of_two_policies_do_not_wait_for_each_other_in_a_circle() {
    // With each reload another of two limits changes its kind. Its new store is made after that of
    // the other limit and takes over one made before it, while both policies are asked.
    let closing = Algorithm::FixedWindow {
        permits: 1 << 30,
        window: Duration::from_hours(1),
    };
    let kinds = [bucket(Quota::per_second(1_000_000).burst(1 << 30)), closing];
    let limits = move |n: usize| {
        vec![
            rule("first", kinds[n / 2 % 2], user()),
            rule("second", kinds[n.div_ceil(2) % 2], user()),
        ]
    };
    let (node, _) = node(limits(0));
    let stop = Arc::new(AtomicBool::new(false));
    let decided = Arc::new(AtomicU64::new(0));
    let decide_on = || {
        let (node, stop, decided) = (Arc::clone(&node), Arc::clone(&stop), Arc::clone(&decided));
        move || {
            while !stop.load(Ordering::Relaxed) {
                // For a while, so that others have the next policy already.
                let snapshot = node.snapshot();
                for _ in 0..100 {
                    assert!(decide(&node, &snapshot, &Sent::by("u")).is_allowed());
                    decided.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    };
    // Not scoped: who waits in a circle is never joined.
    let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(decide_on())).collect();
    let (send, done) = mpsc::channel();
    let (reloaded, seen) = (Arc::clone(&node), Arc::clone(&decided));
    std::thread::spawn(move || {
        for n in 1..=300 {
            let before = seen.load(Ordering::Relaxed);
            reloaded.reload(policy(limits(n))).unwrap();
            while seen.load(Ordering::Relaxed) == before {
                std::thread::yield_now();
            }
        }
        send.send(()).unwrap();
    });
    let waited = done.recv_timeout(Duration::from_mins(1));
    assert_eq!(waited, Ok(()), "decisions wait for each other");
    stop.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().unwrap();
    }
    // No decision was lost on the way from policy to policy, nor counted twice.
    for limit in node.snapshot().limits() {
        let counted = limit.counts().get(Outcome::Allowed);
        assert_eq!(counted, decided.load(Ordering::Relaxed), "{}", limit.name());
    }
    assert_eq!(node.status().reloads, 300);
}
