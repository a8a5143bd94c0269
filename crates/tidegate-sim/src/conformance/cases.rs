//! The cases that must come out, by their numbers.
//!
//! Times are virtual. A policy has only limits, which all requests meet in their order.

use super::DoorName::{Gateway, Library, Simulate};
use super::script::{Script, Told, ToldRetry, at};
use super::{Case, DoorName};

/// Every door.
const ALL: &[DoorName] = &[Library, Simulate, Gateway];
/// What plain HTTP cannot ask: several permits at once.
const NOT_HTTP: &[DoorName] = &[Library, Simulate];
/// What changes while it runs, by hand.
const SIMULATE: &[DoorName] = &[Simulate];
/// What only a node knows: missing parts.
const NODE: &[DoorName] = &[Simulate, Gateway];

/// The table.
pub const CASES: &[Case] = &[
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
        id: 6,
        title: "sliding log 10 per 3 s",
        doors: ALL,
        script: sliding_log,
    },
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
        id: 17,
        title: "100 in 1 s, then in 2 s",
        doors: SIMULATE,
        script: window_grows,
    },
    Case {
        id: 18,
        title: "a queue of 10, 2 per second",
        doors: ALL,
        script: leaky_queue,
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
        id: 20,
        title: "10/s and 100/min, saturated",
        doors: ALL,
        script: two_limits,
    },
    Case {
        id: 21,
        title: "bucket of 100, 10/s",
        doors: ALL,
        script: idle_bucket,
    },
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
        id: 23,
        title: "10 per IP, 100 in all",
        doors: ALL,
        script: per_ip_and_all,
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
    Case {
        id: 29,
        title: "over one's own limit",
        doors: ALL,
        script: shared_loses_nothing,
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
        id: 33,
        title: "meter of 10, drains 2/s",
        doors: ALL,
        script: drains,
    },
    Case {
        id: 36,
        title: "a part is missing: deny",
        doors: NODE,
        script: missing_denied,
    },
    Case {
        id: 36,
        title: "a part is missing: pass",
        doors: NODE,
        script: missing_passed,
    },
    Case {
        id: 36,
        title: "a part is missing: shared",
        doors: NODE,
        script: missing_shared,
    },
    Case {
        id: 36,
        title: "a header sent twice",
        doors: ALL,
        script: header_twice,
    },
    Case {
        id: 36,
        title: "a value that is no UTF-8",
        doors: ALL,
        script: not_utf8,
    },
];

const fn after(millis: u64) -> ToldRetry {
    ToldRetry::AfterNanos(millis * 1_000_000)
}

/// Lines at these times (in ms), with the same fields.
fn each(times: impl IntoIterator<Item = u64>, fields: &str) -> Vec<String> {
    times.into_iter().map(|millis| at(millis, fields)).collect()
}

fn user(name: &str) -> String {
    format!("\"headers\":{{\"user\":\"{name}\"}}")
}

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

fn initial_fill() -> Script {
    let policy = "limits:\n  l: { rate: 60/h, initial: 10 }\n";
    let mut times = vec![5_000; 20];
    times.extend([65_000, 65_000]);
    Script::new(policy, each(times, ""))
        .then_each(10, Told::ALLOWED)
        .then_each(10, Told::denied(after(60_000)))
        .then([Told::ALLOWED, Told::DENIED])
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

fn leaky_queue() -> Script {
    let policy = "limits:\n  l: { rate: 2/s, burst: 1, on_limit: { queue: { length: 10 } } }\n";
    Script::new(policy, each([1_000; 15], ""))
        .then((0..11).map(|n| Told::delayed(n * 500_000_000)))
        .then_each(4, Told::denied(after(500)))
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

fn two_limits() -> Script {
    let policy = "limits:\n  second: { rate: 10/s }\n  minute: { rate: 100/min }\n";
    // A request each 10 ms for a minute, the last at its end: 100 and then 100 more as they come.
    let times = (0..=6_000).map(|n| n * 10);
    Script::new(policy, each(times, ""))
        .then_each(10, Told::ALLOWED)
        .then_pass(91, 9..=10) // to 1.00 s: 10 + 10 t
        .then_pass(900, 81..=90) // to 10.00 s: 100 + 100 t / 60
        .then_pass(5_000, 83..=100)
        .in_all(200)
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

fn shared_loses_nothing() -> Script {
    let policy = "limits:\n  user: { rate: 10/h, key: \"header:user\" }\n  org: { rate: 20/h }\n";
    let mut trace = each([0; 1_010], &user("noisy"));
    trace.extend(each([0; 10], &user("quiet")));
    trace.push(at(0, &user("third")));
    Script::new(policy, trace)
        .then_each(10, Told::ALLOWED)
        .then_each(1_000, Told::denied(after(360_000)).by("user"))
        // The organisation's twenty are all there but the ten that passed.
        .then_each(10, Told::ALLOWED)
        .then([Told::denied(after(180_000)).by("org")])
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

fn drains() -> Script {
    let policy = "limits:\n  l: { rate: 2/s, burst: 10 }\n";
    // 0.2 drain between two requests: the level is full after 12, and a place is free at 1.5 s.
    Script::new(policy, each((0..20).map(|n| n * 100), ""))
        .then_each(12, Told::ALLOWED)
        .then_pass(8, 1..=1)
}

fn by_user(on_missing: &str) -> String {
    format!("limits:\n  l: {{ rate: 2/h, key: \"header:user\", on_missing: {on_missing} }}\n")
}

fn missing() -> Vec<String> {
    let mut trace = each([0; 4], "");
    trace.extend(each([0; 3], &user("a")));
    trace
}

fn missing_denied() -> Script {
    Script::new(&by_user("deny"), missing())
        .then_each(4, Told::denied(ToldRetry::Never))
        .then_each(2, Told::ALLOWED)
        .then([Told::DENIED])
}

fn missing_passed() -> Script {
    Script::new(&by_user("pass"), missing())
        .then_each(4, Told::ALLOWED)
        .then_each(2, Told::ALLOWED)
        .then([Told::DENIED])
}

fn missing_shared() -> Script {
    Script::new(&by_user("shared"), missing())
        .then_each(2, Told::ALLOWED)
        .then_each(2, Told::DENIED)
        .then_each(2, Told::ALLOWED)
        .then([Told::DENIED])
}

fn header_twice() -> Script {
    let list = |values: &[&str]| {
        let pairs: Vec<String> = values
            .iter()
            .map(|v| format!("[\"user\",\"{v}\"]"))
            .collect();
        at(0, &format!("\"headers\":[{}]", pairs.join(",")))
    };
    // Twice is once with the values joined, in their order.
    let trace = vec![
        list(&["a", "b"]),
        list(&["a, b"]),
        list(&["a", "b"]),
        list(&["b", "a"]),
        list(&["a"]),
    ];
    Script::new(&by_user("deny"), trace)
        .then_each(2, Told::ALLOWED)
        .then([Told::DENIED])
        .then_each(2, Told::ALLOWED)
}

fn not_utf8() -> Script {
    let blob = |base64: &str| {
        at(
            0,
            &format!("\"headers\":{{\"user\":{{\"base64\":\"{base64}\"}}}}"),
        )
    };
    // 0xFF and 0xFE are no text, and two keys.
    let trace = vec![blob("/w=="), blob("/w=="), blob("/w=="), blob("/g==")];
    Script::new(&by_user("deny"), trace)
        .then_each(2, Told::ALLOWED)
        .then([Told::DENIED, Told::ALLOWED])
}
