//! One request, several limits.

use std::time::Duration;

use tidegate::{Algorithm, Quota, Retry};
use tidegate_node::Outcome;
use tidegate_policy::{KeyPart, LimitRule, OnMissing, Override};

use crate::request::{Sent, bucket, decide, node, passed, rule, user};

// shows: A6
#[test]
fn envoy_ratelimit_1060_a_blocked_caller_takes_nothing_from_the_shared_limit() {
    let per_user = rule("per-user", bucket(Quota::per_hour(5)), user());
    let in_all = rule("in-all", bucket(Quota::per_hour(100)), vec![]);
    let (node, _) = node(vec![per_user, in_all]);
    assert_eq!(passed(&node, &Sent::by("noisy"), 1_000), 5);
    let snapshot = node.snapshot();
    let other = decide(&node, &snapshot, &Sent::by("quiet"));
    assert!(other.is_allowed());
    assert_eq!(other.applied()[1].decision.remaining, 100 - 5 - 1);
    assert_eq!(
        other.limit(),
        Some("per-user"),
        "an allowance reports the least remaining"
    );
    let denied = snapshot.limits()[0].counts().get(Outcome::Denied);
    assert_eq!(denied, 995);
    assert_eq!(snapshot.limits()[1].counts().get(Outcome::Allowed), 6);
    assert_eq!(snapshot.limits()[1].counts().get(Outcome::Denied), 0);
}

// shows: A6
#[test]
fn a_denial_names_the_longest_wait() {
    let second = rule("second", bucket(Quota::per_second(1)), vec![]);
    let hour = rule("hour", bucket(Quota::per_hour(1)), vec![]);
    let (node, _) = node(vec![second, hour]);
    let request = Sent::by("a");
    assert_eq!(passed(&node, &request, 1), 1);
    let snapshot = node.snapshot();
    let denied = decide(&node, &snapshot, &request);
    assert_eq!(denied.limit(), Some("hour"));
    let wait = denied.decision().and_then(tidegate::Decision::retry_after);
    assert_eq!(wait, Some(Duration::from_hours(1)));
}

// shows: A9
#[test]
fn a_shadow_limit_counts_and_lets_pass() {
    let mut shadow = rule("shadow", bucket(Quota::per_hour(2)), vec![]);
    shadow.shadow = true;
    let (node, _) = node(vec![shadow]);
    assert_eq!(passed(&node, &Sent::by("a"), 10), 10);
    let snapshot = node.snapshot();
    let counts = snapshot.limits()[0].counts();
    assert_eq!(counts.get(Outcome::ShadowDenied), 8);
    assert_eq!(counts.get(Outcome::Allowed), 2);
    let admission = decide(&node, &snapshot, &Sent::by("a"));
    assert!(
        admission.told().is_none(),
        "nobody is told of a shadow limit"
    );
    assert!(admission.shadow()[0].decision.is_denied());
}

// shows: A9
#[test]
fn a_shadow_limit_is_not_charged_for_what_another_refuses() {
    let mut shadow = rule("shadow", bucket(Quota::per_hour(100)), vec![]);
    shadow.shadow = true;
    let enforced = rule("enforced", bucket(Quota::per_hour(3)), vec![]);
    let (node, _) = node(vec![shadow, enforced]);
    assert_eq!(passed(&node, &Sent::by("a"), 50), 3);
    let snapshot = node.snapshot();
    let admission = decide(&node, &snapshot, &Sent::by("a"));
    assert_eq!(admission.shadow()[0].decision.remaining, 97);
}

// shows: A9, D3 (limit_req)
#[test]
fn shadow_zones_of_nginx_are_one_dry_run_and_what_they_would_delay_is_counted() {
    let zone = |name, burst| LimitRule {
        shadow: true,
        ..rule(
            name,
            Algorithm::Nginx {
                requests: 1,
                per_minute: true,
                burst,
                delay: Some(0),
            },
            vec![],
        )
    };
    let (node, _) = node(vec![zone("wide", 5), zone("narrow", 1)]);
    for _ in 0..10 {
        let snapshot = node.snapshot();
        let admission = decide(&node, &snapshot, &Sent::by("a"));
        assert!(admission.is_allowed());
        assert_eq!(admission.delay(), Duration::ZERO);
    }
    let snapshot = node.snapshot();
    let count = |at: usize, outcome| snapshot.limits()[at].counts().get(outcome);
    for at in [0, 1] {
        assert_eq!(count(at, Outcome::Allowed), 1);
        assert_eq!(count(at, Outcome::ShadowDelayed), 1);
    }
    // What `narrow` would have refused was not charged to `wide`.
    assert_eq!(count(0, Outcome::ShadowDenied), 0);
    assert_eq!(count(1, Outcome::ShadowDenied), 8);
    assert_eq!(count(0, Outcome::Delayed) + count(1, Outcome::Delayed), 0);
}

// shows: A5 (HTTP parts)
#[test]
fn a_missing_part_is_denied_passed_or_shared() {
    for (on_missing, expected) in [
        (OnMissing::Deny, 0),
        (OnMissing::Pass, 50),
        (OnMissing::Shared, 10),
    ] {
        let mut limit = rule("l", bucket(Quota::per_hour(10)), user());
        limit.on_missing = on_missing;
        let (node, _) = node(vec![limit]);
        let passed = (0..50)
            .filter(|n| passed(&node, &Sent::from(&format!("192.0.2.{n}")), 1) == 1)
            .count();
        assert_eq!(passed, expected, "{on_missing:?}");
    }
}

// shows: A5 (HTTP parts), D3 (limit_req)
#[test]
fn with_pass_if_empty_a_missing_part_is_an_empty_one_and_an_empty_key_is_not_limited() {
    let two = ["a", "b"].map(|name| KeyPart::Header(name.to_owned()));
    let mut limit = rule("l", bucket(Quota::per_hour(1)), two.to_vec());
    limit.on_missing = OnMissing::PassIfEmpty;
    let keyless = LimitRule {
        on_missing: OnMissing::PassIfEmpty,
        ..rule("in-all", bucket(Quota::per_hour(100)), vec![])
    };
    let (node, _) = node(vec![limit, keyless]);
    let sent = |headers: &[(&'static str, &'static str)]| Sent {
        ip: None,
        headers: headers.to_vec(),
    };
    for (headers, expected) in [
        (&[][..], 5),
        (&[("a", "")], 5),
        (&[("a", ""), ("b", "")], 5),
        (&[("a", "1")], 1),
        (&[("a", "1"), ("b", "")], 0),
        (&[("b", "1")], 1),
        (&[("a", ""), ("b", "1")], 0),
        (&[("a", "1"), ("b", "1")], 1),
    ] {
        assert_eq!(passed(&node, &sent(headers), 5), expected, "{headers:?}");
    }
    let snapshot = node.snapshot();
    let admission = decide(&node, &snapshot, &sent(&[]));
    assert_eq!(
        admission.limit(),
        Some("in-all"),
        "a limit without a key holds"
    );
}

// shows: A5 (HTTP parts)
#[test]
fn a_request_that_lacks_a_part_charges_no_other_limit() {
    let mut by_user = rule("by-user", bucket(Quota::per_hour(10)), user());
    by_user.on_missing = OnMissing::Deny;
    let in_all = rule("in-all", bucket(Quota::per_hour(10)), vec![]);
    let (node, _) = node(vec![in_all, by_user]);
    assert_eq!(passed(&node, &Sent::from("192.0.2.1"), 100), 0);
    let snapshot = node.snapshot();
    let admission = decide(&node, &snapshot, &Sent::by("a"));
    assert_eq!(admission.applied()[0].decision.remaining, 9);
    let refused = decide(&node, &snapshot, &Sent::from("192.0.2.1"));
    assert_eq!(
        refused.decision().and_then(tidegate::Decision::retry),
        Some(Retry::Never)
    );
}

// shows: A5 (HTTP parts)
#[test]
fn traefik_9721_an_ipv6_client_is_its_prefix() {
    let (node, _) = node(vec![rule(
        "l",
        bucket(Quota::per_hour(5)),
        vec![KeyPart::ClientIp],
    )]);
    let within: usize = (0..20)
        .map(|n| passed(&node, &Sent::from(&format!("2001:db8::{n:x}")), 1))
        .sum();
    assert_eq!(within, 5, "one /64 is one client");
    assert_eq!(
        passed(&node, &Sent::from("2001:db8:0:1::1"), 1),
        1,
        "the next is another"
    );
}

// shows: A10 (overrides)
#[test]
fn an_override_holds_for_its_keys() {
    let mut limit = rule("l", bucket(Quota::per_hour(10)), user());
    let vip = tidegate::Limit::new("l", bucket(Quota::per_second(7).burst(100))).unwrap();
    limit.overrides = vec![Override {
        matches: vec![Some(Box::from(&b"vip"[..]))],
        limit: vip,
    }];
    let (node, _) = node(vec![limit]);
    assert_eq!(passed(&node, &Sent::by("joe"), 1_000), 10);
    assert_eq!(passed(&node, &Sent::by("vip"), 1_000), 100);
}

// shows: A2 (refusing)
#[test]
fn places_come_back_when_a_request_has_ended() {
    let (node, _) = node(vec![rule(
        "slots",
        Algorithm::Concurrency { max: 5 },
        user(),
    )]);
    let snapshot = node.snapshot();
    let request = Sent::by("a");
    let inside: Vec<_> = (0..5)
        .map(|_| decide(&node, &snapshot, &request).into_hold())
        .collect();
    let denied = decide(&node, &snapshot, &request);
    assert_eq!(
        denied.decision().and_then(tidegate::Decision::retry),
        Some(Retry::OnRelease)
    );
    assert!(
        decide(&node, &snapshot, &Sent::by("b")).is_allowed(),
        "each user has their own"
    );
    drop(inside);
    assert!(decide(&node, &snapshot, &request).is_allowed());
}

// shows: B6 (local)
#[test]
fn a_wait_that_is_given_up_gives_back() {
    let quota = Quota::per_second(1);
    let smooth = Algorithm::smooth_bursty(quota);
    let (node, _) = node(vec![rule("smooth", smooth, vec![])]);
    let snapshot = node.snapshot();
    let request = Sent::by("a");
    let delay = || {
        let admission = decide(&node, &snapshot, &request);
        (admission.delay(), admission.into_hold())
    };
    let (first, hold) = delay();
    assert!(first.is_zero() && hold.is_empty());
    let (second, mut hold) = delay();
    assert_eq!(second, Duration::from_secs(1));
    hold.go_ahead();
    drop(hold);
    let (third, hold) = delay();
    assert_eq!(third, Duration::from_secs(2));
    drop(hold);
    assert_eq!(
        delay().0,
        Duration::from_secs(2),
        "the third never went ahead"
    );
}
