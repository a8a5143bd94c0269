//! Permits of a node's own while Redis is away: a small bucket that fills at its share of the rate.

use tidegate::Timestamp;

use super::nanos;
use crate::leased::terms::{LeaseTerms, surely_within};

/// Shares are in millionths.
const WHOLE: u128 = 1_000_000;

/// What may be minted. The default is nothing, since ever.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mint {
    /// In permits / (nanoseconds of the rate * a million): nothing is rounded up, ever.
    level: u128,
    /// Until when it has been filled.
    at: Timestamp,
}

impl Mint {
    /// Takes permits, and returns how many are left. The bucket was empty at `from`, and holds what
    /// comes in one refresh: so much of it Redis keeps room for.
    pub(super) fn take(
        &mut self,
        terms: &LeaseTerms,
        share: u64,
        from: Timestamp,
        now: Timestamp,
        permits: u64,
    ) -> Option<u64> {
        let rate = u128::from(terms.rate().permits()) * u128::from(share);
        let one = u128::from(terms.rate().nanos()) * WHOLE;
        let from = self.at.max(from);
        if now > from {
            // This clock may be the faster one.
            let passed = surely_within(now.nanos_since(from));
            let most = rate * u128::from(nanos(terms.refresh()));
            self.level = most.min(self.level + rate * u128::from(passed));
            self.at = now;
        }
        self.level = self.level.checked_sub(u128::from(permits) * one)?;
        Some((self.level / one) as u64)
    }
}
