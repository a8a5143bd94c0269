//! Leased limits of simulated clusters.

use tidegate::Quota;
use tidegate_redis::{LeaseTerms, Scheme};
use tidegate_sim::cluster_sim::measure::{Figures, Outcome};
use tidegate_sim::cluster_sim::scenario::{self, Scenario};
use tidegate_sim::cluster_sim::world::run;

/// Small enough for hundreds of runs, large enough for leases of hundreds of permits.
fn quota() -> Quota {
    Quota::per_second(20_000).burst(2_000)
}

fn terms(scheme: Scheme) -> LeaseTerms {
    LeaseTerms::new(&quota(), scheme).unwrap()
}

#[test]
fn a_minute_in_phases() {
    let minute = scenario::minute();
    for scheme in [Scheme::Strict, Scheme::Optimistic] {
        let outcome = run(&terms(scheme), &minute, 1);
        println!(
            "{scheme:?}: {} minted {}",
            outcome.figures(&quota()),
            outcome.minted
        );
        for (name, span) in &minute.phases {
            println!("  {name}: {}", outcome.figures_of(&quota(), *span));
        }
    }
}

#[test]
fn strict_leases_never_admit_too_much() {
    for seed in 0..200 {
        let outcome = run(
            &terms(Scheme::Strict),
            &scenario::random(seed, 5, 8_000),
            seed,
        );
        let figures = outcome.figures(&quota());
        if figures.overshoot > 0 {
            println!("seed {seed}: {figures} minted {}", outcome.minted);
        }
    }
}
