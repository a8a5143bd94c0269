//! How much too many, how much too few, at what price.

use std::fmt;

use tidegate::Quota;

use super::faults::Span;

/// What passed in a run, millisecond by millisecond.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub(super) admitted: Vec<u64>,
    pub(super) offered: Vec<u64>,
    pub(super) calls: Vec<u64>,
    /// Permits that nodes minted in all.
    pub minted: u64,
    /// Permits that Redis granted in what it lost afterwards.
    pub lost_grants: u64,
    /// A hash of everything that happened, in order.
    pub trace: u64,
}

/// A run in a few numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Permits beyond burst + rate * t, in the worst interval.
    pub overshoot: u64,
    /// What a central bucket would have admitted more, within each half second, in percent.
    pub unused: f64,
    /// Calls of Redis per 1,000 decisions.
    pub calls_per_1k: f64,
    /// Calls of Redis per second.
    pub calls_per_second: f64,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            overshoot,
            unused,
            calls_per_1k,
            calls_per_second,
        } = self;
        write!(
            f,
            "overshoot {overshoot}, unused {unused:.2} %, {calls_per_1k:.2} calls per 1k, \
             {calls_per_second:.0} calls/s"
        )
    }
}

/// A true bucket, in millionths of a permit, asked each millisecond.
struct Bucket {
    level: i128,
    full: i128,
    refill: i128,
}

impl Bucket {
    fn new(quota: &Quota) -> Self {
        let full = i128::from(quota.burst_permits()) * 1_000_000;
        let permits = i128::from(quota.permits()) * 1_000_000;
        let refill = permits * 1_000_000 / i128::try_from(quota.period().as_nanos()).unwrap_or(1);
        Self {
            level: full,
            full,
            refill,
        }
    }

    fn refill(&mut self) {
        self.level = self.full.min(self.level + self.refill);
    }

    fn there(&self) -> u64 {
        u64::try_from(self.level / 1_000_000).unwrap_or(0)
    }

    fn take(&mut self, permits: u64) {
        self.level -= i128::from(permits) * 1_000_000;
    }
}

impl Outcome {
    /// The figures of the whole run. `quota` must grant a whole number of permits each second.
    pub fn figures(&self, quota: &Quota) -> Figures {
        self.figures_of(quota, Span::new(0, self.admitted.len() as u64))
    }

    /// The figures of a part of it (of whole half seconds).
    pub fn figures_of(&self, quota: &Quota, span: Span) -> Figures {
        let (from, to) = (span.from as usize, span.to as usize);
        let mut central = Bucket::new(quota);
        let mut most = Vec::with_capacity(self.offered.len());
        for &offered in &self.offered {
            central.refill();
            let admitted = offered.min(central.there());
            central.take(admitted);
            most.push(admitted);
        }
        let halves = most[from..to]
            .chunks(500)
            .zip(self.admitted[from..to].chunks(500));
        let missed = halves.map(|(most, admitted)| {
            most.iter()
                .sum::<u64>()
                .saturating_sub(admitted.iter().sum())
        });
        let missed: u64 = missed.sum();
        let most: u64 = most[from..to].iter().sum();
        let calls: u64 = self.calls[from..to].iter().sum();
        let offered: u64 = self.offered[from..to].iter().sum();
        Figures {
            overshoot: overshoot(quota, &self.admitted[from..to]),
            unused: 100.0 * missed as f64 / most.max(1) as f64,
            calls_per_1k: 1000.0 * calls as f64 / offered.max(1) as f64,
            calls_per_second: 1000.0 * calls as f64 / (to - from).max(1) as f64,
        }
    }

    /// How much passed in a part of the run.
    pub fn admitted_in(&self, span: Span) -> u64 {
        self.admitted[span.from as usize..span.to as usize]
            .iter()
            .sum()
    }

    /// How much was offered in a part of the run.
    pub fn offered_in(&self, span: Span) -> u64 {
        self.offered[span.from as usize..span.to as usize]
            .iter()
            .sum()
    }
}

/// The most, over all intervals, that was admitted beyond burst + rate * t; rounded up.
fn overshoot(quota: &Quota, admitted: &[u64]) -> u64 {
    let mut bucket = Bucket::new(quota);
    let mut worst = 0;
    for &admitted in admitted {
        bucket.refill();
        bucket.take(admitted);
        worst = worst.max(-bucket.level);
    }
    u64::try_from(worst).unwrap_or(0).div_ceil(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overshoot_is_what_is_beyond_in_the_worst_interval() {
        let quota = Quota::per_second(1_000).burst(10);
        assert_eq!(overshoot(&quota, &[10, 1, 1]), 0);
        assert_eq!(overshoot(&quota, &[10, 1, 2]), 1);
        assert_eq!(overshoot(&quota, &[0, 0, 11, 0, 0]), 1);
        assert_eq!(overshoot(&quota, &[5, 5, 5, 0, 0, 0]), 3);
    }

    #[test]
    fn unused_is_what_a_central_bucket_would_have_admitted() {
        let quota = Quota::per_second(1_000).burst(10);
        let outcome = Outcome {
            admitted: vec![10, 0, 0, 0],
            offered: vec![20, 20, 0, 0],
            calls: vec![1, 0, 1, 0],
            ..Outcome::default()
        };
        let figures = outcome.figures(&quota);
        assert!((figures.unused - 100.0 / 11.0).abs() < 1e-9, "{figures}");
        assert!((figures.calls_per_1k - 50.0).abs() < 1e-9, "{figures}");
    }
}
