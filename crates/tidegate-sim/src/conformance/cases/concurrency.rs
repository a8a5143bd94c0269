//! Places that come back when their holder leaves.

use super::{ALL, SIMULATE, each};
use crate::conformance::Case;
use crate::conformance::script::{Script, Told, ToldRetry, at};

pub(super) const CASES: &[Case] = &[
    Case {
        id: 22,
        title: "5 in flight per user and API",
        doors: ALL,
        script: in_flight,
    },
    Case {
        id: 22,
        title: "100 callers, 10 slots",
        doors: ALL,
        script: hundred_on_ten,
    },
    Case {
        id: 22,
        title: "a sixth waits at most its bound",
        doors: SIMULATE,
        script: waits_in_line,
    },
    Case {
        id: 22,
        title: "100 callers in line for 10 slots",
        doors: SIMULATE,
        script: hundred_in_line,
    },
    Case {
        id: 23,
        title: "10 per IP, 100 in all",
        doors: ALL,
        script: per_ip_and_all,
    },
];

fn in_flight() -> Script {
    let policy = "limits:\n  l: { concurrency: 5, key: [\"header:user\", \"header:api\"] }\n";
    let of =
        |user: &str, api: &str| format!("\"headers\":{{\"user\":\"{user}\",\"api\":\"{api}\"}}");
    let mut trace = each([0; 6], &of("a", "x"));
    trace.extend([at(1, &of("a", "y")), at(1, &of("b", "x"))]);
    trace.extend([
        at(2, "\"release\":3"),
        at(3, &of("a", "x")),
        at(3, &of("a", "x")),
    ]);
    Script::new(policy, trace)
        .then_each(5, Told::ALLOWED)
        .then([Told::denied(ToldRetry::OnRelease)])
        .then_each(2, Told::ALLOWED)
        .then([Told::ALLOWED, Told::denied(ToldRetry::OnRelease)])
}

fn hundred_on_ten() -> Script {
    let policy = "limits:\n  l: { concurrency: 10 }\n";
    // Ten enter; each of the others is refused once, enters when one has left, and then leaves.
    let mut trace = each([0; 10], "");
    let mut inside: std::collections::VecDeque<usize> = (1..=10).collect();
    for n in 0..90 {
        trace.push(at(n + 1, ""));
        if let Some(first) = inside.pop_front() {
            trace.push(at(n + 1, &format!("\"release\":{first}")));
        }
        trace.push(at(n + 1, ""));
        inside.push_back(trace.len());
    }
    let refused_then_in = [Told::denied(ToldRetry::OnRelease), Told::ALLOWED];
    Script::new(policy, trace)
        .then_each(10, Told::ALLOWED)
        .then(std::iter::repeat_n(refused_then_in, 90).flatten())
}

fn waits_in_line() -> Script {
    let policy = "limits:\n  l:\n    concurrency: 5\n    on_limit: \
        { queue: { length: 2, max_wait: 200ms } }\n";
    let mut trace = each([0; 6], "");
    trace.extend(each([50, 50, 60], ""));
    // The first in line enters, the second gives up, two find no room in line, and who comes then
    // has waited too long when somebody leaves.
    trace.extend([at(100, "\"release\":1"), at(150, "\"release\":7")]);
    trace.extend([at(160, ""), at(400, "\"release\":2"), at(400, "")]);
    let millis = |n: u64| n * 1_000_000;
    let refused = Told::denied(ToldRetry::OnRelease);
    Script::new(policy, trace)
        .then_each(5, Told::ALLOWED)
        .then([Told::delayed(millis(100)), refused.clone()])
        .then([refused.clone(), refused.clone(), refused, Told::ALLOWED])
}

fn hundred_in_line() -> Script {
    let policy = "limits:\n  l:\n    concurrency: 10\n    on_limit: \
        { queue: { length: 90, max_wait: 1m } }\n";
    // Each stays for 10 ms; the next in line enters as one leaves.
    let mut trace = each([0; 100], "");
    for group in 0..10_u64 {
        let lines = group * 10 + 1..=group * 10 + 10;
        let leave = |line| at((group + 1) * 10, &format!("\"release\":{line}"));
        trace.extend(lines.map(leave));
    }
    let told = (0..100).map(|n| Told::delayed(n / 10 * 10_000_000));
    Script::new(policy, trace).then(told)
}

fn per_ip_and_all() -> Script {
    let policy =
        "limits:\n  ip: { concurrency: 10, key: client_ip }\n  all: { concurrency: 100 }\n";
    let ip = |n: u64| format!("\"client_ip\":\"192.0.2.{n}\"");
    let mut trace = each([0; 11], &ip(1));
    for n in 2..=10 {
        trace.extend(each([0; 10], &ip(n)));
    }
    // The 101st of all, though the first of its address; then one leaves, by a place of its own.
    trace.push(at(1, &ip(11)));
    trace.push(at(2, "\"release\":1"));
    trace.extend([at(3, &ip(11)), at(3, &ip(1))]);
    Script::new(policy, trace)
        .then_each(10, Told::ALLOWED)
        .then([Told::denied(ToldRetry::OnRelease).by("ip")])
        .then_each(90, Told::ALLOWED)
        .then([Told::denied(ToldRetry::OnRelease).by("all")])
        .then([Told::ALLOWED, Told::denied(ToldRetry::OnRelease)])
}
