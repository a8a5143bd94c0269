//! Fixed windows that several processes lease from one Redis.

use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::running::{DEADLINE, Folder, Redis, Serve, get, passed, status};

fn policy(redis: &Redis, limit: &str) -> String {
    format!(
        "limits:\n\
         \x20 window: {{ {limit}, algorithm: fixed_window, store: leased }}\n\
         \x20 small: {{ rate: 20/month, store: exact }}\n\
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
    let file = folder.write("policy.yaml", &policy(&redis, "rate: 400/month"));
    let nodes = [Serve::start(&file), Serve::start(&file)];
    // On a busy machine a call may be missed, and somebody refused for that.
    let all = passed_until(&nodes, 380);
    assert!(all <= 400, "{all} of 400");
    let calls = nodes[0].metric("tidegate_redis_calls_total").unwrap();
    assert!(calls < 600.0, "{calls} calls");
    assert_eq!(nodes[0].metric(AWAY), Ok(0.0));
}

/// How many have passed in all when so many had, and some more were made.
fn passed_until(nodes: &[Serve], wanted: usize) -> usize {
    let deadline = Instant::now() + DEADLINE;
    let some = || -> usize {
        let some = nodes.iter().map(|node| passed(node.gateway, 30, ""));
        some.sum()
    };
    let mut all = 0;
    while all < wanted {
        assert!(Instant::now() < deadline, "{all} of {wanted}");
        all += some();
    }
    all + some() + some()
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
    let file = folder.write("policy.yaml", &policy(&redis, "rate: 400/month"));
    let node = Serve::start(&file);
    let both = |_: &usize| status(&get(node.gateway, "/both", "").0) == 200;
    assert_eq!((0..300).filter(both).count(), 20);
    let rest = passed_until(&[node], 370);
    assert!(rest <= 380, "{rest} of 380");
}

// shows: C5
#[test]
fn a_redis_that_is_away_grants_nothing_of_a_window_and_is_told_again_what_it_lost() {
    let mut redis = Redis::start();
    let folder = Folder::new();
    let file = folder.write("policy.yaml", &policy(&redis, "rate: 4000/month"));
    let node = Serve::start(&file);
    let mut all = passed(node.gateway, 200, "");
    assert!((100..=200).contains(&all), "{all}");
    redis.kill();
    // Its lease is for a month: what it has of it, it has.
    loop {
        match passed(node.gateway, 20, "") {
            0 => break,
            some => all += some,
        }
    }
    assert!(all < 3_500, "{all}");
    redis.start_again();
    let up = format!("tidegate_redis_up{{server=\"{}\"}}", redis.address);
    let deadline = Instant::now() + DEADLINE;
    while node.metric(&up) != Ok(1.0) {
        assert!(Instant::now() < deadline, "it is not found again");
        std::thread::park_timeout(Duration::from_millis(10));
    }
    all += passed_until(std::slice::from_ref(&node), 3_900 - all);
    all += passed(node.gateway, 500, "");
    assert!(all <= 4_000, "{all}");
}
