//! Limits of several rates.

use std::fmt::Write;
use std::time::Duration;

use tidegate::{Algorithm, Quota};
use tidegate_policy::{LimitRule, Policy, parse};

fn policy(text: &str) -> Policy {
    parse("p.yaml", text)
        .unwrap_or_else(|problems| panic!("{problems}"))
        .policy
}

fn names(rules: &[LimitRule]) -> Vec<(&str, usize)> {
    rules
        .iter()
        .map(|rule| (rule.limit.name(), rule.rate_index))
        .collect()
}

fn algorithms(rules: &[LimitRule]) -> Vec<Algorithm> {
    rules.iter().map(|rule| *rule.limit.algorithm()).collect()
}

// shows: B5 (several bandwidths)
#[test]
fn a_limit_of_several_rates_is_a_rule_for_each_in_a_row() {
    let policy = policy(
        "limits:\n  \
           before: { rate: 1/s }\n  \
           client:\n    rate: [10/s, 100/min, 1_000/h]\n    burst: [5, 50, 500]\n    \
             initial: [0, 1, 500]\n    key: client_ip\n    shadow: true\n    max_keys: 7\n  \
           after: { rate: 2/s }\n\
         upstreams: { u: { builtin: echo } }\n\
         gateway:\n  routes:\n    \
           - { id: a, upstream: u, limits: [after, client, before] }\n    \
           - { id: b, upstream: u, limits: client }\n",
    );
    let rules = &policy.limits;
    assert_eq!(
        names(rules),
        [
            ("before", 0),
            ("client", 0),
            ("client:2", 1),
            ("client:3", 2),
            ("after", 0)
        ]
    );
    let bucket =
        |quota: Quota, burst, initial| Algorithm::TokenBucket(quota.burst(burst).initial(initial));
    assert_eq!(
        algorithms(&rules[1..4]),
        [
            bucket(Quota::per_second(10), 5, 0),
            bucket(Quota::per_minute(100), 50, 1),
            bucket(Quota::per_hour(1_000), 500, 500),
        ]
    );
    for rule in &rules[1..4] {
        assert_eq!((rule.max_keys, rule.shadow), (7, true));
        assert_eq!(rule.key, rules[1].key);
        assert_eq!(rule.key.len(), 1);
    }
    let routes = &policy.gateway.as_ref().unwrap().routes;
    assert_eq!(routes[0].limits, [4, 1, 2, 3, 0]);
    assert_eq!(routes[1].limits, [1, 2, 3]);
    assert_eq!(policy.limit_named("before"), Some(0..1));
    assert_eq!(policy.limit_named("client"), Some(1..4));
    assert_eq!(policy.limit_named("after"), Some(4..5));
    assert_eq!(policy.limit_named("client:2"), None);
}

#[test]
fn a_list_of_one_is_what_it_is_without_brackets() {
    let with = policy("limits: { a: { rate: [10/s], burst: [5], initial: [1] } }\n");
    let without = policy("limits: { a: { rate: 10/s, burst: 5, initial: 1 } }\n");
    assert_eq!(with, without);
    let mixed = policy("limits: { a: { rate: [10/s], burst: 5, initial: [1] } }\n");
    assert_eq!(mixed, without);
}

#[test]
fn what_is_said_once_is_said_of_each_rate() {
    let policy = policy(
        "limits:\n  \
           log: { rate: [1/s, 3/min], algorithm: sliding_log }\n  \
           month: { rate: [1/day, 3/month], algorithm: fixed_window, align: calendar }\n  \
           parts: { rate: [1/s, 3/min], algorithm: sliding_window, parts: 6 }\n  \
           counter: { rate: [1/s, 3/min], algorithm: sliding_counter }\n  \
           line: { rate: [1/s, 3/min], on_limit: { queue: { length: 7 } } }\n  \
           at-once: { rate: [1/s, 3/min], refill: interval }\n",
    );
    let of = |name| &policy.limits[policy.limit_named(name).unwrap()];
    let (second, minute) = (Duration::from_secs(1), Duration::from_mins(1));
    assert_eq!(
        algorithms(of("log")),
        [(1, second), (3, minute)]
            .map(|(permits, window)| Algorithm::SlidingLog { permits, window })
    );
    assert!(matches!(
        algorithms(of("month"))[..],
        [
            Algorithm::CalendarWindow { permits: 1, .. },
            Algorithm::CalendarWindow { permits: 3, .. }
        ]
    ));
    assert!(matches!(
        algorithms(of("parts"))[..],
        [Algorithm::SlidingWindow { parts: a, .. }, Algorithm::SlidingWindow { parts: b, .. }]
            if a.get() == 6 && b.get() == 6
    ));
    assert_eq!(of("counter").len(), 2);
    assert!(
        of("line")
            .iter()
            .all(|rule| rule.queue.as_ref().unwrap().length == 7)
    );
    assert!(
        algorithms(of("at-once"))
            .iter()
            .all(|one| matches!(one, Algorithm::IntervalBucket { aligned: false, .. }))
    );
}

// shows: A10 (overrides)
#[test]
fn an_override_has_a_number_for_each_rate_or_those_of_the_limit() {
    let policy = policy(
        "limits:\n  a:\n    rate: [10/s, 100/min]\n    burst: [5, 50]\n    key: client_ip\n    \
         overrides:\n      \
         - { match: { client_ip: 192.0.2.1 }, rate: [20/s, 200/min] }\n      \
         - { match: { client_ip: 192.0.2.2 }, burst: [6, 60] }\n      \
         - { match: { client_ip: 192.0.2.3 }, rate: [0/s, 200/min], burst: [0, 2] }\n",
    );
    let of_rate = |at: usize| -> Vec<_> {
        let overrides = &policy.limits[at].overrides;
        assert!(
            overrides
                .iter()
                .all(|one| one.limit.name() == policy.limits[at].limit.name())
        );
        overrides.iter().map(|one| *one.limit.algorithm()).collect()
    };
    let (second, minute) = (Quota::per_second, Quota::per_minute);
    assert_eq!(
        of_rate(0),
        [second(20).burst(5), second(10).burst(6), second(0)].map(Algorithm::TokenBucket)
    );
    assert_eq!(
        of_rate(1),
        [
            minute(200).burst(50),
            minute(100).burst(60),
            minute(200).burst(2)
        ]
        .map(Algorithm::TokenBucket)
    );
    let matched = |at: usize| policy.limits[at].overrides.iter().map(|one| &one.matches);
    assert!(matched(0).eq(matched(1)));
}

#[test]
fn each_rate_counts_as_a_limit_where_there_is_a_bound() {
    let mut many = "limits:\n".to_owned();
    for n in 0..5_001 {
        writeln!(many, "  l{n}: {{ rate: [1/s, 9/min] }}").unwrap();
    }
    let message = |text: &str| {
        let problems = parse("p.yaml", text).unwrap_err();
        problems.first_error().unwrap().message().to_owned()
    };
    let told = "10002 limits, their rates counted, are more than the most, 10000";
    assert_eq!(message(&many), told);
    let last = many.rfind("  l").unwrap();
    assert_eq!(policy(&many[..last]).limits.len(), 10_000);

    let mut overrides = "limits:\n  a:\n    rate: [1/s, 9/min]\n    key: client_ip\n    \
                         overrides:\n"
        .to_owned();
    for n in 0..50_001 {
        let (high, low) = (n / 256, n % 256);
        writeln!(
            overrides,
            "      - {{ match: {{ client_ip: 10.1.{high}.{low} }}, burst: [2, 3] }}"
        )
        .unwrap();
    }
    let told = "100002 overrides, their rates counted, are more than the most, 100000";
    assert_eq!(message(&overrides), told);
}
