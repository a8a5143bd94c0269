//! 50 places of four processes, one of which dies holding 20.

use std::time::Duration;

use super::super::server::RedisServer;
use super::fleet::{Node, now, wait_until};

const PLACES: i64 = 50;
/// Leases and windows are this short, so that the test is.
const LEASE: Duration = Duration::from_millis(1500);
/// With more of the places than this they count as used.
const NEARLY_ALL: i64 = 45;
const START: Duration = Duration::from_secs(20);
/// For a busy machine, and for others to notice what is free.
const ROOM: Duration = Duration::from_millis(1500);

/// 20 short holders and `long` long ones.
fn node(redis: &RedisServer, scheme: &str, short: u64, long: u64) -> Node {
    let numbers = [PLACES as u64, LEASE.as_millis() as u64, short, 200, long];
    let numbers = numbers.iter().map(ToString::to_string);
    let args: Vec<_> = std::iter::once(scheme.to_owned()).chain(numbers).collect();
    Node::start(["single", &redis.url()], &args)
}

/// How many are in flight after each change, by time. Those of the node that died left with it.
fn in_flight(nodes: &[&Node], dead: Option<(&Node, u64)>) -> Vec<(u64, i64)> {
    let live = nodes.iter().map(|node| node.record().places);
    let mut changes: Vec<_> = live.flatten().collect();
    if let Some((dead, died)) = dead {
        let held = dead.record().places;
        let left = held.iter().map(|(_, change)| change).sum::<i64>();
        changes.extend(held);
        changes.push((died, -left));
    }
    // Who leaves and who comes in the same microsecond: first the one who leaves.
    changes.sort_unstable();
    let mut inside = 0;
    let sum = |(at, change): &(u64, i64)| {
        inside += change;
        (*at, inside)
    };
    changes.iter().map(sum).collect()
}

fn until(what: &str, within: Duration, holds: impl Fn() -> bool) {
    let deadline = now() + within.as_micros() as u64;
    while !holds() {
        assert!(now() < deadline, "not within {within:?}: {what}");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

fn one_dies_holding_twenty(scheme: &str, free_within: Duration) {
    let redis = RedisServer::start();
    let mut dying = node(&redis, scheme, 0, 20);
    until("it holds 20", START, || dying.record().places.len() == 20);
    let long = node(&redis, scheme, 0, 1);
    until("one is held for long", START, || {
        long.record().long.len() == 1
    });
    let short = [(); 3].map(|()| node(&redis, scheme, 20, 0));
    let live = [&long, &short[0], &short[1], &short[2]];
    let most_of = |flight: &[(u64, i64)], from: u64| {
        let since = flight.iter().filter(|(at, _)| *at >= from);
        since.map(|(_, inside)| *inside).max().unwrap_or(0)
    };
    until("nearly all places are used", START, || {
        most_of(&in_flight(&live, None), 0) >= NEARLY_ALL - 20
    });
    wait_until(now() + LEASE.as_micros() as u64 / 2);

    let died = now();
    dying.kill();
    let dead = Some((&dying, died));
    until("its places are used by others", free_within + ROOM, || {
        most_of(&in_flight(&live, dead), died + 1) >= NEARLY_ALL
    });
    let after = Duration::from_micros(now() - died);
    println!("{scheme}: 20 places were used again {after:?} after their node had died");
    // Nothing is left behind by many short ones.
    wait_until(now() + 500_000);
    let half_a_second_ago = now() - 500_000;
    let flight = in_flight(&live, dead);
    let now_used = most_of(&flight, half_a_second_ago);
    assert!(now_used >= NEARLY_ALL, "only {now_used} are used");
    let most = most_of(&flight, 0);
    assert!(most <= PLACES, "{most} in flight");
    assert_eq!(long.record().long.len(), 1, "it had its place throughout");
    for node in live {
        assert!(node.record().lost.is_empty(), "nobody lost a place");
    }
}

// shows: C4 (places of a node that dies)
#[test]
fn node_share_places_of_a_killed_node_come_back_within_the_ttl() {
    one_dies_holding_twenty("node_share", LEASE);
}

// shows: C4 (places of a node that dies)
#[test]
fn slots_places_of_a_killed_node_come_back_within_the_ttl() {
    one_dies_holding_twenty("slots", LEASE);
}

// shows: C4 (places of a node that dies)
#[test]
fn double_window_places_of_a_killed_node_come_back_within_two_windows() {
    one_dies_holding_twenty("double_window", 2 * LEASE);
}

// shows: C4, C5
#[test]
fn a_redis_that_stands_still_for_less_than_a_lease_costs_nobody_a_place() {
    let redis = RedisServer::start();
    let nodes = [(); 3].map(|()| node(&redis, "node_share", 20, 5));
    let live: Vec<&Node> = nodes.iter().collect();
    until("nearly all places are used", START, || {
        let flight = in_flight(&live, None);
        flight.iter().any(|(_, inside)| *inside >= NEARLY_ALL)
    });
    redis.signal("-STOP");
    wait_until(now() + 500_000);
    redis.signal("-CONT");
    let resumed = now();
    until("they are used after it", ROOM, || {
        let flight = in_flight(&live, None);
        flight
            .iter()
            .any(|(at, inside)| *at > resumed + 500_000 && *inside >= NEARLY_ALL)
    });
    let most = in_flight(&live, None)
        .iter()
        .map(|(_, inside)| *inside)
        .max();
    assert!(most <= Some(PLACES), "{most:?} in flight");
    for node in live {
        assert!(node.record().lost.is_empty(), "nobody lost a place");
    }
}
