//! Guava's `SmoothBursty`, in its own variables: stored permits, and the time of the next free
//! ticket.

use std::collections::BTreeMap;
use std::time::Duration;

use tidegate::Quota;

use super::{Oracle, Request, Ticket, ceil_div, nanos, saturated};

/// `resync`, `reserve` and `tryAcquire` of Guava, without its truncation to microseconds, and with
/// a bound on how far ahead the next free ticket may be.
///
/// Stored permits are kept in parts of `1 / period`, times in parts of `1 / permits` nanoseconds:
/// so both are whole numbers.
#[derive(Clone, Debug)]
pub struct SmoothBurstyOracle {
    permits: i128,
    period: i128,
    burst: i128,
    max_debt: i128,
    stored: i128,
    next_free: i128,
    latest: u64,
    taken: BTreeMap<Ticket, i128>,
    tickets: u64,
}

impl SmoothBurstyOracle {
    /// Nothing is stored yet.
    pub fn new(quota: Quota, max_debt: Duration, start: u64) -> Self {
        let permits = i128::from(quota.permits());
        Self {
            permits,
            period: nanos(quota.period()),
            burst: i128::from(quota.burst_permits()),
            max_debt: nanos(max_debt).min(i128::from(u64::MAX)),
            stored: 0,
            next_free: i128::from(start) * permits,
            latest: start,
            taken: BTreeMap::new(),
            tickets: 0,
        }
    }

    fn now(&self, now: u64) -> i128 {
        i128::from(self.latest.max(now)) * self.permits
    }

    fn resync(&mut self, now: u64) {
        let now_parts = self.now(now);
        if now_parts > self.next_free {
            let gained = now_parts - self.next_free; // (now - N) / I, in parts of a permit
            self.stored = (self.stored + gained).min(self.burst * self.period);
            self.next_free = now_parts;
        }
        self.latest = self.latest.max(now);
    }

    /// Takes without asking.
    fn reserve(&mut self, permits: i128) {
        let wanted = permits * self.period;
        let spent = wanted.min(self.stored);
        self.stored -= spent;
        self.next_free += wanted - spent; // f * I, in parts of a nanosecond
    }
}

impl Oracle for SmoothBurstyOracle {
    fn limit(&self) -> u64 {
        saturated(self.burst)
    }

    fn delay_of(&self, request: Request) -> Option<u64> {
        if request.forced {
            return request.forced_delay();
        }
        if request.permits == 0 {
            return Some(0);
        }
        if self.permits == 0 {
            return None;
        }
        let now = self.now(request.now);
        let owed = (self.next_free - now).max(0);
        if owed > i128::from(request.patience) * self.permits {
            return None;
        }
        let mut after = self.clone();
        after.resync(request.now);
        after.reserve(i128::from(request.permits));
        let ahead = after.next_free - now;
        (ahead <= self.max_debt * self.permits).then_some(saturated(ceil_div(owed, self.permits)))
    }

    fn ever_admits(&self, request: Request) -> bool {
        if request.forced {
            return request.forced_delay().is_some();
        }
        let permits = request.permits;
        let unstored = (i128::from(permits) - self.burst).max(0) * self.period;
        permits == 0 || self.permits > 0 && unstored <= self.max_debt * self.permits
    }

    fn remaining(&self, now: u64) -> u64 {
        let mut at = self.clone();
        at.resync(now);
        saturated(at.stored / at.period)
    }

    fn take(&mut self, request: Request) -> Ticket {
        self.resync(request.now);
        self.reserve(i128::from(request.permits));
        self.tickets += 1;
        self.taken
            .insert(Ticket(self.tickets), i128::from(request.permits));
        Ticket(self.tickets)
    }

    fn give_back(&mut self, now: u64, ticket: Ticket) {
        self.resync(now);
        let mut back = self.taken.remove(&ticket).unwrap_or(0) * self.period;
        let owed = (self.next_free - self.now(now)).min(back);
        self.next_free -= owed;
        back -= owed;
        self.stored = (self.stored + back).min(self.burst * self.period);
    }

    fn boxed(&self) -> Box<dyn Oracle> {
        Box::new(self.clone())
    }
}
