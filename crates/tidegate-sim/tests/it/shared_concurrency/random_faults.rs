//! Random faults, many seeds. S: never more in flight than the limit. R: after a kill everything
//! is free again in the stated time. K: who stays for long keeps its place.

use std::time::Duration;

use tidegate_redis::concurrency::Scheme;

use super::world::{Faults, MS, World};

const SEEDS: u64 = 200;
/// `lease` of the world: ttl or window.
const LEASE: u64 = 900 * MS;

const FAULTS: Faults = Faults {
    messages: 3,
    every: 400 * MS,
    rollbacks: false,
};

fn recovery(scheme: Scheme) -> u64 {
    match scheme {
        Scheme::DoubleWindow => 2 * LEASE,
        _ => LEASE,
    }
}

fn never_above_the_limit(scheme: Scheme) {
    let (mut granted, mut lost, mut most) = (0, 0, 0);
    for seed in 0..SEEDS {
        let limit = [1, 2, 5, 12, 40][seed as usize % 5];
        let nodes = 2 + seed as usize % 4;
        let mut world = World::new(scheme, limit, nodes, FAULTS, seed);
        if limit > 1 {
            // K: the first request stays for ever.
            world.ask(0, 1, u64::MAX);
        }
        world.run(12_000 * MS, |world| {
            let in_flight = world.in_flight();
            assert!(
                in_flight <= limit,
                "seed {seed}: {in_flight} of {limit}; {world:?}"
            );
            most = most.max(in_flight);
        });
        world.all_places_are_free_after(recovery(scheme));
        granted += world.granted;
        lost += world.lost;
    }
    // The schedules do what they are for.
    assert!(
        granted > 25_000 && lost > 200 && most > 30,
        "{granted} {lost} {most}"
    );
}

#[test]
fn node_shares_never_admit_more_than_the_limit() {
    never_above_the_limit(Scheme::NodeShare);
}

#[test]
fn slots_never_admit_more_than_the_limit() {
    never_above_the_limit(Scheme::Slots);
}

#[test]
fn double_windows_never_admit_more_than_the_limit() {
    never_above_the_limit(Scheme::DoubleWindow);
}

/// A loss of data in Redis lets others in for a lease at the most; with two counts, also for as
/// long as those who are too many stay.
fn a_rollback_heals(scheme: Scheme) {
    let faults = Faults {
        rollbacks: true,
        every: 1_500 * MS,
        ..FAULTS
    };
    let mut above = 0;
    for seed in 0..60 {
        let limit = [2, 5, 12, 40][seed as usize % 4];
        let mut world = World::new(scheme, limit, 4, faults, seed);
        let heals = recovery(scheme) + world.load.1;
        world.run(12_000 * MS, |world| {
            let in_flight = world.in_flight();
            let rolled_back = world
                .rolled_back_at
                .is_some_and(|at| world.now < at + heals);
            above += u64::from(in_flight > limit);
            assert!(
                rolled_back || in_flight <= limit,
                "seed {seed}: {in_flight}; {world:?}"
            );
        });
        world.all_places_are_free_after(recovery(scheme));
    }
    assert!(above > 0, "no schedule in which the loss shows");
}

#[test]
fn node_shares_heal_after_a_rollback() {
    a_rollback_heals(Scheme::NodeShare);
}

#[test]
fn slots_heal_after_a_rollback() {
    a_rollback_heals(Scheme::Slots);
}

#[test]
fn double_windows_heal_after_a_rollback() {
    a_rollback_heals(Scheme::DoubleWindow);
}

/// Case 27 in simulated time: 50 places, 4 nodes, one killed while it holds 20, and a request that
/// stays for 3 hours.
#[test]
fn a_killed_node_s_places_come_back_and_a_request_of_3_hours_keeps_its_own() {
    let quiet = Faults {
        messages: 0,
        every: 0,
        rollbacks: false,
    };
    for scheme in [Scheme::NodeShare, Scheme::Slots, Scheme::DoubleWindow] {
        let mut world = World::new(scheme, 50, 4, quiet, 7);
        world.load = (Duration::from_hours(10_000).as_nanos() as u64, 1);
        world.run(500 * MS, |_| ());
        world.ask(0, 1, u64::MAX);
        world.ask(3, 20, 1_000_000 * MS);
        // What the node has at hand for more such requests goes as none come.
        world.run(5_000 * MS, |world| assert!(world.in_flight() <= 50));
        world.ask(1, 29, 60_000 * MS);
        world.run(6_000 * MS, |world| assert!(world.in_flight() <= 50));
        world.ask(2, 1, 60_000 * MS);
        world.run(7_000 * MS, |world| assert!(world.in_flight() <= 50));
        assert_eq!((world.in_flight(), world.denied), (50, 1), "{scheme:?}");
        world.kill(3);
        world.run(7_000 * MS + recovery(scheme), |_| ());
        world.ask(2, 20, 1_000 * MS);
        world.run(7_050 * MS + recovery(scheme), |world| {
            assert!(world.in_flight() <= 50);
        });
        assert_eq!((world.in_flight(), world.denied), (50, 1), "{scheme:?}");
        let hours = Duration::from_hours(3).as_nanos() as u64;
        world.run(hours, |world| assert!(world.in_flight() <= 50));
        assert_eq!(world.in_flight(), 1, "{scheme:?}");
        assert_eq!(world.lost, 0, "{scheme:?}");
        world.ask(2, 49, 1_000 * MS);
        world.ask(2, 49, 1_000 * MS);
        world.run(hours + 50 * MS, |world| assert!(world.in_flight() <= 50));
        assert_eq!(world.in_flight(), 50, "{scheme:?}");
    }
}
