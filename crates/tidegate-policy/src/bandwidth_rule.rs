//! What a limit of bandwidth has beside its numbers.

/// How a limit holds bodies back. Its algorithm is a token bucket of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BandwidthRule {
    /// Bytes of each body that pass at once before it begins.
    pub after: u64,
    /// Which bodies it holds back.
    pub direction: Direction,
    /// Whether it goes by nginx's `limit_rate`: in steps of a second, each body for itself.
    pub is_nginx: bool,
}

/// Which bodies a limit of bandwidth holds back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// What is sent to clients.
    #[default]
    Responses,
    /// What clients send.
    Requests,
    /// Either, in one count.
    Both,
}

/// One of a request's two bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyOf {
    /// What the client sends.
    Request,
    /// What it is sent.
    Response,
}

impl Direction {
    /// Whether such a body is held back.
    pub const fn covers(self, body: BodyOf) -> bool {
        match self {
            Self::Responses => matches!(body, BodyOf::Response),
            Self::Requests => matches!(body, BodyOf::Request),
            Self::Both => true,
        }
    }
}

impl BandwidthRule {
    /// The burst of a bandwidth of `bytes` each `period_nanos`, where nothing is said: what comes
    /// in 50 ms. A slow one is spared writes of a few bytes: 64, as long as they take no longer
    /// than a second.
    pub fn default_burst(bytes: u64, period_nanos: u128) -> u64 {
        const SMOOTH_NANOS: u128 = 50_000_000;
        const SECOND_NANOS: u128 = 1_000_000_000;
        const SMALL_WRITE: u64 = 64;
        let within = |nanos: u128| {
            let bytes = u128::from(bytes) * nanos / period_nanos.max(1);
            u64::try_from(bytes).unwrap_or(u64::MAX)
        };
        let least = within(SECOND_NANOS).clamp(1, SMALL_WRITE);
        within(SMOOTH_NANOS).max(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_burst_of_a_bandwidth_is_50_ms_of_it_and_no_small_write() {
        let second = 1_000_000_000;
        for (bytes, period, burst) in [
            (100_000, second, 5_000),
            (10_000_000_000, second, 500_000_000),
            (1_280, second, 64),
            (100, second, 64),
            (64, second, 64),
            (10, second, 10),
            (1, second, 1),
            (1, 60 * second, 1),
            (1 << 40, 1, u64::MAX),
        ] {
            let got = BandwidthRule::default_burst(bytes, period);
            assert_eq!(got, burst, "{bytes} each {period} ns");
        }
    }
}
