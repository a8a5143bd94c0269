//! Leased strictly: a primary that dies and is replaced, and a key that moves to another server.

use std::time::Duration;

use super::super::cluster::Cluster;
use super::super::sentinels::Sentinels;
use super::super::server::RedisServer;
use super::fleet::{Fault, Fleet, Shared, now, wait_until};

/// How soon the limit is used again once there is a primary: nodes ask Sentinels at least every
/// half second; and room for a busy machine.
const SOON: Duration = Duration::from_secs(3);
/// How long a failover may take: half a second of silence, an election, and room.
const FAILOVER: Duration = Duration::from_secs(20);

/// Kills the primary under load, and says when there was another.
fn fail_over(sentinels: &mut Sentinels, fleet: &Fleet) -> Fault {
    let (begin, old) = (now(), sentinels.primary());
    sentinels.servers[0].kill();
    fleet.until("there is another primary", FAILOVER, || {
        sentinels.primary() != old
    });
    Fault { begin, end: now() }
}

fn start(shared: Shared, sentinels: &Sentinels) -> Fleet {
    let urls = format!("limits,{}", sentinels.urls().join(","));
    Fleet::start_each(shared, &[["sentinel", &urls]; 4])
}

// shows: C5, C6 (failover)
#[test]
fn a_failover_gives_away_what_was_not_replicated_and_one_burst_at_most() {
    let mut sentinels = Sentinels::start();
    let fleet = start(Shared::LEASED, &sentinels);
    let fault = fail_over(&mut sentinels, &fleet);
    fleet.until_used(SOON);
    fleet.did_not_stampede(&fault);
    fleet.gave_away_one_burst_at_most();
    let before = fleet.overshoot(0, fault.begin);
    assert!(before <= 0, "{before} too many before it");
}

// shows: C5
#[test]
fn exact_a_failover_gives_away_what_was_not_replicated_and_one_burst_at_most() {
    let mut sentinels = Sentinels::start();
    let fleet = start(super::exact::EXACT, &sentinels);
    fail_over(&mut sentinels, &fleet);
    fleet.until_used(SOON);
    fleet.gave_away_one_burst_at_most();
}

// shows: C5
#[test]
fn a_key_that_moves_to_another_server_of_a_cluster_takes_its_limit_along() {
    let cluster = Cluster::start();
    let urls: Vec<_> = cluster.servers[..3].iter().map(RedisServer::url).collect();
    let urls = urls.join(",");
    let fleet = Fleet::start_each(Shared::LEASED, &[["cluster", &urls]; 4]);
    let keys = cluster.servers[..3]
        .iter()
        .map(|server| server.command(&["KEYS", "tgb*"]));
    let (from, key) = keys.enumerate().find(|(_, key)| !key.is_empty()).unwrap();
    let slot = cluster.servers[from].command(&["CLUSTER", "KEYSLOT", &key]);
    let (slot, to) = (slot.parse().unwrap(), (from + 1) % 3);
    let begin = now();
    cluster.begin_to_move(slot, from, to);
    cluster.move_key(&key, from, to);
    // Its slot is the old server's still, which sends everybody on.
    wait_until(now() + 500_000);
    cluster.end_move(slot, to);
    let fault = Fault { begin, end: now() };
    fleet.until_used(SOON);
    fleet.did_not_stampede(&fault);
    let passed = fleet.passed(fault.begin, fault.end);
    let allowed = fleet.shared.rate * (fault.end - fault.begin) / 1_000_000;
    assert!(
        passed * 10 >= allowed * 6,
        "{passed} of {allowed} passed meanwhile"
    );
    fleet.kept_its_limit();
}
