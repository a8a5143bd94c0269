//! Many nodes: most calls look at nobody but the node that makes them.

use tidegate::Quota;
use tidegate_redis::{LeaseTerms, Scheme};
use tidegate_sim::cluster_sim::faults::{Cut, Faults, Span};
use tidegate_sim::cluster_sim::measure::Outcome;
use tidegate_sim::cluster_sim::scenario::{self, Scenario};
use tidegate_sim::cluster_sim::world::run;

const SEEDS: u64 = 12;
/// Milliseconds.
const END: u64 = 5_000;

/// A refresh of 50 ms, and 40 permits of the burst for each of 100 nodes.
fn quota() -> Quota {
    Quota::per_second(20_000).burst(4_000)
}

fn terms(scheme: Scheme) -> LeaseTerms {
    LeaseTerms::new(&quota(), scheme).unwrap()
}

/// 40 to 100 nodes.
fn scenario(seed: u64) -> Scenario {
    scenario::random(seed, 40 + 20 * (seed as usize % 4), END)
}

fn random_run(scheme: Scheme, seed: u64) -> Outcome {
    run(&terms(scheme), &scenario(seed), seed)
}

pub(super) fn strict_is_strict(seed: u64) {
    let figures = random_run(Scheme::Strict, seed).figures(&quota());
    assert_eq!(figures.overshoot, 0, "seed {seed}: {figures}");
}

pub(super) fn optimistic_is_within_its_bound(seed: u64) {
    let outcome = random_run(Scheme::Optimistic, seed);
    let figures = outcome.figures(&quota());
    let minted = outcome.minted;
    assert!(
        figures.overshoot <= minted,
        "seed {seed}: {figures}, minted {minted}"
    );
}

pub(super) fn a_step_back_is_no_time(seed: u64) {
    let mut scenario = scenario(seed);
    scenario.faults.steps = vec![(1_000, -500_000), (2_500, -60_000_000), (3_000, -1)];
    let figures = run(&terms(Scheme::Strict), &scenario, seed).figures(&quota());
    assert_eq!(figures.overshoot, 0, "seed {seed}: {figures}");
}

#[test]
fn strict_leases_of_many_nodes_never_admit_too_much() {
    (0..SEEDS).for_each(strict_is_strict);
}

#[test]
fn optimistic_leases_of_many_nodes_are_within_their_bound() {
    (0..SEEDS / 2).for_each(optimistic_is_within_its_bound);
}

#[test]
fn a_clock_that_is_set_back_under_many_nodes_is_no_time() {
    (0..SEEDS / 4).for_each(a_step_back_is_no_time);
}

/// A third of them are cut off, one after the other, and mint; all are asked for twice as much as
/// may pass.
#[test]
fn what_a_third_of_many_nodes_may_mint_is_kept_back_from_the_others() {
    let ways = [Cut::Both, Cut::Requests, Cut::Replies];
    let cut = |node: usize| {
        let from = 500 + 37 * node as u64;
        (node, Span::new(from, from + 2_000), ways[node % 3])
    };
    let scenario = Scenario {
        nodes: 60,
        end: 4_000,
        offered: vec![(0, vec![2.0 / 60.0; 60])],
        spends: 20,
        faults: Faults {
            cuts: (0..20).map(cut).collect(),
            ..Faults::default()
        },
        phases: Vec::new(),
    };
    for seed in 0..4 {
        let outcome = run(&terms(Scheme::Strict), &scenario, seed);
        let figures = outcome.figures(&quota());
        assert_eq!(figures.overshoot, 0, "seed {seed}: {figures}");
        assert!(outcome.minted > 5_000, "{}", outcome.minted);
    }
}

/// A hundred nodes, one and a half times as much as may pass, and nothing wrong: the rate is used,
/// and each node calls once a refresh.
#[test]
fn many_nodes_use_the_whole_rate() {
    let scenario = Scenario {
        nodes: 100,
        end: 4_000,
        offered: vec![(0, vec![0.015; 100])],
        spends: 0,
        faults: Faults::default(),
        phases: Vec::new(),
    };
    for scheme in [Scheme::Strict, Scheme::Optimistic] {
        let outcome = run(&terms(scheme), &scenario, 1);
        assert_eq!(outcome.figures(&quota()).overshoot, 0, "{scheme:?}");
        let figures = outcome.figures_of(&quota(), Span::new(1_000, 4_000));
        println!("{scheme:?}: {figures}");
        assert!(figures.unused < 1.0, "{scheme:?}: {figures}");
        // Each node once a refresh.
        assert!(figures.calls_per_second < 1.1 * 100.0 / 0.05, "{figures}");
    }
}
