//! Several limits on one request.

use super::{ALL, NODE, after, each, user};
use crate::conformance::Case;
use crate::conformance::script::{Script, Told, at};

pub(super) const CASES: &[Case] = &[
    Case {
        id: 20,
        title: "10/s and 100/min, saturated",
        doors: ALL,
        script: two_limits,
    },
    Case {
        id: 20,
        title: "10/s and 15/min of one limit",
        doors: ALL,
        script: two_rates,
    },
    Case {
        id: 20,
        title: "what one rate refuses is charged to none",
        doors: ALL,
        script: two_rates_charge_both_or_none,
    },
    Case {
        id: 29,
        title: "over one's own limit",
        doors: ALL,
        script: shared_loses_nothing,
    },
    Case {
        id: 34,
        title: "a rate refuses before a bulkhead is held",
        doors: NODE,
        script: bulkhead_and_rate,
    },
];

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

fn two_rates() -> Script {
    let policy = "limits:\n  l: { rate: [10/s, 15/min] }\n";
    let mut trace = each([0; 12], "");
    trace.extend(each([1_000; 7], ""));
    trace.extend(each([3_999, 4_000, 4_000, 8_000, 75_000], ""));
    trace.extend(each([128_000; 12], ""));
    Script::new(policy, trace)
        .then_each(10, Told::ALLOWED.by("l"))
        .then_each(2, Told::denied(after(100)).by("l"))
        // Of fifteen a minute five are left. The sixth is a quarter there, for 4 s each.
        .then_each(5, Told::ALLOWED.by("l:2"))
        .then_each(2, Told::denied(after(3_000)).by("l:2"))
        .then([
            Told::denied(after(1)).by("l:2"),
            Told::ALLOWED.by("l:2"),
            Told::denied(after(4_000)).by("l:2"),
            Told::ALLOWED.by("l:2"),
            // 67 s later both are full, and one is taken; 53 s later still, they are again.
            Told::ALLOWED.remaining(9).by("l"),
        ])
        .then_each(10, Told::ALLOWED.by("l"))
        .then_each(2, Told::denied(after(100)).by("l"))
        .in_all(28)
}

fn two_rates_charge_both_or_none() -> Script {
    let policy = "limits:\n  l: { rate: [6/h, 2/s] }\n";
    let mut trace = each([0; 100], "");
    trace.extend(each([1_000; 100], ""));
    trace.extend(each([2_000; 100], ""));
    Script::new(policy, trace)
        .then_each(2, Told::ALLOWED.by("l:2"))
        .then_each(98, Told::denied(after(500)).by("l:2"))
        .then_each(2, Told::ALLOWED.by("l:2"))
        .then_each(98, Told::denied(after(500)).by("l:2"))
        // The six are all there but the four that passed.
        .then([1, 0].map(|left| Told::ALLOWED.by("l").remaining(left)))
        .then_each(98, Told::denied(after(598_000)).by("l"))
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

fn bulkhead_and_rate() -> Script {
    let policy = "limits:\n  \
        bulkhead: { concurrency: 150, on_limit: { queue: { max_wait: 100ms } } }\n  \
        rate: { rate: 1/s, burst: 1, on_limit: { queue: { max_wait: 100ms } }, \
        key: \"header:user\", on_missing: pass }\n";
    let mut trace = each([0; 200], &user("a"));
    // Who has no user meets the bulkhead only: 149 of its places are free.
    trace.extend(each([50; 149], ""));
    trace.push(at(999, "\"release\":1"));
    trace.push(at(1_000, &user("a")));
    Script::new(policy, trace)
        .then([Told::ALLOWED])
        // Before it has waited: no place comes in time.
        .then_each(199, Told::denied(after(900)).by("rate"))
        .then_each(149, Told::ALLOWED)
        .then([Told::ALLOWED])
}
