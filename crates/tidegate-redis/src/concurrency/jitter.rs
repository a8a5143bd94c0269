//! Chance, from a seed: so that nodes do not all call at once, and tests can be repeated.

use std::time::Duration;

/// A stream of random numbers (`SplitMix64`; Steele, Lea and Flood, 2014).
#[derive(Clone, Debug)]
pub(crate) struct Jitter(u64);

impl Jitter {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A time from `low` percent of `whole` up to all of it.
    pub(crate) fn up_to(&mut self, whole: Duration, low: u64) -> Duration {
        let nanos = u64::try_from(whole.as_nanos()).unwrap_or(u64::MAX);
        let least = nanos / 100 * low.min(100);
        Duration::from_nanos(least + self.number() % (nanos - least).max(1))
    }
}
