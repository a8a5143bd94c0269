//! Windows and logs: what passes at an edge, and when what was counted is let go of.

use super::{ALL, NOT_HTTP, SIMULATE, after, each};
use crate::conformance::Case;
use crate::conformance::script::{Script, Told, at};

pub(super) const CASES: &[Case] = &[
    Case {
        id: 1,
        title: "fixed window 5/min at its edge",
        doors: ALL,
        script: window_edge,
    },
    Case {
        id: 1,
        title: "sliding log 5/min, the same",
        doors: ALL,
        script: log_edge,
    },
    Case {
        id: 2,
        title: "fixed window 60/min at its edge",
        doors: ALL,
        script: sixty_edge,
    },
    Case {
        id: 2,
        title: "sliding window of 60 parts, the same",
        doors: ALL,
        script: sixty_parts,
    },
    Case {
        id: 2,
        title: "two-window counter, the same",
        doors: ALL,
        script: sixty_counter,
    },
    Case {
        id: 6,
        title: "sliding log 10 per 3 s",
        doors: ALL,
        script: sliding_log,
    },
    Case {
        id: 17,
        title: "100 in 1 s, then in 2 s",
        doors: SIMULATE,
        script: window_grows,
    },
    Case {
        id: 32,
        title: "two callers, in phase 0",
        doors: ALL,
        script: phase_0,
    },
    Case {
        id: 32,
        title: "two callers, in phase 900",
        doors: ALL,
        script: phase_900,
    },
    Case {
        id: 32,
        title: "two callers, 900 and 1000",
        doors: ALL,
        script: phase_apart,
    },
    Case {
        id: 35,
        title: "sliding log of a million a minute",
        doors: NOT_HTTP,
        script: log_of_a_million,
    },
];

const ELEVEN: u64 = 11 * 3_600_000;

fn edge_times() -> Vec<u64> {
    [30, 36, 42, 50, 59, 60, 66, 72, 80, 89]
        .map(|second| ELEVEN + second * 1_000)
        .to_vec()
}

fn window_edge() -> Script {
    let policy = "limits:\n  l: { rate: 5/min, algorithm: fixed_window }\n";
    let mut times = edge_times();
    times.push(ELEVEN + 90_000);
    // All ten of 59 seconds pass, five on each side of the edge; the window holds a sixth off.
    Script::new(policy, each(times, ""))
        .then_each(10, Told::ALLOWED)
        .then([Told::denied(after(30_000)).remaining(0)])
}

fn log_edge() -> Script {
    let policy = "limits:\n  l: { rate: 5/min, algorithm: sliding_log }\n";
    let mut times = edge_times();
    times.extend([ELEVEN + 90_000, ELEVEN + 90_000]);
    Script::new(policy, each(times, ""))
        .then([4, 3, 2, 1, 0].map(|remaining| Told::ALLOWED.remaining(remaining)))
        // The first leaves at age 60 s, at 11:01:30.
        .then([30, 24, 18, 10, 1].map(|seconds| Told::denied(after(seconds * 1_000))))
        .then([Told::ALLOWED.remaining(0), Told::denied(after(6_000))])
}

/// 59 at 0:59, 60 at 1:00; and one more.
fn sixty_times() -> Vec<String> {
    let mut times = vec![59_000; 59];
    times.extend([60_000; 61]);
    each(times, "")
}

fn sixty_edge() -> Script {
    let policy = "limits:\n  l: { rate: 60/min, algorithm: fixed_window }\n";
    Script::new(policy, sixty_times())
        .then_each(119, Told::ALLOWED)
        .then([Told::denied(after(60_000))])
}

fn sixty_parts() -> Script {
    let policy = "limits:\n  l: { rate: 60/min, algorithm: sliding_window, parts: 60 }\n";
    // One is left of 60. The 59 leave when their part, of the 59th second, is 61 parts old.
    Script::new(policy, sixty_times())
        .then_each(60, Told::ALLOWED)
        .then_each(60, Told::denied(after(60_000)).remaining(0))
}

fn sixty_counter() -> Script {
    let policy = "limits:\n  l: { rate: 60/min, algorithm: sliding_counter }\n";
    // At 1:00 all of the last minute's 59 still count; a second later 58.02 of them.
    let mut trace = sixty_times();
    trace.extend(each([61_000; 2], ""));
    Script::new(policy, trace)
        .then_each(60, Told::ALLOWED)
        .then_each(60, Told::DENIED)
        .then_each(2, Told::DENIED)
}

fn sliding_log() -> Script {
    let policy = "limits:\n  l: { rate: 10 per 3s, algorithm: sliding_log }\n";
    let mut times = vec![0; 15];
    times.push(4_000);
    Script::new(policy, each(times, ""))
        .then(
            (0..10)
                .rev()
                .map(|remaining| Told::ALLOWED.remaining(remaining)),
        )
        .then_each(5, Told::denied(after(3_000)))
        .then([Told::ALLOWED.remaining(9)])
}

fn window_grows() -> Script {
    let of = |window| {
        format!(
            "limits:\n  l: {{ rate: 100 per {window}, algorithm: sliding_window, parts: 10 }}\n"
        )
    };
    let mut trace = each((0..50).map(|n| n * 10), "");
    trace.push(at(495, &format!("\"policy\":{:?}", of("2s"))));
    trace.extend(each((50..120).map(|n| n * 10), ""));
    Script::new(&of("1s"), trace)
        .then_each(100, Told::ALLOWED)
        .then_each(20, Told::DENIED)
}

const TWO_PER_SECOND: &str = "limits:\n  l: { rate: 2 per 1000ms, algorithm: fixed_window }\n";

fn two_callers(first: u64, second: u64) -> Vec<String> {
    let mut times: Vec<u64> = (0..20)
        .flat_map(|n| [first + n * 200, second + n * 200])
        .collect();
    times.sort_unstable();
    each(times, "")
}

fn phase_0() -> Script {
    Script::new(TWO_PER_SECOND, two_callers(0, 0)).then_pass(40, 8..=8)
}

fn phase_900() -> Script {
    Script::new(TWO_PER_SECOND, two_callers(900, 900)).then_pass(40, 10..=10)
}

fn phase_apart() -> Script {
    Script::new(TWO_PER_SECOND, two_callers(900, 1_000)).then_pass(40, 9..=9)
}

/// A million in a second, each counted until it is a minute old. (What it may cost in memory is
/// said by the policy check.)
fn log_of_a_million() -> Script {
    let policy = "limits:\n  l: { rate: 1000000/min, algorithm: sliding_log }\n";
    let thousand = "\"permits\":1000";
    let mut trace = each(0..1_001, thousand);
    trace.extend(each([59_999, 60_000, 60_000, 60_001], thousand));
    let left = (0..1_000).rev().map(|n| Told::ALLOWED.remaining(n * 1_000));
    Script::new(policy, trace)
        .then(left)
        .then([Told::denied(after(59_000)).remaining(0)])
        .then([Told::denied(after(1)), Told::ALLOWED.remaining(0)])
        .then([Told::denied(after(1)), Told::ALLOWED.remaining(0)])
}
