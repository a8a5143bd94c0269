//! Several processes that share limits through one Redis.

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
    let deadline = std::time::Instant::now() + crate::running::DEADLINE;
    while serve.metric(name) != Ok(wanted) {
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
