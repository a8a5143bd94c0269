use tidegate::Quota;

use super::*;

fn allowed(limit: u64, remaining: u64, reset_after: Duration) -> Decision {
    let verdict = Verdict::Allowed {
        delay: Duration::ZERO,
    };
    Decision {
        verdict,
        limit,
        remaining,
        reset_after,
    }
}

fn denied(retry: Retry, reset_after: Duration) -> Decision {
    Decision {
        verdict: Verdict::Denied { retry },
        limit: 20,
        remaining: 0,
        reset_after,
    }
}

const MS: fn(u64) -> Duration = Duration::from_millis;

#[test]
fn rate_limit_speaks_of_the_burst() {
    assert_eq!(
        rate_limit("per-client", &allowed(20, 19, MS(2_400))),
        r#""per-client";r=19;t=3"#
    );
    assert_eq!(
        rate_limit("per-client", &allowed(20, 19, MS(600))),
        r#""per-client";r=19;t=1"#
    );
    assert_eq!(
        rate_limit("a", &allowed(20, 20, Duration::ZERO)),
        r#""a";r=20"#
    );
    assert_eq!(
        rate_limit("slots", &allowed(5, 2, Duration::ZERO)),
        r#""slots";r=2"#
    );
    assert_eq!(
        rate_limit("wéb \"x\"", &allowed(1, 0, MS(1))),
        r#""w%C3%A9b \"x\"";r=0;t=1"#
    );
}

#[test]
fn a_refusal_tells_the_same_time_in_both_fields() {
    let hundredths = denied(Retry::After(MS(10)), MS(12_000));
    assert_eq!(rate_limit("a", &hundredths), r#""a";r=0;t=1"#);
    assert_eq!(retry_after(&hundredths).unwrap(), "1");
    let long = denied(Retry::After(MS(6_001)), MS(12_000));
    assert_eq!(rate_limit("a", &long), r#""a";r=0;t=7"#);
    assert_eq!(retry_after(&long).unwrap(), "7");
}

#[test]
fn retry_after_is_rounded_up_and_never_0() {
    let seconds = |retry| retry_after_seconds(&denied(retry, Duration::ZERO));
    assert_eq!(seconds(Retry::After(Duration::from_nanos(1))), Some(1));
    assert_eq!(seconds(Retry::After(MS(1_000))), Some(1));
    assert_eq!(seconds(Retry::After(Duration::new(1, 1))), Some(2));
    assert_eq!(seconds(Retry::After(Duration::ZERO)), Some(1));
    assert_eq!(
        seconds(Retry::After(Duration::from_hours(720))),
        Some(2_592_000)
    );
}

#[test]
fn on_release_says_1_and_never_says_nothing() {
    assert_eq!(
        retry_after(&denied(Retry::OnRelease, Duration::ZERO)).unwrap(),
        "1"
    );
    assert_eq!(
        rate_limit("a", &denied(Retry::OnRelease, Duration::ZERO)),
        r#""a";r=0"#
    );
    assert_eq!(retry_after(&denied(Retry::Never, MS(500))), None);
    assert_eq!(
        rate_limit("a", &denied(Retry::Never, MS(500))),
        r#""a";r=0;t=1"#
    );
    assert_eq!(retry_after(&allowed(1, 1, Duration::ZERO)), None);
}

#[track_caller]
fn check_policy(algorithm: Algorithm, field: &str) {
    assert_eq!(rate_limit_policy([("a", &algorithm)]).unwrap(), field);
}

#[test]
fn rate_limit_policy_says_the_quota() {
    let per_minute = Quota::per_minute(100).burst(20);
    check_policy(Algorithm::TokenBucket(per_minute), r#""a";q=100;w=60"#);
    check_policy(
        Algorithm::TokenBucket(Quota::per_month(1)),
        r#""a";q=1;w=2592000"#,
    );
    let max_debt = Duration::from_secs(1);
    check_policy(
        Algorithm::SmoothBursty {
            quota: per_minute,
            max_debt,
        },
        r#""a";q=100;w=60"#,
    );
    let warm_up = Algorithm::SmoothWarmUp {
        quota: Quota::per_second(2),
        warm_up: Duration::from_secs(3),
        cold_factor: 3,
        max_debt,
    };
    check_policy(warm_up, r#""a";q=2;w=1"#);
    let window = Duration::from_secs(5);
    check_policy(
        Algorithm::FixedWindow { permits: 3, window },
        r#""a";q=3;w=5"#,
    );
    check_policy(
        Algorithm::SlidingLog { permits: 3, window },
        r#""a";q=3;w=5"#,
    );
    check_policy(
        Algorithm::Concurrency { max: 5 },
        r#""a";q=5;qu="concurrent-requests""#,
    );
}

#[test]
fn a_window_is_whole_seconds_or_left_out() {
    let per = |period| Algorithm::TokenBucket(Quota::new(3, period));
    check_policy(per(MS(999)), r#""a";q=3"#);
    check_policy(per(MS(1_000)), r#""a";q=3;w=1"#);
    check_policy(per(MS(1_500)), r#""a";q=3;w=2"#);
}

#[test]
fn several_limits_are_one_list() {
    let minute = Algorithm::TokenBucket(Quota::per_minute(100));
    let slots = Algorithm::Concurrency { max: 5 };
    let field = rate_limit_policy([("per-minute", &minute), ("slots", &slots)]).unwrap();
    assert_eq!(
        field,
        r#""per-minute";q=100;w=60, "slots";q=5;qu="concurrent-requests""#
    );
    assert_eq!(rate_limit_policy([]), None);
}

#[track_caller]
fn check_x(decision: &Decision, values: [&str; 3]) {
    let fields = x_rate_limit(decision);
    let names = fields.each_ref().map(|(name, _)| name.as_str());
    assert_eq!(
        names,
        [
            "x-ratelimit-limit",
            "x-ratelimit-remaining",
            "x-ratelimit-reset"
        ]
    );
    assert_eq!(
        fields.each_ref().map(|(_, value)| value.to_str().unwrap()),
        values
    );
}

#[test]
fn x_rate_limit_speaks_of_the_burst_and_resets_in_seconds() {
    check_x(&allowed(20, 19, MS(600)), ["20", "19", "1"]);
    check_x(&allowed(20, 20, Duration::ZERO), ["20", "20", "0"]);
    check_x(
        &denied(Retry::After(MS(600)), MS(12_000)),
        ["20", "0", "12"],
    );
    check_x(&denied(Retry::OnRelease, Duration::ZERO), ["20", "0", "1"]);
    check_x(
        &denied(Retry::After(MS(90_000)), MS(12_000)),
        ["20", "0", "90"],
    );
}

#[test]
fn the_older_drafts_say_the_same_under_their_own_names() {
    let fields = rate_limit_draft_6(&denied(Retry::After(MS(600)), MS(12_000)));
    let told = fields
        .each_ref()
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap()));
    assert_eq!(
        told,
        [
            ("ratelimit-limit", "20"),
            ("ratelimit-remaining", "0"),
            ("ratelimit-reset", "12")
        ]
    );
}

#[test]
fn a_reset_in_unix_time_is_never_too_early() {
    let at = |decision: &Decision, now: u64| {
        let fields = x_rate_limit_epoch(decision, Timestamp::from_nanos(now));
        fields[2].1.to_str().unwrap().to_owned()
    };
    let second = 1_000_000_000;
    assert_eq!(at(&allowed(20, 19, MS(600)), 1_000 * second), "1001");
    assert_eq!(
        at(&allowed(20, 19, MS(600)), 1_000 * second + second / 2),
        "1002"
    );
    assert_eq!(at(&allowed(20, 20, Duration::ZERO), 1_000 * second), "1000");
    let refused = denied(Retry::After(MS(90_000)), MS(12_000));
    assert_eq!(at(&refused, 1_000 * second), "1090");
}
