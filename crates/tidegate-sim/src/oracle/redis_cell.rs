//! redis-cell's GCRA, in its own variables and whole nanoseconds.

use std::collections::BTreeMap;

use tidegate::Quota;

use super::token_bucket::largest_word;
use super::{Oracle, Request, Ticket, saturated};

/// `tat`, `emission_interval` and `delay_variation_tolerance`. What remains is counted exactly,
/// where redis-cell divides whole microseconds.
#[derive(Clone, Debug)]
pub struct RedisCellOracle {
    limit: i128,
    emission_interval: i128,
    delay_variation_tolerance: i128,
    tat: Option<i128>,
    largest: i128,
    latest: u64,
    taken: BTreeMap<Ticket, i128>,
    tickets: u64,
}

impl RedisCellOracle {
    /// A key that is not there.
    pub fn new(max_burst: u64, count: u64, period_seconds: u64) -> Self {
        let period = u128::from(period_seconds) * 1_000_000_000;
        let emission_interval = i128::from((period as f64 / count as f64) as i64);
        let limit = i128::from(max_burst) + 1;
        Self {
            limit,
            emission_interval,
            delay_variation_tolerance: emission_interval * limit,
            tat: None,
            largest: Quota::redis_cell(max_burst, count, period_seconds)
                .map_or(i128::MAX, largest_word),
            latest: 0,
            taken: BTreeMap::new(),
            tickets: 0,
        }
    }

    fn now(&self, now: u64) -> i128 {
        i128::from(self.latest.max(now))
    }

    fn new_tat(&self, now: u64, quantity: i128) -> i128 {
        let now = self.now(now);
        self.tat.unwrap_or(now).max(now) + self.emission_interval * quantity
    }

    /// Whether the engine's word holds the `tat` after this, and another burst.
    fn has_room_for(&self, request: Request) -> bool {
        let tat = self.new_tat(request.now, request.permits.into());
        tat + self.delay_variation_tolerance < self.largest
    }

    /// For how long one has to wait until it may go: `allow_at - now`, if that is still to come.
    fn wait(&self, now: u64, quantity: i128) -> i128 {
        let allow_at = self.new_tat(now, quantity) - self.delay_variation_tolerance;
        (allow_at - self.now(now)).max(0)
    }
}

impl Oracle for RedisCellOracle {
    fn limit(&self) -> u64 {
        saturated(self.limit)
    }

    fn delay_of(&self, request: Request) -> Option<u64> {
        if request.forced {
            return request
                .forced_delay()
                .filter(|_| self.has_room_for(request));
        }
        let quantity = i128::from(request.permits);
        if quantity == 0 {
            return Some(0);
        }
        let wait = self.wait(request.now, quantity);
        let fits = quantity <= self.limit && wait <= i128::from(request.patience);
        fits.then_some(saturated(wait))
    }

    fn ever_admits(&self, request: Request) -> bool {
        if request.forced {
            return self.delay_of(request).is_some();
        }
        i128::from(request.permits) <= self.limit
    }

    fn remaining(&self, now: u64) -> u64 {
        let ttl = self.new_tat(now, 0) - self.now(now);
        saturated((self.delay_variation_tolerance - ttl) / self.emission_interval)
    }

    fn take(&mut self, request: Request) -> Ticket {
        let quantity = i128::from(request.permits);
        self.tat = Some(self.new_tat(request.now, quantity));
        self.latest = self.latest.max(request.now);
        self.tickets += 1;
        self.taken.insert(Ticket(self.tickets), quantity);
        Ticket(self.tickets)
    }

    fn give_back(&mut self, now: u64, ticket: Ticket) {
        self.latest = self.latest.max(now);
        let quantity = self.taken.remove(&ticket).unwrap_or(0);
        self.tat = self.tat.map(|tat| tat - self.emission_interval * quantity);
    }

    fn boxed(&self) -> Box<dyn Oracle> {
        Box::new(self.clone())
    }
}
