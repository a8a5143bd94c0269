//! What tidegate must do: ids and titles, and the cases that must come out. The whole list, not
//! only what is built: a row leaves `absent` when a test names it.

/// The sections' titles.
pub(crate) fn section(letter: &str) -> &'static str {
    match letter {
        "A" => "What is limited, by whom, and what happens then",
        "B" => "Algorithms",
        "C" => "Across machines",
        "D" => "Gateway",
        "E" => "Decision service",
        "F" => "Rules that change while it runs",
        "G" => "Seeing and trying",
        _ => "Being trusted",
    }
}

pub(crate) const REQUIREMENTS: &[(&str, &str)] = &[
    (
        "A1",
        "request rate, exact, from 1 per month to millions per second",
    ),
    ("A2", "concurrency, with an optional bounded wait"),
    (
        "A3",
        "bandwidth per key, both directions, with a free first part",
    ),
    ("A4", "deny and allow lists by address and by key"),
    (
        "A5",
        "keys from any part of a request, combined, with a stated answer where one is missing",
    ),
    ("A6", "several limits on one request, all or nothing"),
    ("A7", "cost other than 1, peek, give back, reset, overdraft"),
    (
        "A8",
        "when limited: reject, redirect, queue, degrade, challenge, accept for later, wait",
    ),
    ("A9", "shadow mode"),
    ("A10", "overrides per key, and hot values of a parameter"),
    ("B1", "fixed window"),
    (
        "B2",
        "sliding window of n parts, and the two-window counter",
    ),
    ("B3", "sliding window log"),
    ("B4", "leaky bucket, as a meter and as a queue"),
    (
        "B5",
        "token bucket with every refill, initial fill, several bandwidths, change at run time",
    ),
    ("B6", "Guava's smooth bursty and smooth warm-up"),
    ("B7", "Sentinel's shaping"),
    ("B8", "concurrency by guard, bounded waiting, bulkheads"),
    ("B9", "adaptive concurrency and system protection"),
    (
        "B10",
        "acquire now, with a timeout, or wait; sync and async",
    ),
    (
        "B11",
        "limits defined, changed and dropped by the caller at run time",
    ),
    ("C1", "exact mode: one atomic script per decision"),
    ("C2", "leased mode for hot keys"),
    (
        "C3",
        "global and per-client limits, set once or updated in place",
    ),
    ("C4", "distributed concurrency, no slot lost for good"),
    ("C5", "the store is slow, gone or failing over"),
    ("C6", "nodes come and go; clock skew does not matter"),
    (
        "D1",
        "routes, upstreams, balancing, discovery, protocols, TLS",
    ),
    (
        "D2",
        "filters: rewrite, headers, redirect, size, timeout, retry, breaker",
    ),
    ("D3", "nginx's and Tomcat's limits work alike"),
    (
        "D4",
        "response headers: RateLimit, Retry-After, X-RateLimit",
    ),
    ("E1", "RESP: CL.THROTTLE and the project's own commands"),
    ("E2", "gRPC: Envoy's Rate Limit Service"),
    ("E3", "HTTP and JSON, and forward-auth"),
    ("E4", "the API gateway's yes-or-no call"),
    (
        "F1",
        "rules from file, admin API, Nacos, etcd; a bad set is refused whole",
    ),
    ("F2", "Sentinel's rule JSON as it is"),
    (
        "F3",
        "imports: nginx, Spring Cloud Gateway, envoyproxy/ratelimit",
    ),
    ("F4", "a changed limit keeps what was counted"),
    (
        "G1",
        "metrics, traces, decision log, alerts, the keys limited most",
    ),
    ("G2", "a live dashboard, in the browser and in the terminal"),
    (
        "G3",
        "simulation, tests for rules, why was this request limited",
    ),
    ("H1", "the limiter never takes down what it protects"),
    ("H2", "restart and reload lose no request in flight"),
    (
        "H3",
        "ports beyond loopback are authenticated; TLS and mTLS",
    ),
];

pub(crate) const CASES: &[(u32, &str)] = &[
    (
        1,
        "fixed window 5/min across an edge: 10 pass; the log makes the second five wait",
    ),
    (
        2,
        "fixed window 60/min across an edge: 119 pass; the sliding window holds 60",
    ),
    (
        3,
        "nginx dialect 2 r/s, 6 at once: 1 passes, the next at 500 ms",
    ),
    (4, "the same with `burst=4`, delayed"),
    (5, "the same, nodelay"),
    (6, "sliding log 10 per 3 s, 15 at once, again after 4 s"),
    (7, "`CL.THROTTLE k 15 30 60` on a fresh key"),
    (8, "`CL.THROTTLE k 4 1 1`, the sixth"),
    (9, "Guava bursty 5/s: 10, 1, 1 wait 0, 2.0, 0.2 s"),
    (10, "Guava bursty 10/s, 11 callers at once: one each 100 ms"),
    (
        11,
        "Guava warm-up 2/s over 3 s: 0, 1.333, 1.0, 0.667, 0.5 s",
    ),
    (
        12,
        "60 per hour, 100 at once: 60 pass, then one each minute",
    ),
    (13, "the same with an initial fill of 10"),
    (
        14,
        "a token per 200 ms, 620 ms from empty: 3, and 20 ms towards the fourth",
    ),
    (15, "sliding log 3 per 5 s, 20 waiting: done after 30 s"),
    (16, "10 per minute per client, burst 1: one each 6 s"),
    (
        17,
        "sliding window that changes its size keeps what it counted",
    ),
    (18, "leaky queue of 10, 2 per second, 15 at once"),
    (19, "bucket of 10, 5/min, empty: greedy and interval refill"),
    (
        20,
        "10 per second and 100 per minute together: neither exceeded, 200 in a minute",
    ),
    (21, "bucket 100, 10/s: 50 at once, and 20 at 100 ms steps"),
    (22, "5 in flight per user and API, a sixth comes"),
    (23, "10 per address and 100 in all"),
    (24, "100 KB/s per user, 1 MB over two connections: 10 s"),
    (25, "Sentinel warm-up 10/s over 10 s, cold"),
    (26, "Sentinel queueing 10/s, longest wait 500 ms"),
    (27, "distributed concurrency 50 on 4 nodes, one killed"),
    (28, "leased, strict, 100,000/s on 4 nodes: overshoot 0"),
    (29, "a refused user costs the organisation's limit nothing"),
    (30, "two nodes 50 ms apart in clock, exact mode"),
    (31, "waiting room for 2,000, 5,000 come"),
    (32, "fixed window 2 per 1000 ms, two callers, 200 ms apart"),
    (
        33,
        "meter of 10 that drains 2/s, 20 at 100 ms steps: 13 pass",
    ),
    (34, "bulkhead 150 and rate 1/s on one call, 200 at once"),
    (
        35,
        "sliding log of 1,000,000 per key: memory stated and bounded",
    ),
    (
        36,
        "a part missing, a header twice, bytes that are no text, a 1 MB header",
    ),
];
