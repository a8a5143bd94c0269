//! Requests that wait for their place in a queue.

use super::{ALL, after, each};
use crate::conformance::Case;
use crate::conformance::script::{Script, Told};

pub(super) const CASES: &[Case] = &[Case {
    id: 18,
    title: "a queue of 10, 2 per second",
    doors: ALL,
    script: leaky_queue,
}];

fn leaky_queue() -> Script {
    let policy = "limits:\n  l: { rate: 2/s, burst: 1, on_limit: { queue: { length: 10 } } }\n";
    Script::new(policy, each([1_000; 15], ""))
        .then((0..11).map(|n| Told::delayed(n * 500_000_000)))
        .then_each(4, Told::denied(after(500)))
}
