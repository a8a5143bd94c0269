//! A bucket with a level of tokens, which is a fraction.

use std::collections::BTreeMap;

use tidegate::Quota;
use tidegate::meter::TokenBucket;

use super::{Oracle, Request, Ticket, ceil_div, nanos, saturated};

/// `permits` drip in evenly over each `period`, until the bucket is full.
#[derive(Clone, Debug)]
pub struct TokenBucketOracle {
    permits: i128,
    /// In nanoseconds; also the denominator of the level.
    period: i128,
    burst: i128,
    /// Tokens, in parts of `1 / period`. Below zero when tokens to come are promised already.
    level: i128,
    /// By which the terms of the rate can be divided, and what the engine's word stays below.
    divisor: i128,
    largest: i128,
    latest: u64,
    taken: BTreeMap<Ticket, i128>,
    tickets: u64,
}

impl TokenBucketOracle {
    /// A bucket of which nothing has been taken: full, or with its initial permits.
    pub fn new(quota: Quota, start: u64) -> Self {
        let period = nanos(quota.period());
        let burst = i128::from(quota.burst_permits());
        Self {
            permits: i128::from(quota.permits()),
            period,
            burst,
            level: i128::from(quota.initial_permits()) * period,
            divisor: divisor(quota.permits().into(), period),
            largest: largest_word(quota),
            latest: start,
            taken: BTreeMap::new(),
            tickets: 0,
        }
    }

    fn level_at(&self, now: u64) -> i128 {
        let passed = i128::from(now.saturating_sub(self.latest));
        (self.level + self.permits * passed).min(self.burst * self.period)
    }

    fn advance(&mut self, now: u64) {
        self.level = self.level_at(now);
        self.latest = self.latest.max(now);
    }

    /// By how many permits (rounded up) more has been taken than there was.
    pub fn overdrawn(&self, now: u64) -> u64 {
        saturated(ceil_div((-self.level_at(now)).max(0), self.period))
    }

    /// Whether the engine's word holds what is in use after this, and another burst. The word is
    /// the time at which the bucket is full again, times the permits of the rate in lowest terms.
    fn has_room_for(&self, request: Request) -> bool {
        let now = i128::from(self.latest.max(request.now));
        let after = self.level_at(request.now) - i128::from(request.permits) * self.period;
        let missing = 2 * self.burst * self.period - after;
        (self.permits * now + missing) / self.divisor < self.largest
    }

    /// The same bucket under another quota: what is in use stays in use.
    pub fn change(&mut self, quota: Quota, now: u64) {
        self.advance(now);
        let in_use = self.burst * self.period - self.level;
        let (old_period, period) = (self.period, nanos(quota.period()));
        self.permits = i128::from(quota.permits());
        self.burst = i128::from(quota.burst_permits());
        self.period = period;
        // A fraction of another denominator, rounded against the caller by less than one part.
        let (whole, rest) = (in_use / old_period, in_use % old_period);
        let in_use = whole * period + ceil_div(rest * period, old_period);
        self.level = self.burst * period - in_use;
    }
}

/// What the word stays below that the engine has for this quota.
pub(super) fn largest_word(quota: Quota) -> i128 {
    if TokenBucket::<u64>::fits(quota) {
        i128::from(u64::MAX) - 1
    } else {
        i128::MAX
    }
}

/// The greatest common one.
const fn divisor(a: i128, b: i128) -> i128 {
    if a == 0 { b } else { divisor(b % a, a) }
}

impl Oracle for TokenBucketOracle {
    fn limit(&self) -> u64 {
        saturated(self.burst)
    }

    fn delay_of(&self, request: Request) -> Option<u64> {
        if request.forced {
            return request
                .forced_delay()
                .filter(|_| self.has_room_for(request));
        }
        let permits = i128::from(request.permits);
        if permits == 0 {
            return Some(0);
        }
        if permits > self.burst {
            return None;
        }
        let after = self.level_at(request.now) - permits * self.period;
        if after >= 0 {
            return Some(0);
        }
        let delay = ceil_div(-after, self.permits);
        (delay <= i128::from(request.patience)).then_some(saturated(delay))
    }

    fn ever_admits(&self, request: Request) -> bool {
        if request.forced {
            return self.delay_of(request).is_some();
        }
        i128::from(request.permits) <= self.burst
    }

    fn remaining(&self, now: u64) -> u64 {
        saturated(self.level_at(now).max(0) / self.period)
    }

    fn take(&mut self, request: Request) -> Ticket {
        self.advance(request.now);
        let permits = i128::from(request.permits);
        self.level -= permits * self.period;
        self.tickets += 1;
        self.taken.insert(Ticket(self.tickets), permits);
        Ticket(self.tickets)
    }

    fn give_back(&mut self, now: u64, ticket: Ticket) {
        self.advance(now);
        let permits = self.taken.remove(&ticket).unwrap_or(0);
        self.level = (self.level + permits * self.period).min(self.burst * self.period);
    }

    fn boxed(&self) -> Box<dyn Oracle> {
        Box::new(self.clone())
    }
}
