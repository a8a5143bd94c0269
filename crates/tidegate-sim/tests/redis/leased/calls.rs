//! Random calls of the leased script: as nodes make them, and as no sane node would.

use tidegate::Quota;
use tidegate_redis::{LeaseRequest, LeaseTerms, NodeId, Scheme, ScriptCall, SpendRequest};
use tidegate_sim::cluster_sim::chance::Chance;

/// 2026-09-21, in microseconds.
const START: u64 = 1_790_000_000_000_000;

/// One call and when, or the loss of everything.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) now: u64,
    pub(crate) call: ScriptCall,
}

/// Quotas whose scales are of all kinds.
pub(crate) fn terms(chance: &mut Chance) -> LeaseTerms {
    let quotas = [
        Quota::per_second(100_000).burst(10_000),
        Quota::per_second(99_991).burst(5_000),
        Quota::per_second(1_000),
        Quota::per_hour(36_000).burst(100),
        Quota::per_day(999_983),
    ];
    let scheme = [Scheme::Strict, Scheme::Optimistic][chance.below(2) as usize];
    LeaseTerms::new(&quotas[chance.below(5) as usize], scheme).unwrap()
}

/// A sequence of calls of one key: sequence numbers that go back, claims that are not true, clocks
/// that are set back, silence of all lengths.
pub(crate) fn sequence(seed: u64, steps: usize) -> Vec<Step> {
    let mut chance = Chance::new(seed);
    let terms = terms(&mut chance);
    let key = format!("key-{seed}");
    let refresh = terms.refresh().as_micros() as u64;
    let mut now = START + chance.below(1_000_000_000);
    let mut seqs = [0_u64; 6];
    let mut acks = [0_u64; 6];
    let mut made = Vec::new();
    // Every fourth: after a while all fall silent, and then all but one come back for good.
    let is_steady = seed % 4 == 3;
    // And every eighth: nobody leases.
    let is_spent = seed % 8 == 6;
    for step in 0..steps {
        let most = [
            refresh / 10,
            refresh,
            4 * refresh,
            20 * refresh,
            4_000_000,
            40_000_000,
        ];
        let weighed = [0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 5][chance.below(11) as usize];
        now += chance.below(most[weighed] + 1);
        if is_steady && step > steps / 4 {
            now = made.last().map_or(START, |step: &Step| step.now) + refresh * 5 / 8;
        } else if is_steady && step == steps / 4 {
            now += 5 * refresh;
        } else if chance.below(60) == 0 {
            now -= chance.below(2 * refresh);
        }
        let call = if is_spent || chance.below(6) == 0 {
            spend(&mut chance, &terms).call(key.as_bytes(), &terms)
        } else {
            let present = if is_steady && step > steps / 4 { 5 } else { 6 };
            let who = chance.below(present) as usize;
            let request = lease(&mut chance, &terms, who, &mut seqs[who], &mut acks[who]);
            request.call(key.as_bytes(), &terms)
        };
        made.push(Step { now, call });
        if chance.below(20) == 0 {
            let again = made[made.len() - 1].call.clone();
            made.push(Step { now, call: again });
        }
    }
    made
}

/// The same with many nodes, which call so often that most calls see only their own; now and then
/// all fall silent.
pub(crate) fn crowd(seed: u64, nodes: usize, steps: usize) -> Vec<Step> {
    let mut chance = Chance::new(seed ^ 0xc0de);
    let terms = terms(&mut chance);
    let key = format!("crowd-{seed}");
    let refresh = terms.refresh().as_micros() as u64;
    let mut now = START + chance.below(1_000_000_000);
    let (mut seqs, mut acks) = (vec![0; nodes], vec![0; nodes]);
    let mut made = Vec::new();
    for _ in 0..steps {
        now += match chance.below(200) {
            0 => chance.below(40_000_000),
            1..4 => chance.below(20 * refresh),
            _ => chance.below(4 * refresh / nodes as u64),
        };
        if chance.below(200) == 0 {
            now -= chance.below(2 * refresh);
        }
        let call = if chance.below(20) == 0 {
            spend(&mut chance, &terms).call(key.as_bytes(), &terms)
        } else {
            let who = chance.below(nodes as u64) as usize;
            let request = lease(&mut chance, &terms, who, &mut seqs[who], &mut acks[who]);
            request.call(key.as_bytes(), &terms)
        };
        made.push(Step { now, call });
    }
    made
}

fn spend(chance: &mut Chance, terms: &LeaseTerms) -> SpendRequest {
    SpendRequest {
        want: chance.below(terms.burst() / 4),
        unit: 1 + chance.below(3),
        returned: chance.rarely(4, terms.burst() / 8),
    }
}

fn lease(
    chance: &mut Chance,
    terms: &LeaseTerms,
    who: usize,
    seq: &mut u64,
    ack: &mut u64,
) -> LeaseRequest {
    if chance.below(3) > 0 {
        *ack = *seq;
    }
    *seq = if chance.below(15) == 0 {
        seq.saturating_sub(chance.below(3))
    } else {
        *seq + 1
    };
    let second = (1_000_000_000 * terms.rate().permits() / terms.rate().nanos()).max(1);
    LeaseRequest {
        node: NodeId(who as u64),
        seq: *seq,
        ack: *ack,
        demand: chance.below(3 * second + 1),
        held: chance.below(terms.burst() / 4),
        returned: chance.rarely(3, terms.burst() / 4),
        want: chance.below(terms.burst()),
        minted: chance.rarely(3, terms.burst() / 8),
        share: chance.below(300_000),
        leaves: chance.below(25) == 0,
        window: 0,
        taken: 0,
    }
}
