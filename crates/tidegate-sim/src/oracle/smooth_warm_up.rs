//! Guava's `SmoothWarmingUp`, by the integral it is defined by, in fractions of any size.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{Signed, ToPrimitive, Zero};
use tidegate::Quota;

use super::{Oracle, Request, Ticket, nanos};

/// Fractions are rounded to multiples of 2^-128 after each step, or they would double in length
/// with each request (a price is quadratic in what is stored).
const FRACTION_BITS: usize = 128;

/// `resync`, `reserve` and `tryAcquire` of Guava, with a bound on how far ahead the next free
/// ticket may be. Permits and nanoseconds are fractions.
///
/// The engine keeps whole units (1/den permits and 1/num ns of a rate of num/den permits per ns).
/// By how many it may therefore differ is counted beside each step, and told as
/// [`tolerance_nanos`](Oracle::tolerance_nanos).
#[derive(Clone, Debug)]
pub struct SmoothWarmUpOracle {
    /// `None` for a rate of 0, which grants nothing.
    rate: Option<Rate>,
    max_debt: BigRational,
    stored: BigRational,
    next_free: BigRational,
    latest: u64,
    /// Of each ticket: its permits, and how many of them had been stored.
    taken: BTreeMap<Ticket, (u64, BigRational)>,
    tickets: u64,
    /// Units by which the engine's state may differ: stored permits, next free ticket.
    stored_slack: BigRational,
    next_free_slack: BigRational,
}

/// The numbers of Guava's `doSetRate`.
#[derive(Clone, Debug)]
struct Rate {
    /// `I`: nanoseconds of one permit when warm.
    interval: BigRational,
    cold_factor: BigRational,
    warm_up: BigRational,
    /// Stored permits above which they are dearer.
    threshold: BigRational,
    max_stored: BigRational,
    slope: BigRational,
    /// How many of the engine's units make a nanosecond: the numerator of the reduced rate.
    units_per_nano: BigRational,
}

fn whole(value: i128) -> BigRational {
    BigRational::from_integer(BigInt::from(value))
}

fn rounded(value: &BigRational) -> BigRational {
    let scale = BigInt::from(1) << FRACTION_BITS;
    let parts = (value * BigRational::from_integer(scale.clone())).floor();
    parts / BigRational::from_integer(scale)
}

fn to_u64(value: &BigRational) -> u64 {
    value.to_integer().to_u64().unwrap_or(u64::MAX)
}

fn larger(a: BigRational, b: BigRational) -> BigRational {
    if a > b { a } else { b }
}

fn smaller(a: BigRational, b: BigRational) -> BigRational {
    if a < b { a } else { b }
}

impl Rate {
    fn new(quota: Quota, warm_up: Duration, cold_factor: u32) -> Option<Self> {
        let reduced = quota.rate().ok().filter(|rate| rate.permits() > 0)?;
        let interval = whole(nanos(quota.period())) / whole(quota.permits().into());
        let (cold_factor, warm_up) = (whole(cold_factor.into()), whole(nanos(warm_up)));
        let cold_interval = &cold_factor * &interval;
        let threshold = &warm_up / (&interval * whole(2));
        let max_stored = &threshold + whole(2) * &warm_up / (&interval + &cold_interval);
        let slope = (&cold_interval - &interval) / (&max_stored - &threshold);
        Some(Self {
            interval,
            cold_factor,
            warm_up,
            threshold,
            max_stored,
            slope,
            units_per_nano: whole(reduced.permits().into()),
        })
    }

    /// `h(x)`: what the next permit costs where `x` are stored.
    fn height(&self, stored: &BigRational) -> BigRational {
        let above = larger(stored - &self.threshold, BigRational::zero());
        &self.interval + above * &self.slope
    }

    /// The integral of `height` from `stored - taken` to `stored`: a trapezium above the
    /// threshold, a rectangle below it.
    fn price(&self, stored: &BigRational, taken: &BigRational) -> BigRational {
        let above = larger(stored - &self.threshold, BigRational::zero());
        let dear = smaller(above, taken.clone());
        let trapezium = &dear * (self.height(stored) + self.height(&(stored - &dear))) / whole(2);
        trapezium + &self.interval * (taken - dear)
    }

    /// What a request costs, `spent` of whose permits are stored ones.
    fn price_of(&self, permits: u64, stored: &BigRational, spent: &BigRational) -> BigRational {
        self.price(stored, spent) + (whole(permits.into()) - spent) * &self.interval
    }
}

impl SmoothWarmUpOracle {
    /// Cold, and owing nothing.
    pub fn new(
        quota: Quota,
        warm_up: Duration,
        cold_factor: u32,
        max_debt: Duration,
        start: u64,
    ) -> Self {
        let rate = Rate::new(quota, warm_up, cold_factor);
        let max_debt = whole(nanos(max_debt).min(i128::from(u64::MAX)));
        let stored = rate.as_ref().map(|rate| rate.max_stored.clone());
        Self {
            rate,
            max_debt,
            stored: stored.unwrap_or_default(),
            next_free: whole(start.into()),
            latest: start,
            taken: BTreeMap::new(),
            tickets: 0,
            stored_slack: whole(2),
            next_free_slack: BigRational::zero(),
        }
    }

    fn now(&self, now: u64) -> BigRational {
        whole(self.latest.max(now).into())
    }

    fn resync(&mut self, rate: &Rate, now: u64) {
        let now_exact = self.now(now);
        self.latest = self.latest.max(now);
        if now_exact <= self.next_free {
            if &self.next_free - now_exact <= self.tolerance() {
                self.rest_slack(); // The engine may have begun to store already.
            }
            return;
        }
        let cool = &rate.warm_up / &rate.max_stored;
        let gained = (&now_exact - &self.next_free) / cool;
        self.stored = rounded(&(&self.stored + gained));
        self.rest_slack();
        if self.stored >= rate.max_stored {
            self.stored = rate.max_stored.clone();
            self.stored_slack = whole(2);
        }
        self.next_free = now_exact;
        self.next_free_slack = BigRational::zero();
    }

    /// The engine's idle time differs by what its next free ticket does; it gains at most 7/6
    /// units for each unit of time, and rounds down what it gains.
    fn rest_slack(&mut self) {
        self.stored_slack += &self.next_free_slack * whole(2) + whole(1);
    }

    /// Takes without asking; answers with how many had been stored.
    fn reserve(&mut self, rate: &Rate, permits: u64) -> BigRational {
        let spent = smaller(whole(permits.into()), self.stored.clone());
        let price = rate.price_of(permits, &self.stored, &spent);
        self.price_slack(rate, &spent);
        self.stored = rounded(&(&self.stored - &spent));
        self.next_free = rounded(&(&self.next_free + price));
        if self.stored.is_zero() {
            self.stored_slack = whole(2);
        }
        spent
    }

    /// Where a unit more is stored, the same permits cost as much more as the first of them does
    /// than the last; and the engine rounds up to whole units, from a threshold rounded down.
    fn price_slack(&mut self, rate: &Rate, spent: &BigRational) {
        let steep = rate.height(&self.stored) - rate.height(&(&self.stored - spent));
        self.next_free_slack += (&self.stored_slack + whole(1)) * steep / &rate.interval + whole(1);
    }

    /// How close a comparison may be before the engine's rounding could turn it, in nanoseconds.
    fn tolerance(&self) -> BigRational {
        self.rate.as_ref().map_or_else(BigRational::zero, |rate| {
            // The price of one request more, at most of all that is stored.
            let one_more = (&self.stored_slack + whole(1)) * &rate.cold_factor + whole(1);
            (&self.next_free_slack + one_more) / &rate.units_per_nano + whole(1)
        })
    }
}

impl Oracle for SmoothWarmUpOracle {
    fn limit(&self) -> u64 {
        self.rate
            .as_ref()
            .map_or(0, |rate| to_u64(&rate.max_stored))
    }

    fn delay_of(&self, request: Request) -> Option<u64> {
        if request.permits == 0 {
            return Some(0);
        }
        let rate = self.rate.as_ref()?;
        let now = self.now(request.now);
        let owed = larger(&self.next_free - &now, BigRational::zero());
        if owed > whole(request.patience.into()) {
            return None;
        }
        let mut after = self.clone();
        after.resync(rate, request.now);
        after.reserve(rate, request.permits);
        (after.next_free - now <= self.max_debt).then(|| to_u64(&owed.ceil()))
    }

    fn ever_admits(&self, Request { now, permits, .. }: Request) -> bool {
        // With no one else around it gets only colder, and so dearer, until it is asked again.
        let Some(rate) = &self.rate else {
            return permits == 0;
        };
        let mut at = self.clone();
        at.resync(rate, now);
        let spent = smaller(whole(permits.into()), at.stored.clone());
        permits == 0 || rate.price_of(permits, &at.stored, &spent) <= self.max_debt
    }

    fn remaining(&self, now: u64) -> u64 {
        let Some(rate) = &self.rate else { return 0 };
        let mut at = self.clone();
        at.resync(rate, now);
        if at.next_free > at.now(now) {
            return 0;
        }
        to_u64(&at.stored)
    }

    fn take(&mut self, request: Request) -> Ticket {
        self.tickets += 1;
        if let Some(rate) = self.rate.clone() {
            self.resync(&rate, request.now);
            let spent = self.reserve(&rate, request.permits);
            self.taken
                .insert(Ticket(self.tickets), (request.permits, spent));
        }
        Ticket(self.tickets)
    }

    /// As if nobody had come after it: what was stored is stored again, and the debt shrinks by
    /// what the permits cost from there.
    fn give_back(&mut self, now: u64, ticket: Ticket) {
        let Some(rate) = self.rate.clone() else {
            return;
        };
        let Some((permits, spent)) = self.taken.remove(&ticket) else {
            return;
        };
        self.resync(&rate, now);
        self.stored = smaller(&self.stored + &spent, rate.max_stored.clone());
        let next_free = &self.next_free - rate.price_of(permits, &self.stored, &spent);
        self.next_free = larger(rounded(&next_free), self.now(now));
        self.price_slack(&rate, &spent);
    }

    fn tolerance_nanos(&self) -> u64 {
        to_u64(&self.tolerance().ceil())
    }

    fn remaining_about(&self, now: u64) -> RangeInclusive<u64> {
        let Some(rate) = &self.rate else { return 0..=0 };
        let mut at = self.clone();
        at.resync(rate, now);
        // A unit is 1/den of a permit; `interval` is den/num nanoseconds.
        let units_per_permit = &rate.interval * &rate.units_per_nano;
        let tolerance = to_u64(&(&at.stored_slack / units_per_permit).ceil()).saturating_add(1);
        let (debt, close) = (&self.next_free - at.now(now), self.tolerance());
        let stored = to_u64(&at.stored);
        let least = if debt > -close.clone() {
            0
        } else {
            stored.saturating_sub(tolerance)
        };
        let most = if debt > close {
            0
        } else {
            stored.saturating_add(tolerance)
        };
        least..=most
    }

    fn is_close(&self, request: Request) -> bool {
        let Some(rate) = &self.rate else { return false };
        let mut at = self.clone();
        at.resync(rate, request.now);
        let debt = &at.next_free - at.now(request.now);
        let spent = smaller(whole(request.permits.into()), at.stored.clone());
        let price = rate.price_of(request.permits, &at.stored, &spent);
        let tolerance = at.tolerance() + self.tolerance();
        let close = |a: &BigRational, b: &BigRational| (a - b).abs() <= tolerance;
        close(&debt, &whole(request.patience.into()))
            || close(&(&debt + &price), &self.max_debt)
            || close(&price, &self.max_debt)
    }

    fn boxed(&self) -> Box<dyn Oracle> {
        Box::new(self.clone())
    }
}
