//! What a node and the script tell each other.

use std::fmt;

use super::terms::{LeaseTerms, Scheme};
use super::window;
use crate::{Script, ScriptCall, Unavailable};

/// The script of leased limits.
pub static LEASE: Script = Script {
    name: "lease",
    text: include_str!("lease.lua"),
};

/// Demand that is told to the script, permits per second: so much that its products stay exact.
pub(super) const MOST_DEMAND: u64 = 1 << 32;
/// What Redis answers to a call that another of the same node has overtaken.
const OVERTAKEN: i64 = -1;

/// One life of one key on one node. What a node had before it forgot a key, or before it started
/// again, is not its own any more, so each life needs a number that no other has: chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u64);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{:016x}", self.0)
    }
}

/// A node's refresh: what it has, what it wants. All counts are permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseRequest {
    /// Who.
    pub node: NodeId,
    /// Counts this node's calls, from 1.
    pub seq: u64,
    /// The last call whose answer it got; 0 for none.
    pub ack: u64,
    /// What it is asked for, permits per second.
    pub demand: u64,
    /// What it has left. From here on it has no more than that.
    pub held: u64,
    /// What it gives back, and has no more.
    pub returned: u64,
    /// What it would like on top of `held`.
    pub want: u64,
    /// What it minted since it sent call `ack`, and what else it owes.
    pub minted: u64,
    /// The share of the rate that it counts on while Redis is away, in millionths.
    pub share: u64,
    /// Whether this is its last call: it keeps nothing and mints no more.
    pub leaves: bool,
    /// Of fixed windows: the one that `held` is of, by the name that Redis gave it; 0 for none.
    pub window: u64,
    /// What it has had of that window: spent, or in `held`. From here on it has no more than that.
    pub taken: u64,
}

impl LeaseRequest {
    /// As a call of the script.
    pub fn call(&self, key: &[u8], terms: &LeaseTerms) -> ScriptCall {
        if let Some(length) = terms.window_micros {
            return window::call(self, key, terms, length);
        }
        let numbers = [
            self.seq,
            self.ack,
            self.demand.min(MOST_DEMAND),
            self.held,
            self.returned,
            self.want,
            self.minted,
            self.share,
            u64::from(self.leaves),
            1,
        ];
        call(key, &self.node.to_string(), numbers, terms)
    }
}

/// What the script answers to a [`LeaseRequest`]. All counts are permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseReply {
    /// What the node has on top of what it held.
    pub granted: u64,
    /// How much of what it held still counts: all of it, unless its lease had ended before the
    /// call arrived, or Redis has lost what it knew.
    pub kept: u64,
    /// The share of the rate that it may mint while Redis is away, in millionths.
    pub share: u64,
    /// How many nodes are being asked for permits.
    pub nodes: u64,
    /// What is left in the bucket.
    pub remaining: u64,
    /// The node's call that Redis had seen before this one. Smaller than one that Redis has
    /// answered: it has lost writes.
    pub before: u64,
    /// Of fixed windows: which one all this is of. The node has nothing of any other.
    pub window: u64,
    /// What the node has had of that window: spent, returned excepted, or has now.
    pub taken: u64,
    /// When that window ends, microseconds from the time that Redis has.
    pub ends_micros: u64,
}

impl LeaseReply {
    /// From the answer of the script that these terms are leased with.
    ///
    /// # Errors
    /// [`Unavailable::BadAnswer`] where it is none, or says that a later call was there before.
    pub fn of(terms: &LeaseTerms, answer: &[i64]) -> Result<Self, Unavailable> {
        match terms.window_micros {
            Some(_) => window::reply(answer),
            None => Self::from_answer(answer),
        }
    }

    /// From the answer of the script of buckets.
    ///
    /// # Errors
    /// [`Unavailable::BadAnswer`] where it is none, or says that a later call was there before.
    pub fn from_answer(answer: &[i64]) -> Result<Self, Unavailable> {
        let [granted, kept, share, nodes, remaining, before, _] = numbers(answer)?;
        Ok(Self {
            granted,
            kept,
            share,
            nodes,
            remaining,
            before,
            window: 0,
            taken: 0,
            ends_micros: 0,
        })
    }
}

/// A request that spends at once on the same bucket, and takes no lease. Counts are permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpendRequest {
    /// What is spent, if it is there: so many whole units of it as there are.
    pub want: u64,
    /// What one request costs; above 0.
    pub unit: u64,
    /// What is given back.
    pub returned: u64,
}

impl SpendRequest {
    /// As a call of the script.
    pub fn call(&self, key: &[u8], terms: &LeaseTerms) -> ScriptCall {
        let returned = self.returned.min(terms.burst);
        let numbers = [0, 0, 0, 0, returned, self.want, 0, 0, 0, self.unit.max(1)];
        call(key, "-", numbers, terms)
    }
}

/// What the script answers to a [`SpendRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpendReply {
    /// Permits that were spent.
    pub granted: u64,
    /// How many nodes lease from the same bucket.
    pub nodes: u64,
    /// Permits left in it.
    pub remaining: u64,
    /// Microseconds until there is one unit more, if no one else takes it; 0 if all was granted.
    pub retry_micros: u64,
}

impl SpendReply {
    /// From the script's answer.
    ///
    /// # Errors
    /// [`Unavailable::BadAnswer`] where it is none.
    pub fn from_answer(answer: &[i64]) -> Result<Self, Unavailable> {
        let [granted, _, _, nodes, remaining, _, retry_micros] = numbers(answer)?;
        Ok(Self {
            granted,
            nodes,
            remaining,
            retry_micros,
        })
    }
}

pub(super) fn numbers(answer: &[i64]) -> Result<[u64; 7], Unavailable> {
    if answer.first() == Some(&OVERTAKEN) {
        let text = "a later refresh of this node came before this one".to_owned();
        return Err(Unavailable::BadAnswer(text));
    }
    let bad = || Unavailable::BadAnswer(format!("{answer:?} to a lease"));
    let numbers: Option<Vec<u64>> = answer.iter().map(|&n| u64::try_from(n).ok()).collect();
    numbers
        .and_then(|numbers| numbers.try_into().ok())
        .ok_or_else(bad)
}

fn call(key: &[u8], node: &str, numbers: [u64; 10], terms: &LeaseTerms) -> ScriptCall {
    let scale = [
        terms.num,
        terms.den,
        terms.burst * terms.den,
        terms.tick_micros,
        terms.refresh,
        terms.lease_ticks(),
        terms.silence_ticks(),
        terms.membership_ticks(),
        terms.grace_ticks(),
    ];
    let scheme = match terms.scheme {
        Scheme::Strict => "strict",
        Scheme::Optimistic => "optimistic",
    };
    let mut args = vec![node.as_bytes().to_vec()];
    args.extend(
        numbers
            .iter()
            .chain(&scale)
            .map(|n| n.to_string().into_bytes()),
    );
    args.push(scheme.as_bytes().to_vec());
    ScriptCall {
        script: &LEASE,
        keys: vec![key.to_vec()],
        args,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate::Quota;

    #[test]
    fn a_call_says_everything_in_the_order_of_the_script() {
        let quota = Quota::per_second(100_000).burst(10_000);
        let terms = LeaseTerms::new(&quota, Scheme::Strict).unwrap();
        let request = LeaseRequest {
            node: NodeId(255),
            seq: 2,
            ack: 1,
            demand: u64::MAX,
            held: 5,
            returned: 6,
            want: 7,
            minted: 8,
            share: 9,
            leaves: true,
            window: 0,
            taken: 0,
        };
        let call = request.call(b"k", &terms);
        let text: Vec<_> = call
            .args
            .iter()
            .map(|a| String::from_utf8_lossy(a))
            .collect();
        let scale = "1 10 100000 1 25000 250000 75000 3000000 1000000 strict";
        let said = format!("n00000000000000ff 2 1 4294967296 5 6 7 8 9 1 1 {scale}");
        assert_eq!(text.join(" "), said);
        assert_eq!(
            (call.keys, call.script.name),
            (vec![b"k".to_vec()], "lease")
        );
    }

    #[test]
    fn answers_that_are_none_are_refused() {
        assert!(LeaseReply::from_answer(&[1, 2, 3, 4, 5, 6, 7]).is_ok());
        for bad in [
            &[][..],
            &[1, 2],
            &[-1, 0, 0, 0, 0, 9, 0],
            &[1, 2, 3, 4, 5, -6, 7],
        ] {
            assert!(LeaseReply::from_answer(bad).is_err());
        }
    }
}
