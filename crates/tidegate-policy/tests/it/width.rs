//! Wide policies.

use std::fmt::Write;

use tidegate_policy::parse;

const HEAD: &str = "limits:\n  a:\n    rate: 10/s\n    key: [client_ip]\n";
const MIDDLE: &str = "upstreams:\n  u: { builtin: echo }\ngateway:\n  routes:\n";

fn routes(count: usize) -> String {
    (0..count).fold(String::new(), |mut text, n| {
        writeln!(
            text,
            "  - {{ id: r{n}, match: {{ path: /s{n}/** }}, upstream: u, limits: a }}"
        )
        .unwrap();
        text
    })
}

#[test]
fn ten_thousand_routes_and_a_hundred_thousand_overrides() {
    let mut text = format!("{HEAD}    overrides:\n");
    for n in 0..100_000 {
        let (a, b, c) = (n >> 16, n >> 8 & 255, n & 255);
        writeln!(
            text,
            "    - {{ match: {{ client_ip: 10.{a}.{b}.{c} }}, rate: {}/s }}",
            n + 1
        )
        .unwrap();
    }
    let loaded = parse("wide", &format!("{text}{MIDDLE}{}", routes(10_000)));
    let loaded = loaded.unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(loaded.warnings, []);
    assert_eq!(loaded.policy.limits[0].overrides.len(), 100_000);
    assert_eq!(loaded.policy.gateway.unwrap().routes.len(), 10_000);
}

#[test]
fn one_more_is_refused() {
    let problems = parse("wide", &format!("{HEAD}{MIDDLE}{}", routes(10_001))).unwrap_err();
    let message = problems.first_error().unwrap().message();
    assert_eq!(message, "10001 routes are more than the most, 10000");
}

#[test]
fn ten_thousand_mistakes_cost_no_more_than_ten_thousand_routes() {
    let limits: String = (0..5_000).fold(String::from("limits:\n"), |mut text, n| {
        writeln!(text, "  limit-{n}: {{ rate: 1/s }}").unwrap();
        text
    });
    let text = format!("{limits}{MIDDLE}{}", routes(10_000));
    let problems = parse("wide", &text.replace("limits: a }", "limits: limitt-1 }")).unwrap_err();
    assert_eq!(problems.omitted(), 9_900);
    assert_eq!(
        problems.first_error().unwrap().help(),
        Some("did you mean `limit-1`?")
    );
}
