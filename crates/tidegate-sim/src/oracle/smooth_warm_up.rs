//! Guava's `SmoothWarmingUp`, by the integral it is defined by.

use std::collections::BTreeMap;
use std::time::Duration;

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::ToPrimitive;
use tidegate::Quota;

use super::{Oracle, Request, Ticket, ceil_div, nanos, saturated};

/// `resync`, `reserve` and `tryAcquire` of Guava, with a bound on how far ahead the next free
/// ticket may be.
///
/// Guava truncates each price to a microsecond. Here, with a rate of num/den permits per
/// nanosecond in lowest terms, stored permits are kept in whole parts of `1 / den`, rounded down,
/// and times in whole parts of `1 / num` nanoseconds, prices rounded up: so says the engine too,
/// and all comparisons are exact. What is rounded is a fraction of any length.
#[derive(Clone, Debug)]
pub struct SmoothWarmUpOracle {
    /// `None` for a rate of 0, which grants nothing.
    rate: Option<Rate>,
    /// In parts of a nanosecond, as all times below.
    max_debt: i128,
    /// In parts of a permit.
    stored: i128,
    next_free: i128,
    latest: u64,
    /// Of each ticket: its permits, and how many parts of them had been stored.
    taken: BTreeMap<Ticket, (u64, i128)>,
    tickets: u64,
}

/// The numbers of Guava's `doSetRate`, in those parts: `I` is 1 in them.
#[derive(Clone, Debug)]
struct Rate {
    parts_per_permit: i128,
    parts_per_nano: i128,
    cold_factor: i128,
    warm_up: i128,
    /// Stored parts above which they are dearer: half of the warm-up.
    threshold: i128,
    max_stored: i128,
}

fn fraction(numerator: i128, denominator: i128) -> BigRational {
    BigRational::new(BigInt::from(numerator), BigInt::from(denominator))
}

fn whole(value: i128) -> BigRational {
    fraction(value, 1)
}

fn to_i128(value: &BigRational) -> i128 {
    value.to_integer().to_i128().expect("within 128 bits")
}

impl Rate {
    fn new(quota: Quota, warm_up: Duration, cold_factor: u32) -> Option<Self> {
        let reduced = quota.rate().ok().filter(|rate| rate.permits() > 0)?;
        let parts_per_nano = i128::from(reduced.permits());
        let cold_factor = i128::from(cold_factor);
        let warm_up = nanos(warm_up) * parts_per_nano;
        // T = 0.5 P / I, and Smax = T + 2 P / (I + Ic).
        let threshold = fraction(warm_up, 2);
        let max_stored = &threshold + fraction(2 * warm_up, 1 + cold_factor);
        Some(Self {
            parts_per_permit: i128::from(reduced.nanos()),
            parts_per_nano,
            cold_factor,
            warm_up,
            threshold: to_i128(&threshold.floor()),
            max_stored: to_i128(&max_stored.floor()),
        })
    }

    /// `h(x)`: what the next part costs where `stored` are. From I at the threshold it rises to
    /// Ic at Smax, 2 P / (I + Ic) above it.
    fn height(&self, stored: i128) -> BigRational {
        let above = (stored - self.threshold).max(0);
        let slope =
            fraction(self.cold_factor - 1, 1) / fraction(2 * self.warm_up, 1 + self.cold_factor);
        whole(1) + whole(above) * slope
    }

    /// What a request costs, `spent` parts of which are stored ones: the integral of `height` from
    /// `stored - spent` to `stored` (a trapezium above the threshold, a rectangle below it), and I
    /// for each fresh part.
    fn price(&self, permits: u64, stored: i128, spent: i128) -> i128 {
        let dear = (stored - self.threshold).max(0).min(spent);
        let heights = self.height(stored) + self.height(stored - dear);
        let trapezium = whole(dear) * heights / whole(2);
        let rest = i128::from(permits) * self.parts_per_permit - dear;
        to_i128(&(trapezium + whole(rest)).ceil())
    }

    /// What is stored in so long a rest: from 0 to Smax in exactly the warm-up.
    fn gained(&self, idle: i128) -> i128 {
        let max_stored =
            fraction(self.warm_up, 2) + fraction(2 * self.warm_up, 1 + self.cold_factor);
        let cool = whole(self.warm_up) / max_stored;
        to_i128(&(whole(idle) / cool).floor())
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
        let parts_per_nano = rate.as_ref().map_or(1, |rate| rate.parts_per_nano);
        Self {
            max_debt: nanos(max_debt).min(i128::from(u64::MAX)) * parts_per_nano,
            stored: rate.as_ref().map_or(0, |rate| rate.max_stored),
            next_free: i128::from(start) * parts_per_nano,
            rate,
            latest: start,
            taken: BTreeMap::new(),
            tickets: 0,
        }
    }

    fn now(&self, rate: &Rate, now: u64) -> i128 {
        i128::from(self.latest.max(now)) * rate.parts_per_nano
    }

    fn resync(&mut self, rate: &Rate, now: u64) {
        let now_parts = self.now(rate, now);
        self.latest = self.latest.max(now);
        if now_parts > self.next_free {
            let gained = rate.gained(now_parts - self.next_free);
            self.stored = (self.stored + gained).min(rate.max_stored);
            self.next_free = now_parts;
        }
    }

    /// Takes without asking; answers with how many parts had been stored.
    fn reserve(&mut self, rate: &Rate, permits: u64) -> i128 {
        let spent = (i128::from(permits) * rate.parts_per_permit).min(self.stored);
        self.next_free += rate.price(permits, self.stored, spent);
        self.stored -= spent;
        spent
    }
}

impl Oracle for SmoothWarmUpOracle {
    fn limit(&self) -> u64 {
        self.rate
            .as_ref()
            .map_or(0, |rate| saturated(rate.max_stored / rate.parts_per_permit))
    }

    fn delay_of(&self, request: Request) -> Option<u64> {
        if request.forced {
            return request.forced_delay();
        }
        if request.permits == 0 {
            return Some(0);
        }
        let rate = self.rate.as_ref()?;
        let now = self.now(rate, request.now);
        let owed = (self.next_free - now).max(0);
        if owed > i128::from(request.patience) * rate.parts_per_nano {
            return None;
        }
        let mut after = self.clone();
        after.resync(rate, request.now);
        after.reserve(rate, request.permits);
        (after.next_free - now <= self.max_debt)
            .then_some(saturated(ceil_div(owed, rate.parts_per_nano)))
    }

    fn ever_admits(&self, request: Request) -> bool {
        if request.forced {
            return request.forced_delay().is_some();
        }
        // With no one else around it gets only colder, and so dearer, until it is asked again.
        let Request { now, permits, .. } = request;
        let Some(rate) = &self.rate else {
            return permits == 0;
        };
        let mut at = self.clone();
        at.resync(rate, now);
        let before = at.next_free;
        at.reserve(rate, permits);
        permits == 0 || at.next_free - before <= self.max_debt
    }

    fn remaining(&self, now: u64) -> u64 {
        let Some(rate) = &self.rate else { return 0 };
        let mut at = self.clone();
        at.resync(rate, now);
        if at.next_free > at.now(rate, now) {
            return 0;
        }
        saturated(at.stored / rate.parts_per_permit)
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
        self.stored = (self.stored + spent).min(rate.max_stored);
        let price = rate.price(permits, self.stored, spent);
        self.next_free = (self.next_free - price).max(self.now(&rate, now));
    }

    fn boxed(&self) -> Box<dyn Oracle> {
        Box::new(self.clone())
    }
}
