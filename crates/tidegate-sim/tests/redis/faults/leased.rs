//! Leased strictly: nodes that die, stand still or are cut off.

use std::time::Duration;

use super::super::server::RedisServer;
use super::fleet::{Fault, Fleet, Shared, now};
use super::proxy::Proxy;

/// A node that is not heard of keeps its share of the rate so long under `strict`.
const MEMBERSHIP: Duration = Duration::from_secs(3);
/// Room for a busy machine, and for the stretch over which use is measured.
const ROOM: Duration = Duration::from_secs(2);

// shows: C2, C6 (a node dies)
#[test]
fn a_killed_node_takes_its_lease_with_it_and_its_share_is_used_in_three_seconds() {
    let redis = RedisServer::start();
    let mut fleet = Fleet::start(Shared::LEASED, &redis.url());
    let begin = now();
    fleet.nodes[3].kill();
    let died = now();
    // Meanwhile the others have their own shares.
    fleet.until_used(MEMBERSHIP + ROOM);
    let used = now();
    let share = Shared::LEASED.rate / 4;
    let seconds = (used - died) as f64 / 1e6;
    let passed = fleet.passed(died, used) as f64;
    let least = (Shared::LEASED.rate - share) as f64 * seconds * 0.85 - share as f64 * 0.2;
    assert!(passed >= least, "{passed} in {seconds} s, not {least}");
    fleet.start_one_more(&redis.url());
    fleet.did_not_stampede(&Fault { begin, end: used });
    fleet.until_used(ROOM);
    fleet.kept_its_limit();
}

// shows: C2
#[test]
fn a_node_that_stands_still_for_two_seconds_spends_nothing_old() {
    let redis = RedisServer::start();
    let fleet = Fleet::start(Shared::LEASED, &redis.url());
    let still = &fleet.nodes[3];
    let fault = Fault::of(
        Duration::from_secs(2),
        || still.signal("-STOP"),
        || still.signal("-CONT"),
    );
    fleet.until_used(ROOM);
    fleet.did_not_stampede(&fault);
    fleet.kept_its_limit();
}

// shows: C2
#[test]
fn a_node_whose_calls_do_not_arrive_lives_on_its_share_and_on_nothing_else() {
    cut_off_one_node(Proxy::cut_to_redis);
}

// shows: C2
#[test]
fn a_node_whose_answers_do_not_arrive_lives_on_its_share_and_on_nothing_else() {
    cut_off_one_node(Proxy::cut_to_node);
}

fn cut_off_one_node(cut: impl Fn(&Proxy, bool)) {
    let redis = RedisServer::start();
    let proxy = Proxy::start(redis.address);
    let (url, through) = (redis.url(), proxy.url());
    let mut ways = [["single", url.as_str()]; 4];
    ways[3][1] = &through;
    let fleet = Fleet::start_each(Shared::LEASED, &ways);
    let lasts = Duration::from_millis(1500);
    let fault = Fault::of(lasts, || cut(&proxy, true), || cut(&proxy, false));
    // It mints meanwhile: after the lease of half a second at the latest.
    let own = fleet.nodes[3].record().passed;
    let late = (fault.begin + 600_000)..fault.end;
    let own = own.iter().filter(|(_, at)| late.contains(at)).count() as u64;
    let share = Shared::LEASED.rate / 4;
    assert!(
        own > share / 2,
        "{own} in 0.9 s by the one that was cut off"
    );
    assert!(
        own < share * 5 / 4,
        "{own} in 0.9 s by the one that was cut off"
    );
    fleet.until_used(ROOM);
    fleet.did_not_stampede(&fault);
    fleet.kept_its_limit();
}
