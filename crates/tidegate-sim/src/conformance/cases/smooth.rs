//! Guava's smooth limiters: who comes next pays.

use super::{ALL, NOT_HTTP, each};
use crate::conformance::Case;
use crate::conformance::script::{Script, Told, at};

pub(super) const CASES: &[Case] = &[
    Case {
        id: 9,
        title: "Guava bursty: acquire 10, 1, 1",
        doors: NOT_HTTP,
        script: guava_ten,
    },
    Case {
        id: 10,
        title: "Guava bursty: 11 at once",
        doors: ALL,
        script: guava_eleven,
    },
    Case {
        id: 11,
        title: "Guava warm-up 2/s over 3 s",
        doors: ALL,
        script: guava_warm_up,
    },
];

const BURSTY_5: &str = "limits:\n  l: { rate: 5/s, algorithm: smooth_bursty }\n";

fn guava_ten() -> Script {
    let trace = vec![at(0, "\"permits\":10"), at(0, ""), at(2_000, "")];
    Script::new(BURSTY_5, trace).then([0, 2_000_000_000, 200_000_000].map(Told::delayed))
}

fn guava_eleven() -> Script {
    let policy = "limits:\n  l: { rate: 10/s, algorithm: smooth_bursty }\n";
    Script::new(policy, each([0; 11], "")).then((0..11).map(|n| Told::delayed(n * 100_000_000)))
}

fn guava_warm_up() -> Script {
    let policy = "limits:\n  l: { rate: 2/s, algorithm: smooth_warm_up, warm_up: 3s }\n";
    // Each caller comes when the one before has waited. The third part of a nanosecond that a
    // wait has is rounded up.
    let waits = [0, 1_333_333_334, 1_000_000_000, 666_666_667, 500_000_000];
    let mut time = 0;
    let mut trace = Vec::new();
    for wait in waits {
        trace.push(format!("{{\"at_ns\":{time}}}"));
        time += wait;
    }
    Script::new(policy, trace).then(waits.map(Told::delayed))
}
