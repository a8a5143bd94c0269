//! Fixed windows that several processes lease from one Redis.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::running::{Folder, Redis, Serve, get, passed, status};

fn policy(redis: &Redis, limit: &str) -> String {
    format!(
        "limits:\n\
         \x20 window: {{ {limit}, algorithm: fixed_window, store: leased }}\n\
         \x20 small: {{ rate: 20/d, store: exact }}\n\
         redis: {{ url: \"redis://{}\" }}\n\
         upstreams: {{ echo: {{ builtin: echo }} }}\n\
         gateway:\n  listen: [\"127.0.0.1:0\"]\n\
         \x20 routes:\n\
         \x20 - {{ id: both, match: {{ path: /both }}, upstream: echo, limits: [window, small] }}\n\
         \x20 - {{ id: all, upstream: echo, limits: [window] }}\n\
         admin: {{ listen: \"127.0.0.1:0\" }}\n",
        redis.address
    )
}

const AWAY: &str = "tidegate_limit_unavailable{limit=\"window\"}";

// shows: C2 (fixed windows)
#[test]
fn two_nodes_that_lease_a_window_grant_it_once_and_nearly_all_of_it() {
    let redis = Redis::start();
    let folder = Folder::new();
    let file = folder.write("policy.yaml", &policy(&redis, "rate: 400/d"));
    let nodes = [Serve::start(&file), Serve::start(&file)];
    let mut all = 0;
    for _ in 0..10 {
        for node in &nodes {
            all += passed(node.gateway, 30, "");
        }
    }
    assert!((370..=400).contains(&all), "{all} of 400");
    let calls = nodes[0].metric("tidegate_redis_calls_total").unwrap();
    assert!(calls < 300.0, "{calls} calls");
    let (head, _) = get(nodes[0].gateway, "/", "");
    if status(&head) == 429 {
        // Nobody is told to try again every refresh of a day.
        assert!(
            head.contains("ratelimit-policy: \"window\";q=400;w=86400"),
            "{head}"
        );
    }
    assert_eq!(nodes[0].metric(AWAY), Ok(0.0));
}

/// By the clock of the machine, which is that of its Redis.
fn micros() -> u128 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_micros()
}

/// When each request that passed was sent and answered, of `seconds`.
fn ask(gateway: SocketAddr, seconds: u64) -> Vec<(u128, u128)> {
    let end = micros() + Duration::from_secs(seconds).as_micros();
    let mut all = Vec::new();
    loop {
        let sent = micros();
        if sent >= end {
            return all;
        }
        let (head, _) = get(gateway, "/", "");
        match status(&head) {
            200 => all.push((sent, micros())),
            429 => {}
            other => panic!("{other}: {head}"),
        }
    }
}

#[test]
fn windows_follow_each_other_and_each_is_granted_once() {
    const PERMITS: usize = 200;
    const SECOND: u128 = 1_000_000;
    let redis = Redis::start();
    let folder = Folder::new();
    let file = folder.write("policy.yaml", &policy(&redis, "rate: 200/s"));
    let nodes = [Serve::start(&file), Serve::start(&file)];
    let begin = micros();
    let mut all: Vec<(u128, u128)> = std::thread::scope(|scope| {
        let asked = nodes.each_ref().map(|node| {
            let gateway = node.gateway;
            scope.spawn(move || ask(gateway, 5))
        });
        asked
            .into_iter()
            .flat_map(|asked| asked.join().unwrap())
            .collect()
    });
    all.sort_unstable();
    let first = begin / SECOND + 1;
    for window in first..first + 4 {
        let (from, to) = (window * SECOND, (window + 1) * SECOND);
        let within = |(sent, answered): &&(u128, u128)| *sent >= from && *answered < to;
        let touching = |(sent, answered): &&(u128, u128)| *answered >= from && *sent < to;
        let (least, most) = (
            all.iter().filter(within).count(),
            all.iter().filter(touching).count(),
        );
        assert!(least <= PERMITS, "{least} in second {window}");
        assert!(most >= PERMITS * 9 / 10, "{most} in second {window}");
    }
}

/// A user over their own limit sends more: the limit that others share has lost nothing.
#[test]
fn what_another_limit_refuses_goes_back_to_the_window() {
    let redis = Redis::start();
    let folder = Folder::new();
    let file = folder.write("policy.yaml", &policy(&redis, "rate: 400/d"));
    let node = Serve::start(&file);
    let both = |_: &usize| status(&get(node.gateway, "/both", "").0) == 200;
    assert_eq!((0..300).filter(both).count(), 20);
    let rest = passed(node.gateway, 500, "");
    assert!((370..=380).contains(&rest), "{rest} of 380");
}

// shows: C5
#[test]
fn a_redis_that_is_away_grants_nothing_of_a_window_and_is_told_again_what_it_lost() {
    let mut redis = Redis::start();
    let folder = Folder::new();
    let file = folder.write("policy.yaml", &policy(&redis, "rate: 400/d"));
    let node = Serve::start(&file);
    assert_eq!(passed(node.gateway, 200, ""), 200);
    redis.kill();
    // Its lease is for a day: what it has of it, it has.
    let held = passed(node.gateway, 400, "");
    assert!(held < 200, "{held}");
    let (head, _) = get(node.gateway, "/", "");
    assert_eq!(status(&head), 429);
    redis.start_again();
    let up = format!("tidegate_redis_up{{server=\"{}\"}}", redis.address);
    let deadline = std::time::Instant::now() + crate::running::DEADLINE;
    while node.metric(&up) != Ok(1.0) {
        assert!(
            std::time::Instant::now() < deadline,
            "it is not found again"
        );
        std::thread::park_timeout(Duration::from_millis(10));
    }
    let mut rest = 0;
    while rest < 190 - held {
        assert!(std::time::Instant::now() < deadline, "{rest} after {held}");
        rest += passed(node.gateway, 20, "");
    }
    rest += passed(node.gateway, 300, "");
    assert!(held + rest <= 200, "{held} and {rest}");
}
