//! Exact: what fails may stop what passes, and never adds to it.

use std::time::Duration;

use super::super::server::RedisServer;
use super::fleet::{Fault, Fleet, Shared, now};

pub(crate) const EXACT: Shared = Shared {
    kind: "exact",
    rate: 2_000,
    burst: 400,
    offered: 1_000,
};
/// How soon the limit is used again: a probe at least every half second; the stretch over which use
/// is measured, and room for a busy machine.
const SOON: Duration = Duration::from_secs(2);

// shows: C1, C6 (a node dies)
#[test]
fn exact_a_killed_node_is_missed_by_nobody() {
    let redis = RedisServer::start();
    let mut fleet = Fleet::start(EXACT, &redis.url());
    let begin = now();
    fleet.nodes[3].kill();
    let fault = Fault { begin, end: now() };
    fleet.until_used(Duration::from_secs(1));
    fleet.did_not_stampede(&fault);
    fleet.kept_its_limit();
}

// shows: C5
#[test]
fn exact_a_redis_that_stands_still_lets_nothing_pass_beyond_the_limit() {
    let redis = RedisServer::start();
    let fleet = Fleet::start(EXACT, &redis.url());
    let fault = Fault::of(
        Duration::from_secs(1),
        || redis.signal("-STOP"),
        || redis.signal("-CONT"),
    );
    fleet.until_used(SOON);
    fleet.did_not_stampede(&fault);
    fleet.kept_its_limit();
}

// shows: C5
#[test]
fn exact_a_redis_that_dies_with_all_it_held_gives_away_one_burst_at_most() {
    let mut redis = RedisServer::start();
    let fleet = Fleet::start(EXACT, &redis.url());
    redis.kill();
    let killed = now();
    redis.start_again();
    fleet.until_used(SOON);
    fleet.gave_away_one_burst_at_most();
    for (from, to) in [(0, killed), (killed, u64::MAX)] {
        let overshoot = fleet.overshoot(from, to);
        assert!(overshoot <= 0, "{overshoot} too many on one side");
    }
}
