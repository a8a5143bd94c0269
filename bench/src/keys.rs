//! Key streams: a million IPv4 addresses as text, uniform or by Zipf's law.

/// Different keys.
pub(crate) const KEYS: u32 = 1_000_000;
/// Length of a stream; a power of two.
pub(crate) const STREAM: usize = 1 << 21;

/// How often which key comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spread {
    /// All alike.
    Uniform,
    /// The nth most frequent 1/n as often as the first.
    Zipf,
}

/// `SplitMix64`: small, and the same on each machine.
#[derive(Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// The nth address, scattered so that neighbours are not alike.
pub(crate) fn address(n: u32) -> String {
    std::net::Ipv4Addr::from(n.wrapping_mul(0x9E37_79B1) ^ 0x5bd1_e995).to_string()
}

/// A stream of keys.
pub(crate) fn stream(spread: Spread) -> Vec<String> {
    let mut random = Random(42);
    let indices: Vec<u32> = match spread {
        Spread::Uniform => (0..STREAM)
            .map(|_| (random.next() % u64::from(KEYS)) as u32)
            .collect(),
        Spread::Zipf => {
            let mut sum = 0.0;
            let sums: Vec<f64> = (1..=KEYS)
                .map(|rank| {
                    sum += 1.0 / f64::from(rank);
                    sum
                })
                .collect();
            (0..STREAM)
                .map(|_| {
                    let at = random.fraction() * sum;
                    (sums.partition_point(|s| *s < at) as u32).min(KEYS - 1)
                })
                .collect()
        }
    };
    indices.into_iter().map(address).collect()
}
