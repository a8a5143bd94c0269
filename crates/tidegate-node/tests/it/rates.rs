//! Limits of several rates, all of which hold.

use std::time::Duration;

use tidegate_node::Outcome;
use tidegate_policy::{LimitRule, parse};

use crate::request::{Sent, decide, node, passed, policy};

fn limits(text: &str) -> Vec<LimitRule> {
    let text = format!("limits:\n  l: {{ key: \"header:user\", {text} }}\n");
    let loaded = parse("p.yaml", &text).unwrap_or_else(|problems| panic!("{problems}"));
    loaded.policy.limits
}

// shows: A6, B5 (several bandwidths)
#[test]
fn what_one_rate_refuses_is_charged_to_none() {
    let (node, clock) = node(limits("rate: [10/h, 3/s]"));
    assert_eq!(passed(&node, &Sent::by("a"), 100), 3);
    let snapshot = node.snapshot();
    let refused = decide(&node, &snapshot, &Sent::by("a"));
    assert_eq!(refused.limit(), Some("l:2"));
    let left = |at: usize| refused.applied()[at].decision.remaining;
    assert_eq!(
        (left(0), left(1)),
        (6, 0),
        "it would have been the fourth of ten"
    );
    let denied = |at: usize| snapshot.limits()[at].counts().get(Outcome::Denied);
    assert_eq!((denied(0), denied(1)), (0, 98));
    for expected in [3, 3, 1, 0] {
        clock.advance(Duration::from_secs(1));
        assert_eq!(passed(&node, &Sent::by("a"), 100), expected);
    }
    assert_eq!(
        passed(&node, &Sent::by("b"), 100),
        3,
        "each key has its own"
    );
}

// shows: F4, B5 (several bandwidths)
#[test]
fn a_rate_that_comes_or_goes_leaves_what_was_used_of_the_first() {
    let (one, two) = ("rate: 10/h", "rate: [10/h, 2/s]");
    let (node, clock) = node(limits(one));
    let request = Sent::by("a");
    assert_eq!(passed(&node, &request, 4), 4);
    node.reload(policy(limits(two))).unwrap();
    assert_eq!(
        passed(&node, &request, 100),
        2,
        "of the second none was used"
    );
    node.reload(policy(limits(two))).unwrap();
    assert_eq!(
        passed(&node, &request, 100),
        0,
        "of both what was used stays"
    );
    clock.advance(Duration::from_secs(1));
    assert_eq!(passed(&node, &request, 1), 1);
    node.reload(policy(limits(one))).unwrap();
    assert_eq!(passed(&node, &request, 100), 3, "ten less seven");
    node.reload(policy(limits("rate: [12/h, 2/s]"))).unwrap();
    assert_eq!(
        passed(&node, &request, 100),
        2,
        "two more, and a second rate anew"
    );
    assert_eq!(passed(&node, &Sent::by("b"), 100), 2);
}

// shows: A9
#[test]
fn a_shadow_limit_takes_of_all_its_rates_or_of_none() {
    let (node, clock) = node(limits("rate: [10/h, 3/s], shadow: true"));
    assert_eq!(passed(&node, &Sent::by("a"), 100), 100);
    let snapshot = node.snapshot();
    let admission = decide(&node, &snapshot, &Sent::by("a"));
    let left = admission.shadow().iter().map(|one| one.decision.remaining);
    assert_eq!(
        left.collect::<Vec<_>>(),
        [6, 0],
        "it would have been the fourth"
    );
    let count = |at: usize, outcome| snapshot.limits()[at].counts().get(outcome);
    assert_eq!(count(1, Outcome::ShadowDenied), 98);
    assert_eq!(count(0, Outcome::ShadowDenied), 0);
    clock.advance(Duration::from_secs(1));
    let admission = decide(&node, &snapshot, &Sent::by("a"));
    assert!(admission.is_allowed() && admission.told().is_none());
    let left = admission.shadow().iter().map(|one| one.decision.remaining);
    assert_eq!(left.collect::<Vec<_>>(), [6, 2]);
}

// shows: A10 (overrides)
#[test]
fn an_override_holds_for_each_rate() {
    let (node, clock) = node(limits(
        "rate: [10/h, 3/s], overrides: [{ match: { \"header:user\": vip }, rate: [100/h, 40/s] }]",
    ));
    for (user, passes) in [("vip", [40, 40, 20, 0]), ("joe", [3, 3, 3, 1])] {
        for expected in passes {
            assert_eq!(passed(&node, &Sent::by(user), 100), expected, "{user}");
            clock.advance(Duration::from_secs(1));
        }
    }
}

#[test]
fn who_lacks_a_part_of_the_key_is_refused_once() {
    let (node, _) = node(limits("rate: [10/h, 3/s], on_missing: deny"));
    let snapshot = node.snapshot();
    let refused = decide(&node, &snapshot, &Sent::from("192.0.2.1"));
    assert_eq!((refused.limit(), refused.applied().len()), (Some("l"), 1));
    let missing = |at: usize| snapshot.limits()[at].counts().get(Outcome::Missing);
    assert_eq!((missing(0), missing(1)), (1, 0));
}
