//! The numbers of a leased limit, derived from its quota.

use std::fmt;
use std::time::Duration;

use tidegate::{Algorithm, Quota, QuotaError, Rate};

/// Refresh this often: a quarter of the time in which the burst refills ...
const PART_OF_REFILL: u128 = 4;
/// ... within these bounds.
const SHORTEST_REFRESH: Duration = Duration::from_millis(5);
const LONGEST_REFRESH: Duration = Duration::from_millis(100);
/// A window has so many refreshes at least, and so is no shorter than that.
const REFRESHES_PER_WINDOW: u32 = 10;
const SHORTEST_WINDOW: Duration = SHORTEST_REFRESH.saturating_mul(REFRESHES_PER_WINDOW);
/// A lease outlives so many refreshes that fail.
const REFRESHES_PER_LEASE: u64 = 10;
/// A node mints after so many refreshes without an answer. Redis knows which answer a node has got
/// only by its next call, so two refreshes may pass in good order, and a tenth of spread each.
const REFRESHES_OF_SILENCE: u64 = 3;
/// How long a node that Redis does not hear of counts as one, and may mint: its share of the rate
/// is kept back so long after a crash under `strict`, so that is shorter.
const MEMBERSHIP_STRICT: Duration = Duration::from_secs(3);
const MEMBERSHIP_OPTIMISTIC: Duration = Duration::from_secs(10);
/// How long after a common silence Redis waits for each node to come back (`optimistic`).
const GRACE: Duration = Duration::from_secs(1);
/// A slice of the bucket is worth leasing from so many permits on, and a burst has four of them.
const BURST_PER_NODE: u64 = 32;
/// Scaled levels of the script stay below this: doubles hold them, and sums of four of them.
const LARGEST_LEVEL: u128 = 1 << 50;
/// The units in which the script counts time: the finest one in which the rate fits.
const TICKS_MICROS: [u64; 4] = [1, 10, 100, 1000];
/// Two clocks may differ in rate by a thousandth (each is off by at most half of that).
const DRIFT: u64 = 1000;

/// What Redis does about a node that has fallen silent, which may have crashed or may be cut off
/// and minting. `Strict`: it keeps back what the node may mint, so that nothing is ever admitted
/// beyond the burst and the rate, and a crashed node's share is not used for 3 seconds.
/// `Optimistic`: it keeps that back only where all nodes fell silent at once, as when Redis was
/// away; while some are cut off and others are not, each that is cut off admits its share of the
/// rate on top, for at most 10 seconds, and a crashed node's share is used again at once.
pub use tidegate::LeaseScheme as Scheme;

const fn membership(scheme: Scheme) -> Duration {
    match scheme {
        Scheme::Strict => MEMBERSHIP_STRICT,
        Scheme::Optimistic => MEMBERSHIP_OPTIMISTIC,
    }
}

/// A quota with the times and scales of leasing it. All nodes of a limit must have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTerms {
    pub(super) scheme: Scheme,
    pub(super) burst: u64,
    pub(super) rate: Rate,
    /// Permits per tick, as a reduced fraction.
    pub(super) num: u64,
    pub(super) den: u64,
    pub(super) tick_micros: u64,
    /// In ticks.
    pub(super) refresh: u64,
    /// The length of a window, where permits are those of windows and no bucket's.
    pub(super) window_micros: Option<u64>,
}

impl LeaseTerms {
    /// # Errors
    /// [`LeaseError`] where the quota cannot be leased; exact mode takes those.
    pub fn new(quota: &Quota, scheme: Scheme) -> Result<Self, LeaseError> {
        let rate = quota.rate().map_err(LeaseError::Quota)?;
        let burst = quota.burst_permits();
        if quota.initial_permits() != burst {
            return Err(LeaseError::Initial);
        }
        if burst < BURST_PER_NODE {
            return Err(LeaseError::BurstTooSmall { burst, nodes: 1 });
        }
        // A quota whose burst is above 0 has a rate above 0.
        let refill = u128::from(burst) * u128::from(rate.nanos()) / u128::from(rate.permits());
        let refresh = refill / PART_OF_REFILL;
        if refresh < SHORTEST_REFRESH.as_nanos() {
            return Err(LeaseError::RefillsTooFast);
        }
        let refresh = refresh.min(LONGEST_REFRESH.as_nanos());
        for tick_micros in TICKS_MICROS {
            let tick_nanos = u128::from(tick_micros) * 1000;
            let (num, den) = (
                u128::from(rate.permits()) * tick_nanos,
                u128::from(rate.nanos()),
            );
            let divisor = gcd(num, den);
            let (num, den) = (num / divisor, den / divisor);
            let membership = membership(scheme).as_nanos() / tick_nanos;
            if u128::from(burst) * den < LARGEST_LEVEL && num * membership < LARGEST_LEVEL {
                return Ok(Self {
                    scheme,
                    burst,
                    rate,
                    num: num as u64,
                    den: den as u64,
                    tick_micros,
                    refresh: (refresh / tick_nanos) as u64,
                    window_micros: None,
                });
            }
        }
        Err(LeaseError::Numbers)
    }

    /// Of fixed windows, aligned to the epoch, with so many permits each.
    ///
    /// # Errors
    /// [`LeaseError`] where they cannot be leased; exact mode takes those.
    pub fn window(permits: u64, window: Duration) -> Result<Self, LeaseError> {
        let rate = Quota::new(permits, window)
            .rate()
            .map_err(LeaseError::Quota)?;
        if permits < BURST_PER_NODE {
            let (burst, nodes) = (permits, 1);
            return Err(LeaseError::BurstTooSmall { burst, nodes });
        }
        if window < SHORTEST_WINDOW {
            return Err(LeaseError::WindowTooShort);
        }
        let micros = u64::try_from(window.as_micros()).unwrap_or(u64::MAX);
        if Duration::from_micros(micros) != window {
            return Err(LeaseError::WindowTooFine);
        }
        let refresh = (window / REFRESHES_PER_WINDOW).min(LONGEST_REFRESH);
        Ok(Self {
            scheme: Scheme::Strict,
            burst: permits,
            rate,
            num: 0,
            den: 1,
            tick_micros: 1,
            refresh: refresh.as_micros() as u64,
            window_micros: Some(micros),
        })
    }

    /// The terms of a limit that counts like this.
    ///
    /// # Errors
    /// [`LeaseError`] where it cannot be leased.
    pub fn of(algorithm: &Algorithm, scheme: Scheme) -> Result<Self, LeaseError> {
        match *algorithm {
            Algorithm::TokenBucket(quota) => Self::new(&quota, scheme),
            Algorithm::FixedWindow { permits, window } => match scheme {
                Scheme::Strict => Self::window(permits, window),
                Scheme::Optimistic => Err(LeaseError::Scheme),
            },
            _ => Err(LeaseError::Algorithm),
        }
    }

    /// What keys of these terms are of. What is kept is in units and ticks of theirs, which others
    /// would misread: where nodes have different terms, each counts with those of the same.
    pub(super) fn family(&self) -> String {
        let Self {
            scheme,
            burst,
            num,
            den,
            tick_micros,
            window_micros,
            ..
        } = self;
        let (kind, terms) = match window_micros {
            Some(length) => ("tgw", format!("{burst} {length}")),
            None => (
                "tgb",
                format!("{scheme:?} {burst} {num} {den} {tick_micros}"),
            ),
        };
        format!("{kind}{}", crate::key::short_hash(terms.as_bytes()))
    }

    /// The burst, or what may pass in a window, in permits.
    pub const fn burst(&self) -> u64 {
        self.burst
    }

    /// The rate, exactly.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// How silent nodes are treated.
    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Time between two refreshes of a node: a quarter of burst / rate, or a tenth of a window, 5
    /// to 100 ms.
    pub const fn refresh(&self) -> Duration {
        self.time(self.refresh)
    }

    /// How long a lease lasts in Redis: ten refreshes. One of a window lasts until its end.
    pub const fn lease(&self) -> Duration {
        self.time(self.lease_ticks())
    }

    /// After how long without an answer a node mints of its share: three refreshes.
    pub const fn silence(&self) -> Duration {
        self.time(self.silence_ticks())
    }

    /// How long a node may mint without an answer, and how long Redis counts it in: 3 s under
    /// [`Scheme::Strict`], 10 s under [`Scheme::Optimistic`].
    pub const fn membership(&self) -> Duration {
        self.time(self.membership_ticks())
    }

    /// The most permits that are lent at once, and so the largest request that can be allowed.
    pub const fn most_lent(&self) -> u64 {
        if self.window_micros.is_some() {
            return self.burst;
        }
        (self.burst * self.den - self.num * self.refresh) / self.den
    }

    /// The time in which one permit comes, rounded up; at least 1.
    pub(super) const fn nanos_per_permit(&self) -> u64 {
        self.rate.nanos().div_ceil(self.rate.permits())
    }

    /// How long a window is, where permits are those of windows.
    pub const fn window_length(&self) -> Option<Duration> {
        match self.window_micros {
            Some(micros) => Some(Duration::from_micros(micros)),
            None => None,
        }
    }

    /// Whether the burst is enough for so many nodes: 32 permits each.
    pub const fn suits(&self, nodes: u64) -> bool {
        self.burst >= BURST_PER_NODE.saturating_mul(nodes)
    }

    pub(super) const fn lease_ticks(&self) -> u64 {
        self.refresh * REFRESHES_PER_LEASE
    }

    pub(super) const fn silence_ticks(&self) -> u64 {
        self.refresh * REFRESHES_OF_SILENCE
    }

    pub(super) const fn membership_ticks(&self) -> u64 {
        self.ticks(membership(self.scheme))
    }

    pub(super) const fn grace_ticks(&self) -> u64 {
        self.ticks(GRACE)
    }

    const fn ticks(&self, time: Duration) -> u64 {
        time.as_micros() as u64 / self.tick_micros
    }

    const fn time(&self, ticks: u64) -> Duration {
        Duration::from_micros(ticks * self.tick_micros)
    }
}

/// A time that has not passed by another clock when it has passed by this one.
pub(super) const fn surely_within(nanos: u64) -> u64 {
    nanos - nanos.div_ceil(DRIFT)
}

/// A time that has passed by another clock when it has passed by this one.
pub(super) const fn surely_beyond(nanos: u64) -> u64 {
    nanos + nanos.div_ceil(DRIFT)
}

const fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Why a quota cannot be leased. All of these can be had in exact mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaseError {
    /// It is no quota.
    Quota(QuotaError),
    /// The burst is below 32 permits for each node: leases would be too small to be of use.
    BurstTooSmall {
        /// The burst.
        burst: u64,
        /// How many nodes there are.
        nodes: u64,
    },
    /// The burst refills in less than 20 ms: leases would have to be refreshed too often.
    RefillsTooFast,
    /// A leased bucket begins full.
    Initial,
    /// Rate and burst together need more than 50 bits to be exact.
    Numbers,
    /// A window of less than 50 ms: leases would have to be refreshed too often.
    WindowTooShort,
    /// A window that is not a whole number of microseconds.
    WindowTooFine,
    /// Windows are leased strictly: nobody grants permits of a window but Redis.
    Scheme,
    /// It is neither a token bucket nor a fixed window that is aligned to the epoch.
    Algorithm,
}

impl fmt::Display for LeaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quota(_) => f.write_str("not a quota that can be leased"),
            Self::BurstTooSmall { burst, nodes } => write!(
                f,
                "a burst of {burst}, or so many permits of a window, is too small to be leased: \
                 that takes {BURST_PER_NODE} for each node ({nodes}); use `store: exact`, or a \
                 larger burst"
            ),
            Self::RefillsTooFast => f.write_str(
                "the burst refills in less than 20 ms, which is too fast for leases: use \
                 `store: exact`, or a larger burst",
            ),
            Self::Initial => f.write_str(
                "a leased bucket begins full, with no other number of initial permits: use \
                 `store: exact`",
            ),
            Self::Numbers => f.write_str(
                "rate and burst together are too fine for exact arithmetic in Redis: use a \
                 shorter period or a smaller burst",
            ),
            Self::WindowTooShort => f.write_str(
                "a window of less than 50 ms is too short for leases: use `store: exact`, or a \
                 longer one",
            ),
            Self::WindowTooFine => {
                f.write_str("a window that is leased has to be a whole number of microseconds")
            }
            Self::Scheme => f.write_str("fixed windows are leased with scheme `strict` only"),
            Self::Algorithm => f.write_str(
                "only token buckets with greedy refill, and fixed windows that are aligned to the \
                 epoch, are leased",
            ),
        }
    }
}

impl std::error::Error for LeaseError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Quota(error) => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
