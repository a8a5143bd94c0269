//! Whether a node should lease a key or ask Redis each time (mode `auto`).
//!
//! Both work on the same bucket, so each node may choose for itself and change its mind.

use tidegate::Timestamp;

use super::terms::LeaseTerms;

/// From so many permits per refresh on, asking each time makes more calls than leasing; ...
const WORTH_LEASING: u64 = 8;
/// ... for so many refreshes, so that one burst does not count.
const PROMOTED_AFTER: u64 = 2;
/// Below one permit per refresh a lease is refreshed in vain, ...
const WORTH_KEEPING: u64 = 1;
/// ... and after so many of those it is given up.
const DEMOTED_AFTER: u64 = 10;
const SECOND: u128 = 1_000_000_000;

/// How a node asks for permits of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LeaseMode {
    /// Each request asks Redis ([`SpendRequest`](super::SpendRequest)).
    #[default]
    Exact,
    /// The node leases ([`LeaseNode`](super::LeaseNode)).
    Leased,
}

/// Chooses between the two by what a key is asked for: a state machine with time as an argument.
#[derive(Clone, Copy, Debug)]
pub struct AutoLease {
    terms: LeaseTerms,
    mode: LeaseMode,
    /// Since when the other mode would have been the better one.
    since: Option<Timestamp>,
}

impl AutoLease {
    /// It begins by asking each time.
    pub const fn new(terms: LeaseTerms) -> Self {
        Self {
            terms,
            mode: LeaseMode::Exact,
            since: None,
        }
    }

    /// What it has come to.
    pub const fn mode(&self) -> LeaseMode {
        self.mode
    }

    /// Notes the demand on this node, in permits per second, and how many nodes there are, which
    /// should be about once a refresh; returns the mode from here on.
    ///
    /// More nodes than the burst is enough for ([`LeaseTerms::suits`]) do not lease, at once.
    pub fn note(&mut self, now: Timestamp, demand: u64, nodes: u64) -> LeaseMode {
        let refresh = self.terms.refresh();
        let per_refresh = |permits: u64| u128::from(permits) * SECOND / refresh.as_nanos();
        let demand = u128::from(demand);
        let (is_better, after) = match self.mode {
            LeaseMode::Exact => {
                let is_worth_it = demand >= per_refresh(WORTH_LEASING);
                (is_worth_it && self.terms.suits(nodes), PROMOTED_AFTER)
            }
            LeaseMode::Leased if !self.terms.suits(nodes) => (true, 0),
            LeaseMode::Leased => (demand < per_refresh(WORTH_KEEPING), DEMOTED_AFTER),
        };
        if !is_better {
            self.since = None;
            return self.mode;
        }
        let since = *self.since.get_or_insert(now);
        if now.since(since).as_nanos() >= refresh.as_nanos() * u128::from(after) {
            self.since = None;
            self.mode = match self.mode {
                LeaseMode::Exact => LeaseMode::Leased,
                LeaseMode::Leased => LeaseMode::Exact,
            };
        }
        self.mode
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leased::terms::Scheme;
    use tidegate::Quota;

    /// Refresh 25 ms: 8 permits of that are 320 a second, and one is 40.
    fn auto() -> AutoLease {
        let quota = Quota::per_second(20_000).burst(2_000);
        AutoLease::new(LeaseTerms::new(&quota, Scheme::Strict).unwrap())
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + millis)
    }

    #[test]
    fn a_key_is_leased_when_it_has_been_worth_it_for_two_refreshes() {
        let mut auto = auto();
        assert_eq!(auto.note(at(0), 320, 3), LeaseMode::Exact);
        assert_eq!(auto.note(at(49), 320, 3), LeaseMode::Exact);
        assert_eq!(auto.note(at(50), 320, 3), LeaseMode::Leased);
        assert_eq!(auto.mode(), LeaseMode::Leased);
    }

    #[test]
    fn a_burst_or_too_little_is_not_worth_it() {
        let mut auto = auto();
        assert_eq!(auto.note(at(0), 10_000, 3), LeaseMode::Exact);
        assert_eq!(auto.note(at(40), 319, 3), LeaseMode::Exact);
        assert_eq!(auto.note(at(60), 320, 3), LeaseMode::Exact);
        assert_eq!(auto.note(at(109), 320, 3), LeaseMode::Exact);
        assert_eq!(auto.note(at(110), 320, 3), LeaseMode::Leased);
    }

    #[test]
    fn a_lease_is_given_up_after_ten_refreshes_in_vain() {
        let mut auto = auto();
        auto.note(at(0), 320, 3);
        auto.note(at(50), 320, 3);
        assert_eq!(auto.note(at(100), 39, 3), LeaseMode::Leased);
        assert_eq!(auto.note(at(200), 40, 3), LeaseMode::Leased);
        assert_eq!(auto.note(at(300), 39, 3), LeaseMode::Leased);
        assert_eq!(auto.note(at(549), 0, 3), LeaseMode::Leased);
        assert_eq!(auto.note(at(550), 0, 3), LeaseMode::Exact);
    }

    #[test]
    fn more_nodes_than_the_burst_is_enough_for_do_not_lease() {
        let mut auto = auto();
        auto.note(at(0), 320, 62);
        assert_eq!(auto.note(at(50), 320, 62), LeaseMode::Leased);
        assert_eq!(auto.note(at(60), 20_000, 63), LeaseMode::Exact);
        auto.note(at(100), 20_000, 63);
        assert_eq!(auto.note(at(200), 20_000, 63), LeaseMode::Exact);
    }
}
