//! Token buckets: what a new one holds, and how it refills.

use super::{ALL, NOT_HTTP, after, each};
use crate::conformance::Case;
use crate::conformance::script::{Script, Told, at};

pub(super) const CASES: &[Case] = &[
    Case {
        id: 12,
        title: "60 per hour, 100 at once",
        doors: ALL,
        script: sixty_per_hour,
    },
    Case {
        id: 13,
        title: "60 per hour, 10 of them at first",
        doors: ALL,
        script: initial_fill,
    },
    Case {
        id: 14,
        title: "a token per 200 ms after 620 ms",
        doors: NOT_HTTP,
        script: part_token,
    },
    Case {
        id: 16,
        title: "10 per minute per client, burst 1",
        doors: ALL,
        script: one_each_six_seconds,
    },
    Case {
        id: 16,
        title: "1/s with a burst of 3",
        doors: ALL,
        script: three_then_one,
    },
    Case {
        id: 19,
        title: "bucket of 10, 5/min, greedy",
        doors: NOT_HTTP,
        script: greedy_refill,
    },
    Case {
        id: 19,
        title: "bucket of 10, 5/min, interval",
        doors: NOT_HTTP,
        script: interval_refill,
    },
    Case {
        id: 21,
        title: "bucket of 100, 10/s",
        doors: ALL,
        script: idle_bucket,
    },
    Case {
        id: 33,
        title: "meter of 10, drains 2/s",
        doors: ALL,
        script: drains,
    },
];

fn sixty_per_hour() -> Script {
    let policy = "limits:\n  l: { rate: 60/h }\n";
    let mut times = vec![0; 100];
    for minute in 1..=5 {
        times.extend([minute * 60_000 - 1, minute * 60_000, minute * 60_000]);
    }
    let minute = [
        Told::denied(after(1)),
        Told::ALLOWED.remaining(0),
        Told::denied(after(60_000)),
    ];
    Script::new(policy, each(times, ""))
        .then(
            (0..60)
                .rev()
                .map(|remaining| Told::ALLOWED.remaining(remaining)),
        )
        .then_each(40, Told::denied(after(60_000)).remaining(0))
        .then(std::iter::repeat_n(minute, 5).flatten())
}

fn initial_fill() -> Script {
    let policy = "limits:\n  l: { rate: 60/h, initial: 10 }\n";
    let mut times = vec![5_000; 20];
    times.extend([65_000, 65_000]);
    Script::new(policy, each(times, ""))
        .then_each(10, Told::ALLOWED)
        .then_each(10, Told::denied(after(60_000)))
        .then([Told::ALLOWED, Told::DENIED])
}

fn part_token() -> Script {
    let policy = "limits:\n  l: { rate: 5/s }\n";
    let mut trace = vec![at(0, "\"permits\":5")];
    trace.extend(each([620; 4], ""));
    trace.extend(each([799, 800], ""));
    Script::new(policy, trace)
        .then([Told::ALLOWED.remaining(0)])
        .then([2, 1, 0].map(|remaining| Told::ALLOWED.remaining(remaining)))
        .then([
            Told::denied(after(180)),
            Told::denied(after(1)),
            Told::ALLOWED,
        ])
}

fn one_each_six_seconds() -> Script {
    let policy = "limits:\n  l: { rate: 10/min, burst: 1, key: client_ip }\n";
    let ip = |n: u64| format!("\"client_ip\":\"192.0.2.{n}\"");
    let mut trace = each([0, 0, 5_999, 6_000, 11_999, 12_000], &ip(1));
    trace.push(at(12_000, &ip(2)));
    Script::new(policy, trace)
        .then([
            Told::ALLOWED,
            Told::denied(after(6_000)),
            Told::denied(after(1)),
        ])
        .then([
            Told::ALLOWED,
            Told::denied(after(1)),
            Told::ALLOWED,
            Told::ALLOWED,
        ])
}

fn three_then_one() -> Script {
    let policy = "limits:\n  l: { rate: 1/s, burst: 3 }\n";
    Script::new(policy, each([0, 0, 0, 0, 999, 1_000, 1_000, 2_000], ""))
        .then_each(3, Told::ALLOWED)
        .then([
            Told::DENIED,
            Told::DENIED,
            Told::ALLOWED,
            Told::DENIED,
            Told::ALLOWED,
        ])
}

/// Ten at once; then, each 12 s, one that fits and, at the full minutes, ten that may not.
fn refill_trace() -> Vec<String> {
    let mut trace = vec![at(0, "\"permits\":10")];
    for n in 1..=5 {
        trace.push(at(n * 12_000, ""));
    }
    trace.push(at(60_000, "\"permits\":4"));
    trace.push(at(60_000, ""));
    trace
}

fn greedy_refill() -> Script {
    let policy = "limits:\n  l: { rate: 5/min, burst: 10 }\n";
    Script::new(policy, refill_trace())
        .then_each(6, Told::ALLOWED)
        .then_each(2, Told::DENIED)
}

fn interval_refill() -> Script {
    let policy = "limits:\n  l: { rate: 5/min, burst: 10, refill: interval }\n";
    Script::new(policy, refill_trace())
        .then([Told::ALLOWED])
        .then([48_000, 36_000, 24_000, 12_000].map(|millis| Told::denied(after(millis))))
        .then([Told::ALLOWED, Told::ALLOWED, Told::denied(after(60_000))])
}

fn idle_bucket() -> Script {
    let policy = "limits:\n  l: { rate: 10/s, burst: 100 }\n";
    let mut times = vec![3_600_000; 50];
    times.extend((1..=20).map(|n| 3_600_000 + n * 100));
    times.extend([3_602_000; 51]);
    Script::new(policy, each(times, ""))
        .then(
            (50..100)
                .rev()
                .map(|remaining| Told::ALLOWED.remaining(remaining)),
        )
        // One comes back for each that is taken.
        .then_each(20, Told::ALLOWED.remaining(50))
        .then(
            (0..50)
                .rev()
                .map(|remaining| Told::ALLOWED.remaining(remaining)),
        )
        .then([Told::denied(after(100))])
}

fn drains() -> Script {
    let policy = "limits:\n  l: { rate: 2/s, burst: 10 }\n";
    // 0.2 drain between two requests: the level is full after 12, and a place is free at 1.5 s.
    Script::new(policy, each((0..20).map(|n| n * 100), ""))
        .then_each(12, Told::ALLOWED)
        .then_pass(8, 1..=1)
}
