//! A node goes on with the counts of one before it.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tidegate::{Algorithm, Clock, ManualClock, Quota, Timestamp};
use tidegate_node::{Node, PolicyError, Saved, SavedError};
use tidegate_policy::{KeyPart, LimitRule, Override, StateSettings};

use crate::request::{Sent, bucket, node, passed, policy, rule, user};

fn kept(name: &str, algorithm: Algorithm) -> LimitRule {
    LimitRule {
        persist: true,
        ..rule(name, algorithm, user())
    }
}

fn save(node: &Node) -> Vec<u8> {
    let mut bytes = Vec::new();
    let report = node.save(&mut bytes).unwrap();
    assert_eq!(report.bytes, bytes.len() as u64);
    bytes
}

fn read(bytes: &[u8], limits: Vec<LimitRule>, clock: &ManualClock) -> Result<Saved, SavedError> {
    Saved::read(bytes, &policy(limits), clock.now())
}

fn restored(bytes: &[u8], limits: Vec<LimitRule>, clock: &ManualClock) -> Arc<Node> {
    let saved = read(bytes, limits.clone(), clock).unwrap();
    Node::restored(policy(limits), Arc::new(clock.clone()), None, saved).unwrap()
}

// shows: H2 (counts survive a restart)
#[test]
fn what_was_used_is_used_and_the_time_between_has_passed() {
    let limits = || vec![kept("l", bucket(Quota::per_minute(60).burst(20)))];
    let (before, clock) = node(limits());
    assert_eq!(passed(&before, &Sent::by("a"), 15), 15);
    clock.advance(Duration::from_millis(500));
    let bytes = save(&before);
    let after = restored(&bytes, limits(), &clock);
    assert_eq!(passed(&after, &Sent::by("a"), 100), 5);
    assert_eq!(passed(&after, &Sent::by("b"), 100), 20);
    // Half of a permit had come back before, the other half comes in between.
    clock.advance(Duration::from_millis(1_500));
    assert_eq!(
        passed(&restored(&bytes, limits(), &clock), &Sent::by("a"), 100),
        7
    );
    clock.advance(Duration::from_hours(1));
    assert_eq!(
        passed(&restored(&bytes, limits(), &clock), &Sent::by("a"), 100),
        20
    );
}

// shows: H2 (windows go on where they were)
#[test]
fn a_window_that_began_before_the_restart_ends_when_it_would_have() {
    let (permits, window) = (5, Duration::from_hours(24));
    for algorithm in [
        Algorithm::WindowFromFirst { permits, window },
        Algorithm::SlidingLog { permits, window },
    ] {
        let limits = || vec![kept("l", algorithm)];
        let (before, clock) = node(limits());
        assert_eq!(passed(&before, &Sent::by("a"), 5), 5);
        clock.advance(Duration::from_hours(20));
        let after = restored(&save(&before), limits(), &clock);
        clock.advance(Duration::from_secs(4 * 3_600 - 1));
        assert_eq!(passed(&after, &Sent::by("a"), 1), 0, "{algorithm:?}");
        clock.advance(Duration::from_secs(1));
        assert_eq!(passed(&after, &Sent::by("a"), 9), 5, "{algorithm:?}");
    }
}

// shows: H2 (only what is the same limit)
#[test]
fn only_a_limit_of_the_same_name_and_key_goes_on() {
    let ten = || bucket(Quota::per_hour(10));
    let (before, clock) = node(vec![kept("l", ten()), rule("other", ten(), vec![])]);
    assert_eq!(passed(&before, &Sent::by("a"), 7), 7);
    let bytes = save(&before);
    let left =
        |limits: Vec<LimitRule>| passed(&restored(&bytes, limits, &clock), &Sent::by("a"), 99);
    assert_eq!(left(vec![kept("l", ten())]), 3);
    assert_eq!(left(vec![kept("m", ten())]), 10);
    assert_eq!(
        left(vec![rule("l", ten(), user())]),
        10,
        "it no longer persists"
    );
    assert_eq!(left(vec![kept("other", ten())]), 10, "it did not persist");
    let by_address = LimitRule {
        key: vec![KeyPart::ClientIp],
        ..kept("l", ten())
    };
    assert_eq!(left(vec![by_address.clone()]), 10);
    let saved = read(&bytes, vec![by_address], &clock).unwrap();
    assert_eq!(
        (saved.keys(), saved.passed_over()),
        (0, &["l".to_owned()][..])
    );
}

// shows: H2 (other numbers), F4
#[test]
fn other_numbers_hold_as_after_a_reload() {
    let (before, clock) = node(vec![kept("l", bucket(Quota::per_hour(20)))]);
    assert_eq!(passed(&before, &Sent::by("a"), 12), 12);
    assert_eq!(passed(&before, &Sent::by("vip"), 12), 12);
    let bytes = save(&before);
    let window = Duration::from_hours(1);
    for (algorithm, left) in [
        (bucket(Quota::per_hour(15)), 3),
        (bucket(Quota::per_hour(5)), 0),
        (bucket(Quota::per_second(7).burst(20)), 8),
        (
            Algorithm::FixedWindow {
                permits: 30,
                window,
            },
            18,
        ),
        (
            Algorithm::SlidingLog {
                permits: 20,
                window,
            },
            8,
        ),
    ] {
        let after = restored(&bytes, vec![kept("l", algorithm)], &clock);
        assert_eq!(passed(&after, &Sent::by("a"), 99), left, "{algorithm:?}");
        assert_eq!(passed(&after, &Sent::by("b"), 1), 1);
    }
    let mut with_vip = kept("l", bucket(Quota::per_hour(20)));
    with_vip.overrides = vec![Override {
        matches: vec![Some(Box::from(&b"vip"[..]))],
        limit: tidegate::Limit::new("l", bucket(Quota::per_hour(100))).unwrap(),
    }];
    let after = restored(&bytes, vec![with_vip.clone()], &clock);
    assert_eq!(passed(&after, &Sent::by("vip"), 999), 88);
    assert_eq!(passed(&after, &Sent::by("a"), 999), 8);
    // And from there on to a third.
    let last = restored(&save(&after), vec![with_vip], &clock);
    assert_eq!(passed(&last, &Sent::by("vip"), 1), 0);
}

// shows: H2 (a clock that goes back)
#[test]
fn where_the_clock_has_gone_back_no_time_has_passed_and_nobody_waits_for_it() {
    let limits = || vec![kept("l", bucket(Quota::per_minute(60).burst(20)))];
    let (before, _) = node(limits());
    assert_eq!(passed(&before, &Sent::by("a"), 15), 15);
    let bytes = save(&before);
    let earlier = ManualClock::new(Timestamp::from_secs(10));
    let after = restored(&bytes, limits(), &earlier);
    assert_eq!(passed(&after, &Sent::by("a"), 99), 5);
    earlier.advance(Duration::from_secs(1));
    assert_eq!(passed(&after, &Sent::by("a"), 99), 1);
}

// shows: H2 (what cannot be gone on with)
#[test]
fn what_is_torn_foreign_or_of_another_version_is_refused() {
    let limits = || vec![kept("l", bucket(Quota::per_hour(10)))];
    let (before, clock) = node(limits());
    assert_eq!(passed(&before, &Sent::by("a"), 7), 7);
    let bytes = save(&before);
    let refusal = |bytes: &[u8]| read(bytes, limits(), &clock).unwrap_err();
    for length in 0..bytes.len() {
        let error = refusal(&bytes[..length]);
        let is_said = matches!(
            (length, &error),
            (..8, SavedError::Foreign) | (8.., SavedError::Torn(_))
        );
        assert!(is_said, "{length}: {error}");
    }
    let mut other = bytes.clone();
    other[8] = 0;
    assert!(matches!(refusal(&other), SavedError::Version(0)));
    let mut more = bytes.clone();
    more.push(0);
    assert!(matches!(refusal(&more), SavedError::Torn(_)));
    assert!(matches!(
        refusal(b"limits: { a: { rate: 5/s } }"),
        SavedError::Foreign
    ));
    // A block that says it is as long as there are numbers.
    let mut long = bytes[..12].to_vec();
    long.extend([0xff; 100]);
    assert!(matches!(refusal(&long), SavedError::Torn(_)));
}

proptest! {
    // proves: H2 (a file that was changed)
    #[test]
    fn a_file_in_which_any_byte_is_another_is_refused(
        at in any::<prop::sample::Index>(),
        xor in 1..=255_u8,
    ) {
        let limits = || vec![kept("l", bucket(Quota::per_hour(10)))];
        let (before, clock) = node(limits());
        assert_eq!(passed(&before, &Sent::by("a"), 7), 7);
        let mut bytes = save(&before);
        let at = at.index(bytes.len());
        bytes[at] ^= xor;
        prop_assert!(read(&bytes, limits(), &clock).is_err(), "byte {}", at);
    }
}

// shows: H2 (bounded)
#[test]
fn more_keys_than_a_limit_may_have_now_are_let_go_of() {
    let limits = |max_keys| {
        vec![LimitRule {
            max_keys,
            ..kept("l", bucket(Quota::per_hour(10)))
        }]
    };
    let (before, clock) = node(limits(1_000));
    for user in USERS {
        assert_eq!(passed(&before, &Sent::by(user), 1), 1);
    }
    let after = restored(&save(&before), limits(2), &clock);
    assert_eq!(after.snapshot().limits()[0].store_stats().keys, 2);
}

const USERS: [&str; 5] = ["a", "b", "c", "d", "e"];

// shows: H2 (F4: the place changes with a restart)
#[test]
fn a_reload_does_not_change_where_counts_are_kept() {
    let (node, _) = node(vec![kept("l", bucket(Quota::per_hour(10)))]);
    let mut elsewhere = policy(vec![kept("l", bucket(Quota::per_hour(10)))]);
    elsewhere.state = Some(StateSettings {
        file: "counts".to_owned(),
        every: StateSettings::DEFAULT_EVERY,
    });
    assert_eq!(node.complaints(&elsewhere).len(), 1);
    assert_eq!(node.reload(elsewhere), Err(PolicyError::OtherState));
}
