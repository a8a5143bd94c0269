//! What nodes are asked, and what goes wrong meanwhile.

use super::chance::Chance;
use super::faults::{Cut, Faults, Span};

/// A run, but for its seed.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// How many nodes there are.
    pub nodes: usize,
    /// How long it lasts, milliseconds.
    pub end: u64,
    /// From when on what is offered to each node, as a part of the limit's rate. In order.
    pub offered: Vec<(u64, Vec<f64>)>,
    /// Once in so many milliseconds (at random; 0: never) somebody without a lease spends up to the
    /// burst: then what nodes hold and mint is all that there may be.
    pub spends: u64,
    /// What goes wrong.
    pub faults: Faults,
    /// Parts of the run that are measured by themselves.
    pub phases: Vec<(&'static str, Span)>,
}

/// How demand is spread over eight nodes.
const SKEW: [f64; 8] = [0.40, 0.20, 0.12, 0.08, 0.07, 0.05, 0.05, 0.03];

fn rotated(by: usize, total: f64) -> Vec<f64> {
    (0..8)
        .map(|node| SKEW[(node + 8 - by) % 8] * total)
        .collect()
}

/// The phases of [`minute`].
pub const STEADY: &str = "steady skew, 1.6 of the rate";
/// The hot node changes.
pub const HOT_NODE_MOVES: &str = "hot node moves, 1.6";
/// Less is offered than is there.
pub const UNDERLOAD: &str = "underload, 0.8";
/// Twelve times as much all at once.
pub const FLASH_CROWD: &str = "flash crowd, 0.5 to 6";
/// A node dies, and comes back.
pub const CRASH: &str = "crash for 5 s, 1.6";
/// Redis is away, and demand changes while it is.
pub const OUTAGE: &str = "5 s outage, demand moves and grows inside";
/// All is well again.
pub const RECOVERED: &str = "recovered, 1.6";
/// The hot node changes all the time.
pub const FLAPPING: &str = "hot node flaps each 0.5 s, 1.2";
/// Nothing, everything, nothing.
pub const BURSTS: &str = "bursts of 3 and 0.2, each 0.25 s";

/// Eight nodes, a minute, and one thing after the other.
pub fn minute() -> Scenario {
    let mut offered = vec![
        (0, rotated(0, 1.6)),
        (8_000, rotated(5, 1.6)),
        (14_000, rotated(2, 0.8)),
        (20_000, rotated(0, 0.5)),
        (22_000, rotated(0, 6.0)),
        (26_000, rotated(0, 1.6)),
        (28_000, without(2, rotated(0, 1.6))),
        (33_000, rotated(0, 1.6)),
        (40_500, rotated(3, 2.5)),
        (46_000, rotated(3, 1.6)),
    ];
    offered.extend((0..10).map(|i| (50_000 + i * 500, rotated((i as usize % 2) * 4, 1.2))));
    let burst = |i: u64| if i.is_multiple_of(2) { 0.2 } else { 3.0 };
    offered.extend((0..20).map(|i| (55_000 + i * 250, rotated(1, burst(i)))));
    let span = |from: u64, to: u64| Span::new(from * 1000, to * 1000);
    Scenario {
        nodes: 8,
        end: 60_000,
        offered,
        spends: 0,
        faults: Faults {
            crashes: vec![(2, span(28, 33))],
            outages: vec![span(38, 43)],
            ..Faults::default()
        },
        phases: vec![
            (STEADY, span(0, 8)),
            (HOT_NODE_MOVES, span(8, 14)),
            (UNDERLOAD, span(14, 20)),
            (FLASH_CROWD, span(20, 26)),
            (CRASH, span(26, 36)),
            (OUTAGE, span(36, 46)),
            (RECOVERED, span(46, 50)),
            (FLAPPING, span(50, 55)),
            (BURSTS, span(55, 60)),
        ],
    }
}

/// What a dead node would have been asked goes to the others.
fn without(dead: usize, mut offered: Vec<f64>) -> Vec<f64> {
    let part = std::mem::take(&mut offered[dead]) / (offered.len() - 1) as f64;
    let others = offered
        .iter_mut()
        .enumerate()
        .filter(|(node, _)| *node != dead);
    others.for_each(|(_, offered)| *offered += part);
    offered
}

/// Loads and faults at random: outages, nodes cut off one or both ways, nodes that stand still or
/// die, messages that are late or lost. Redis keeps what it knows, and its clock.
pub fn random(seed: u64, nodes: usize, end: u64) -> Scenario {
    let mut chance = Chance::new(seed ^ 0x5eed);
    let mut offered = Vec::new();
    let mut at = 0;
    while at < end {
        let weights: Vec<f64> = (0..nodes).map(|_| chance.unit().powi(3)).collect();
        let sum: f64 = weights.iter().sum();
        let total = [0.0, 0.1, 0.5, 0.9, 1.2, 2.0, 5.0][chance.below(7) as usize];
        offered.push((
            at,
            weights.iter().map(|weight| weight / sum * total).collect(),
        ));
        at += [50, 200, 500, 1_500][chance.below(4) as usize];
    }
    let mut spans = |most: u64, shortest: u64, longest: u64| -> Vec<Span> {
        let count = chance.below(most + 1);
        let one = |_| {
            let from = chance.below(end);
            Span::new(from, from + chance.between(shortest, longest))
        };
        (0..count).map(one).collect()
    };
    let outages = spans(3, 30, 4_000);
    let mut faults = Faults {
        outages,
        ..Faults::default()
    };
    let (mut cuts, mut stalls) = (Vec::new(), Vec::new());
    for node in 0..nodes {
        cuts.extend(spans(2, 30, 4_000).into_iter().map(|span| (node, span)));
        stalls.extend(spans(2, 20, 1_500).into_iter().map(|span| (node, span)));
    }
    let crashes = spans(3, 500, 1_500);
    faults.crashes = crashes
        .into_iter()
        .map(|span| (chance.below(nodes as u64) as usize, span))
        .collect();
    let ways = [Cut::Both, Cut::Requests, Cut::Replies];
    let cut = |(node, span)| (node, span, ways[chance.below(3) as usize]);
    faults.cuts = cuts.into_iter().map(cut).collect();
    faults.stalls = stalls;
    faults.lost_answers = [0, 10, 50][chance.below(3) as usize];
    faults.late = [0, 5, 30][chance.below(3) as usize];
    Scenario {
        nodes,
        end,
        offered,
        spends: [0, 20, 300][chance.below(3) as usize],
        faults,
        phases: Vec::new(),
    }
}
