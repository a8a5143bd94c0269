//! Requests that wait for their place in a queue.

use super::{ALL, after, each, user};
use crate::conformance::Case;
use crate::conformance::script::{Script, Told};

pub(super) const CASES: &[Case] = &[
    Case {
        id: 15,
        title: "a log of 3 per 5 s, 20 waiting callers",
        doors: ALL,
        script: log_shared,
    },
    Case {
        id: 15,
        title: "the same per client",
        doors: ALL,
        script: log_per_client,
    },
    Case {
        id: 18,
        title: "a queue of 10, 2 per second",
        doors: ALL,
        script: leaky_queue,
    },
];

fn log_shared() -> Script {
    let policy = "limits:\n  l:\n    rate: 3 per 5s\n    algorithm: sliding_log\n    \
        on_limit: { queue: { length: 17, max_wait: 1m } }\n";
    // Two of the 20 go ahead after 30 s, in a window that has room for one more in line.
    Script::new(policy, each([1_000; 22], ""))
        .then((0..21).map(|n| Told::delayed(n / 3 * 5_000_000_000)))
        .then_each(1, Told::DENIED)
}

fn log_per_client() -> Script {
    let policy = "limits:\n  l:\n    rate: 3 per 5s\n    algorithm: sliding_log\n    \
        on_limit: { queue: { length: 17, max_wait: 1m } }\n    key: [\"header:user\"]\n";
    let trace = (0..20).map(|n| each([1_000], &user(if n % 2 == 0 { "a" } else { "b" })));
    Script::new(policy, trace.flatten().collect())
        .then((0..20).map(|n| Told::delayed(n / 2 / 3 * 5_000_000_000)))
}

fn leaky_queue() -> Script {
    let policy = "limits:\n  l: { rate: 2/s, burst: 1, on_limit: { queue: { length: 10 } } }\n";
    Script::new(policy, each([1_000; 15], ""))
        .then((0..11).map(|n| Told::delayed(n * 500_000_000)))
        .then_each(4, Told::denied(after(500)))
}
