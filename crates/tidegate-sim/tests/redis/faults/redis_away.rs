//! Leased strictly: a Redis that stands still, dies, forgets, is slow or has no memory left.

use std::time::Duration;

use super::super::server::RedisServer;
use super::fleet::{Fault, Fleet, Shared, now, wait_until};
use super::proxy::Proxy;

/// How soon the limit is used again: nodes try at least every half second; and the stretch over
/// which use is measured, and room for a busy machine.
const SOON: Duration = Duration::from_secs(2);
/// When every node lives on its share: a lease is over, and three refreshes have passed.
const MINTING: u64 = 600_000;

/// While Redis is away nodes together go on with the rate.
fn lived_on_shares(fleet: &Fleet, fault: &Fault) {
    let from = fault.begin + MINTING;
    let passed = fleet.passed(from, fault.end);
    let allowed = fleet.shared.rate * (fault.end - from) / 1_000_000;
    assert!(
        passed * 10 >= allowed * 6,
        "{passed} of {allowed} passed while Redis was away"
    );
}

// shows: C5
#[test]
fn a_redis_that_stands_still_costs_nothing_of_the_limit() {
    let redis = RedisServer::start();
    let fleet = Fleet::start(Shared::LEASED, &redis.url());
    let fault = Fault::of(
        Duration::from_millis(1500),
        || redis.signal("-STOP"),
        || redis.signal("-CONT"),
    );
    lived_on_shares(&fleet, &fault);
    fleet.until_used(SOON);
    fleet.did_not_stampede(&fault);
    fleet.kept_its_limit();
}

// shows: C5
#[test]
fn a_redis_that_dies_with_all_it_held_gives_away_one_burst_at_most() {
    let mut redis = RedisServer::start();
    let fleet = Fleet::start(Shared::LEASED, &redis.url());
    let begin = now();
    redis.kill();
    wait_until(begin + 1_200_000);
    let killed = Fault { begin, end: now() };
    lived_on_shares(&fleet, &killed);
    redis.start_again();
    let fault = Fault { begin, end: now() };
    fleet.until_used(SOON);
    fleet.did_not_stampede(&fault);
    forgot_at(&fleet, killed.end);
}

/// Bounds around a time at which Redis lost what it knew: at most the burst is admitted again, and
/// nothing of what is asked before, or a second later.
fn forgot_at(fleet: &Fleet, time: u64) {
    fleet.gave_away_one_burst_at_most();
    for (from, to) in [(0, time), (time + 1_000_000, u64::MAX)] {
        let overshoot = fleet.overshoot(from, to);
        assert!(overshoot <= 0, "{overshoot} too many beside it");
    }
}

// shows: C5
#[test]
fn flushall_gives_away_one_burst_at_most() {
    let redis = RedisServer::start();
    let fleet = Fleet::start(Shared::LEASED, &redis.url());
    let begin = now();
    redis.command(&["FLUSHALL"]);
    let fault = Fault { begin, end: now() };
    fleet.until_used(SOON);
    fleet.did_not_stampede(&fault);
    wait_until(now() + 500_000);
    forgot_at(&fleet, begin);
}

// shows: C5
#[test]
fn script_flush_costs_a_text_of_each_node_and_nothing_of_the_limit() {
    let redis = RedisServer::start();
    let fleet = Fleet::start(Shared::LEASED, &redis.url());
    let begin = now();
    redis.command(&["SCRIPT", "FLUSH", "SYNC"]);
    let fault = Fault { begin, end: now() };
    fleet.did_not_stampede(&fault);
    let passed = fleet.passed(fault.end, fault.end + 1_000_000);
    let least = fleet.shared.rate * 8 / 10;
    assert!(passed >= least, "{passed} in the second after");
    fleet.kept_its_limit();
}

// shows: C5
#[test]
fn a_redis_without_memory_is_one_that_is_away() {
    let redis = RedisServer::start();
    let fleet = Fleet::start(Shared::LEASED, &redis.url());
    let memory = |most: &str| drop(redis.command(&["CONFIG", "SET", "maxmemory", most]));
    let lasts = Duration::from_millis(1500);
    let fault = Fault::of(lasts, || memory("1"), || memory("0"));
    lived_on_shares(&fleet, &fault);
    fleet.until_used(SOON);
    fleet.did_not_stampede(&fault);
    fleet.kept_its_limit();
}

// shows: C5
#[test]
fn a_redis_that_answers_later_than_a_refresh_waits_is_one_that_is_away() {
    let redis = RedisServer::start();
    let proxy = Proxy::start(redis.address);
    let fleet = Fleet::start(Shared::LEASED, &proxy.url());
    let fault = Fault::of(
        Duration::from_millis(1500),
        || proxy.delay_answers(Duration::from_millis(30)),
        || proxy.delay_answers(Duration::ZERO),
    );
    lived_on_shares(&fleet, &fault);
    fleet.until_used(SOON);
    fleet.did_not_stampede(&fault);
    fleet.kept_its_limit();
}

// shows: C5
#[test]
#[ignore = "takes 20 s: `cargo xtask faults`"]
fn a_long_outage_and_a_long_standstill() {
    let redis = RedisServer::start();
    let fleet = Fleet::start(Shared::LEASED, &redis.url());
    let fault = Fault::of(
        Duration::from_secs(5),
        || redis.signal("-STOP"),
        || redis.signal("-CONT"),
    );
    // The right to mint ends after 3 s.
    let closed = fleet.passed(fault.begin + 3_700_000, fault.end);
    assert!(
        closed == 0,
        "{closed} passed after the right to mint had ended"
    );
    fleet.until_used(SOON);
    fleet.did_not_stampede(&fault);
    let still = &fleet.nodes[3];
    let fault = Fault::of(
        Duration::from_secs(10),
        || still.signal("-STOP"),
        || still.signal("-CONT"),
    );
    fleet.until_used(SOON);
    fleet.did_not_stampede(&fault);
    fleet.kept_its_limit();
}

/// What was under way when it stopped is answered when it goes on: as of then such a call tells
/// that nothing has been minted yet, and what was must not be taken for a debt.
// shows: C5
#[test]
fn calls_that_a_redis_answers_after_it_stood_still_put_nobody_in_debt() {
    let redis = RedisServer::start();
    let shared = Shared {
        burst: Shared::LEASED.rate / 2,
        ..Shared::LEASED
    };
    let fleet = Fleet::start(shared, &redis.url());
    let fault = Fault::of(
        Duration::from_millis(2500),
        || redis.signal("-STOP"),
        || redis.signal("-CONT"),
    );
    let (from, to) = (fault.end, fault.end + 1_500_000);
    wait_until(to + 100_000);
    let (passed, allowed) = (fleet.passed(from, to), shared.rate * 3 / 2);
    println!("{passed} of {allowed} passed in the time after");
    assert!(passed * 100 >= allowed * 75, "{passed} of {allowed}");
    fleet.kept_its_limit();
}
