//! Limits that behave as those of another system do: nginx, redis-cell, Sentinel.

use super::{ALL, after, each};
use crate::conformance::Case;
use crate::conformance::script::{Script, Told};

pub(super) const CASES: &[Case] = &[
    Case {
        id: 3,
        title: "nginx 2 r/s, six at once",
        doors: ALL,
        script: nginx_plain,
    },
    Case {
        id: 4,
        title: "nginx 2 r/s, burst=4",
        doors: ALL,
        script: nginx_burst,
    },
    Case {
        id: 5,
        title: "nginx 2 r/s, burst=4 nodelay",
        doors: ALL,
        script: nginx_nodelay,
    },
    Case {
        id: 7,
        title: "CL.THROTTLE k 15 30 60, fresh",
        doors: ALL,
        script: throttle_fresh,
    },
    Case {
        id: 8,
        title: "CL.THROTTLE k 4 1 1, the sixth",
        doors: ALL,
        script: throttle_sixth,
    },
    Case {
        id: 25,
        title: "Sentinel warm-up 10/s over 10 s, cold",
        doors: ALL,
        script: sentinel_warm_up,
    },
    Case {
        id: 26,
        title: "Sentinel queueing 10/s, 500 ms",
        doors: ALL,
        script: sentinel_queue,
    },
];

fn nginx_plain() -> Script {
    let policy = "limits:\n  l: { rate: 2/s, algorithm: nginx }\n";
    let mut times: Vec<u64> = (0..6).map(|n| 1_000 + n * 2).collect();
    times.extend([1_499, 1_500]);
    Script::new(policy, each(times, ""))
        .then([Told::ALLOWED])
        .then((1..6).map(|n| Told::denied(after(500 - n * 2))))
        .then([Told::denied(after(1)), Told::ALLOWED])
}

fn nginx_burst() -> Script {
    let policy = "limits:\n  l: { rate: 2/s, burst: 5, algorithm: nginx }\n";
    Script::new(policy, each([1_000; 6], ""))
        .then((0..5).map(|n| Told::delayed(n * 500_000_000)))
        .then([Told::denied(after(500))])
}

fn nginx_nodelay() -> Script {
    let policy = "limits:\n  l: { rate: 2/s, burst: 5, algorithm: nginx, nodelay: true }\n";
    let mut times = vec![1_000; 6];
    times.extend([1_499, 1_500, 1_500, 1_999, 2_000]);
    Script::new(policy, each(times, ""))
        .then_each(5, Told::ALLOWED)
        .then([Told::denied(after(500)), Told::DENIED, Told::ALLOWED])
        .then([Told::DENIED, Told::DENIED, Told::ALLOWED])
}

/// A limit of 16, of which 15 remain after the first; one is back after 2 s.
fn throttle_fresh() -> Script {
    let policy = "limits:\n  l: { rate: 30 per 60s, burst: 16 }\n";
    let mut times = vec![1_000; 17];
    times.extend([2_999, 3_000]);
    Script::new(policy, each(times, ""))
        .then(
            (0..16)
                .rev()
                .map(|remaining| Told::ALLOWED.remaining(remaining)),
        )
        .then([Told::denied(after(2_000)).remaining(0)])
        .then([Told::denied(after(1)), Told::ALLOWED.remaining(0)])
}

fn throttle_sixth() -> Script {
    let policy = "limits:\n  l: { rate: 1/s, burst: 5 }\n";
    Script::new(policy, each([1_000; 6], ""))
        .then([4, 3, 2, 1, 0].map(|remaining| Told::ALLOWED.remaining(remaining)))
        .then([Told::denied(after(1_000)).remaining(0)])
}

fn sentinel_warm_up() -> Script {
    let policy = "limits:\n  l: { rate: 10/s, algorithm: sentinel_warm_up, warm_up: 10s }\n";
    // A request each 10 ms for 14 seconds.
    let mut script = Script::new(policy, each((0..1_400).map(|n| 100_000 + n * 10), ""));
    for passed in [3, 3, 3, 3, 3, 4, 4, 4, 5, 5, 6, 7, 10, 10] {
        script = script.then_pass(100, passed..=passed);
    }
    script
}

fn sentinel_queue() -> Script {
    let policy = "limits:\n  l: { rate: 10/s, algorithm: sentinel_queue }\n";
    Script::new(policy, each([1_000; 10], ""))
        .then((0..6).map(|n| Told::delayed(n * 100_000_000)))
        .then_each(4, Told::denied(after(100)))
}
