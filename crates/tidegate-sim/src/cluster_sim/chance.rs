//! Random numbers that a seed determines.

/// The generator splitmix64 (Steele, Lea and Flood, 2014).
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// Equal seeds give equal numbers.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 if that is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// A number of at least `from` and below `to`.
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from)
    }

    /// A number below `end` once in so many times, else 0.
    pub fn rarely(&mut self, times: u64, end: u64) -> u64 {
        match self.below(times) {
            0 => self.below(end),
            _ => 0,
        }
    }

    /// At least 0 and below 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// How many events come where `mean` are expected (Poisson).
    pub fn poisson(&mut self, mean: f64) -> u64 {
        if mean <= 0.0 {
            return 0;
        }
        if mean > 30.0 {
            // Close enough to normal there: twelve uniform numbers make one.
            let normal = (0..12).map(|_| self.unit()).sum::<f64>() - 6.0;
            #[expect(clippy::cast_sign_loss, reason = "not below 0")]
            return (mean + normal * mean.sqrt() + 0.5).max(0.0) as u64;
        }
        let (limit, mut product, mut events) = ((-mean).exp(), self.unit(), 0);
        while product > limit {
            product *= self.unit();
            events += 1;
        }
        events
    }

    /// A time that follows an exponential distribution.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_as_expected() {
        let mut chance = Chance::new(7);
        for mean in [0.3, 5.0, 80.0] {
            let total: u64 = (0..20_000).map(|_| chance.poisson(mean)).sum();
            let is = total as f64 / 20_000.0;
            assert!((is - mean).abs() < 0.05 * mean, "{is} for {mean}");
        }
        assert_eq!(chance.below(0), 0);
        assert!((0..1000).all(|_| chance.below(3) < 3));
    }
}
