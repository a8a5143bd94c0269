//! Several processes that share limits through one Redis.

use std::io::{Read, Write};

use crate::running::{Folder, Redis, Serve, get, passed, status};

fn policy(redis: &Redis, limit: &str) -> String {
    format!(
        "limits:\n  shared: {{ {limit}, key: client_ip }}\n\
         redis: {{ url: \"redis://{}\" }}\n\
         upstreams: {{ echo: {{ builtin: echo }} }}\n\
         gateway:\n  listen: [\"127.0.0.1:0\"]\n\
         \x20 routes: [{{ id: all, upstream: echo, limits: [shared] }}]\n\
         admin: {{ listen: \"127.0.0.1:0\" }}\n",
        redis.address
    )
}

/// Waits until a metric of this node is so.
fn until(serve: &Serve, name: &str, wanted: f64) {
    until_some(serve, name, |is| is.to_bits() == wanted.to_bits());
}

fn until_some(serve: &Serve, name: &str, wanted: impl Fn(f64) -> bool) {
    let deadline = std::time::Instant::now() + crate::running::DEADLINE;
    while !serve.metric(name).is_ok_and(&wanted) {
        assert!(
            std::time::Instant::now() < deadline,
            "{:?}",
            serve.metric(name)
        );
        std::thread::park_timeout(std::time::Duration::from_millis(10));
    }
}

const AWAY: &str = "tidegate_limit_unavailable{limit=\"shared\"}";

// shows: C1 (exact)
#[test]
fn two_nodes_grant_one_limit_once_and_each_says_so() {
    let redis = Redis::start();
    let folder = Folder::new();
    let file = folder.write("policy.yaml", &policy(&redis, "rate: 20/h, store: exact"));
    let nodes = [Serve::start(&file), Serve::start(&file)];
    for node in &nodes {
        until(node, "tidegate_nodes", 2.0);
    }
    let of_first = passed(nodes[0].gateway, 15, "");
    let of_second = passed(nodes[1].gateway, 15, "");
    assert_eq!([of_first, of_second], [15, 5]);
    let (head, _) = get(nodes[0].gateway, "/", "");
    assert_eq!(status(&head), 429);
    assert!(head.contains("ratelimit: \"shared\";r=0"), "{head}");
    assert!(head.contains("retry-after: "), "{head}");
    assert_eq!(nodes[1].metric(AWAY), Ok(0.0));
}

// shows: C5
#[test]
fn without_redis_each_node_grants_its_share_and_nobody_gets_an_error() {
    let mut redis = Redis::start();
    let folder = Folder::new();
    let file = folder.write("policy.yaml", &policy(&redis, "rate: 20/h, store: exact"));
    let nodes = [Serve::start(&file), Serve::start(&file)];
    for node in &nodes {
        until(node, "tidegate_nodes", 2.0);
    }
    assert_eq!(passed(nodes[0].gateway, 4, ""), 4);
    redis.kill();
    // Half of twenty each, whatever has been used before.
    for node in &nodes {
        assert_eq!(passed(node.gateway, 30, ""), 10);
        assert_eq!(node.metric(AWAY), Ok(1.0));
    }
    redis.start_again();
    until(
        &nodes[0],
        &format!("tidegate_redis_up{{server=\"{}\"}}", redis.address),
        1.0,
    );
    // The state was lost with the process.
    assert_eq!(passed(nodes[0].gateway, 30, ""), 20);
    assert_eq!(nodes[0].metric(AWAY), Ok(0.0));
}

#[test]
fn a_node_starts_without_redis_and_finds_it_later() {
    let mut redis = Redis::start();
    redis.kill();
    let folder = Folder::new();
    let limit = "rate: 20/h, store: exact, on_unavailable: closed";
    let file = folder.write("policy.yaml", &policy(&redis, limit));
    let node = Serve::start(&file);
    let (head, _) = get(node.gateway, "/", "");
    assert_eq!(status(&head), 429);
    redis.start_again();
    until(
        &node,
        &format!("tidegate_redis_up{{server=\"{}\"}}", redis.address),
        1.0,
    );
    assert_eq!(passed(node.gateway, 30, ""), 20);
}

// shows: C2
#[test]
fn two_nodes_that_lease_grant_no_more_than_one_limit_and_nearly_all_of_it() {
    let redis = Redis::start();
    let folder = Folder::new();
    let limit = "rate: 400/h, burst: 400, store: leased";
    let file = folder.write("policy.yaml", &policy(&redis, limit));
    let nodes = [Serve::start(&file), Serve::start(&file)];
    for node in &nodes {
        until(node, "tidegate_nodes", 2.0);
    }
    let mut all = 0;
    for _ in 0..10 {
        for node in &nodes {
            all += passed(node.gateway, 30, "");
        }
    }
    // One in nine seconds flows back.
    assert!((370..=410).contains(&all), "{all} of 400");
    let calls = nodes[0].metric("tidegate_redis_calls_total").unwrap();
    assert!(calls < 600.0, "{calls} calls");
}

// shows: C4
#[test]
fn a_place_that_is_held_at_one_node_is_taken_at_the_other() {
    let redis = Redis::start();
    let folder = Folder::new();
    for scheme in ["node_share", "slots", "double_window"] {
        // It takes requests and never answers.
        let stuck = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let limit = format!("concurrency: 1, store: leased, scheme: {scheme}");
        let text = policy(&redis, &limit)
            .replace("shared", &format!("of-{scheme}"))
            .replace(
                "echo: {",
                &format!(
                    "stuck: {{ servers: [\"{}\"] }}, echo: {{",
                    stuck.local_addr().unwrap()
                ),
            )
            .replace(
                "routes: [",
                &format!(
                    "routes: [{{ id: stuck, match: {{ path: /stuck }}, upstream: stuck, \
                     limits: [of-{scheme}] }}, "
                ),
            );
        let file = folder.write(&format!("{scheme}.yaml"), &text);
        let nodes = [Serve::start(&file), Serve::start(&file)];
        for node in &nodes {
            // More than two: those that were killed count for some seconds.
            until_some(node, "tidegate_nodes", |nodes| nodes >= 2.0);
        }
        // One after the other, each gives its place back.
        assert_eq!(passed(nodes[0].gateway, 10, ""), 10, "{scheme}");
        let mut held = std::net::TcpStream::connect(nodes[0].gateway).unwrap();
        std::io::Write::write_all(&mut held, b"GET /stuck HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
        let (_in_flight, _) = stuck.accept().unwrap();
        assert_eq!(passed(nodes[1].gateway, 3, ""), 0, "{scheme}: it is held");
        drop(held);
        let deadline = std::time::Instant::now() + crate::running::DEADLINE;
        while passed(nodes[1].gateway, 1, "") == 0 {
            assert!(
                std::time::Instant::now() < deadline,
                "{scheme}: never given back"
            );
            std::thread::park_timeout(std::time::Duration::from_millis(20));
        }
    }
}

#[test]
fn a_node_that_stops_is_no_longer_one_of_the_nodes() {
    let redis = Redis::start();
    let folder = Folder::new();
    let file = folder.write("policy.yaml", &policy(&redis, "rate: 20/h, store: exact"));
    let [stays, stops] = [Serve::start(&file), Serve::start(&file)];
    until(&stays, "tidegate_nodes", 2.0);
    assert!(stops.stop());
    // At once, and not only when it has not been heard of for a while.
    let mut asked = std::net::TcpStream::connect(redis.address).unwrap();
    asked.write_all(b"ZCARD tg:{nodes}\r\n").unwrap();
    let mut answer = [0; 4];
    asked.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b":1\r\n");
}

// shows: C6, B11 (versions)
#[test]
fn through_a_rolling_change_old_nodes_count_as_the_new_policy_says() {
    let redis = Redis::start();
    let folder = Folder::new();
    let of_version = |version: u32, rate: &str| {
        // A call that a busy machine is late with passes nobody.
        let limit = format!("rate: {rate}, store: exact, on_unavailable: closed");
        format!("version: {version}\n{}", policy(&redis, &limit))
    };
    let file = folder.write("old.yaml", &of_version(1, "20/h"));
    let old = Serve::start(&file);
    while passed(old.gateway, 1, "") == 0 {}
    let first = 1 + passed(old.gateway, 14, "");
    let new = Serve::start(&folder.write("new.yaml", &of_version(2, "40/h")));
    let elsewhere = "tidegate_limit_defined_elsewhere{limit=\"shared\",holds=\"newer\"}";
    until(&old, elsewhere, 1.0);
    // 40 in all, of which some 15 were used.
    let of_old = passed(old.gateway, 10, "");
    assert!(of_old > 5, "more than its own policy has left: {of_old}");
    let all = first + of_old + passed(new.gateway, 60, "");
    // A call that is late may have taken, too.
    assert!(all > 30 && all <= 40, "{all}");
    assert!(new.metric(elsewhere).is_err());
    // The old node gets the new policy, too: nothing changes but whose numbers they are.
    folder.write("old.yaml", &of_version(2, "40/h"));
    let deadline = std::time::Instant::now() + crate::running::DEADLINE;
    while old.metric(elsewhere).is_ok() {
        assert!(std::time::Instant::now() < deadline);
        std::thread::park_timeout(std::time::Duration::from_millis(10));
    }
    assert_eq!(passed(old.gateway, 5, ""), 0);
}

#[test]
fn a_node_that_has_not_found_redis_grants_its_part_among_those_expected() {
    let mut redis = Redis::start();
    redis.kill();
    let folder = Folder::new();
    let text = policy(&redis, "rate: 20/h, store: exact");
    let text = text.replace("redis: { ", "redis: { nodes: 4, ");
    let node = Serve::start(&folder.write("policy.yaml", &text));
    assert_eq!(passed(node.gateway, 20, ""), 5);
    redis.start_again();
    until(&node, "tidegate_nodes", 1.0);
    assert_eq!(passed(node.gateway, 30, ""), 20);
}
