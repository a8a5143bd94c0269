//! A set of who is inside.

use std::collections::BTreeMap;

use super::{Oracle, Request, Ticket};

/// At most so many permits out at a time.
#[derive(Clone, Debug)]
pub struct ConcurrencyOracle {
    max: u64,
    inside: BTreeMap<Ticket, u64>,
    tickets: u64,
}

impl ConcurrencyOracle {
    /// Nobody is inside.
    pub const fn new(max: u64) -> Self {
        Self {
            max,
            inside: BTreeMap::new(),
            tickets: 0,
        }
    }

    /// Permits that are out.
    pub fn out(&self) -> u64 {
        self.inside.values().sum()
    }

    /// Another number of places: who is inside stays inside.
    pub const fn change(&mut self, max: u64) {
        self.max = max;
    }
}

impl Oracle for ConcurrencyOracle {
    fn limit(&self) -> u64 {
        self.max
    }

    fn delay_of(&self, request: Request) -> Option<u64> {
        if request.forced {
            return request.forced_delay();
        }
        (request.permits == 0
            || u128::from(self.out()) + u128::from(request.permits) <= u128::from(self.max))
        .then_some(0)
    }

    fn ever_admits(&self, request: Request) -> bool {
        if request.forced {
            return request.forced_delay().is_some();
        }
        request.permits <= self.max
    }

    fn remaining(&self, _now: u64) -> u64 {
        self.max.saturating_sub(self.out())
    }

    fn take(&mut self, request: Request) -> Ticket {
        self.tickets += 1;
        self.inside.insert(Ticket(self.tickets), request.permits);
        Ticket(self.tickets)
    }

    fn give_back(&mut self, _now: u64, ticket: Ticket) {
        self.inside.remove(&ticket);
    }

    fn boxed(&self) -> Box<dyn Oracle> {
        Box::new(self.clone())
    }
}
