//! nginx's own integers: a node with an excess in thousandths of a request and a millisecond.

use std::collections::BTreeMap;

use super::{Oracle, Request, Ticket, saturated};

/// `limit_req` as `ngx_http_limit_req_module` counts. More permits than one are so many requests
/// in one millisecond, all or none; what is given back is taken off the excess.
#[derive(Clone, Debug)]
pub struct NginxOracle {
    rate: i128,
    burst: i128,
    /// `nodelay` is more than there will ever be.
    delay: i128,
    node: Option<Node>,
    latest: u64,
    taken: BTreeMap<Ticket, i128>,
    tickets: u64,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    excess: i128,
    last: i128,
}

impl NginxOracle {
    /// A zone without nodes.
    pub fn new(requests: u64, per_minute: bool, burst: u64, delay: Option<u64>) -> Self {
        let scale = if per_minute { 60 } else { 1 };
        Self {
            rate: i128::from(requests) * 1_000 / scale,
            burst: i128::from(burst) * 1_000,
            delay: delay.map_or(i128::MAX, |delay| i128::from(delay) * 1_000),
            node: None,
            latest: 0,
            taken: BTreeMap::new(),
            tickets: 0,
        }
    }

    fn millis(&self, now: u64) -> i128 {
        i128::from(self.latest.max(now)) / 1_000_000
    }

    /// The excess after so many requests (at least one) at `now`, were they let through.
    fn excess_of(&self, now: u64, requests: i128) -> i128 {
        let first = match self.node {
            None => 0,
            Some(Node { excess, last }) => {
                let passed = self.millis(now) - last;
                (excess - self.rate * passed / 1_000 + 1_000).max(0)
            }
        };
        // The others find a node of this very millisecond.
        first + (requests - 1) * 1_000
    }

    /// After how many milliseconds nginx sends on a request that led to this excess.
    fn delay_millis(&self, excess: i128) -> i128 {
        (excess - self.delay).max(0) * 1_000 / self.rate
    }

    /// Whether requests that lead to this excess go ahead, for who waits so long.
    fn passes(&self, excess: i128, patience: u64) -> Option<i128> {
        let delay = self.delay_millis(excess) * 1_000_000;
        (excess <= self.burst && delay <= i128::from(patience)).then_some(delay)
    }

    /// How many at once go ahead without delay, where the first leads to this excess: the most
    /// for which it is true, by halving.
    fn at_once(&self, first: i128) -> u64 {
        let (mut fit, mut too_many) = (0, self.burst / 1_000 + 2);
        while too_many - fit > 1 {
            let requests = i128::midpoint(fit, too_many);
            match self.passes(first + (requests - 1) * 1_000, 0) {
                Some(_) => fit = requests,
                None => too_many = requests,
            }
        }
        saturated(fit)
    }

    /// The same node in another zone: the excess has drained at the old rate until now.
    pub fn change(&mut self, new: &Self, now: u64) {
        let excess = self.excess_of(now, 1) - 1_000;
        let last = self.millis(now);
        self.latest = self.latest.max(now);
        self.node = Some(Node { excess, last });
        (self.rate, self.burst, self.delay) = (new.rate, new.burst, new.delay);
    }
}

impl Oracle for NginxOracle {
    fn limit(&self) -> u64 {
        self.at_once(0)
    }

    fn delay_of(&self, request: Request) -> Option<u64> {
        if request.forced {
            return request.forced_delay();
        }
        let requests = i128::from(request.permits);
        if requests == 0 {
            return Some(0);
        }
        let excess = self.excess_of(request.now, requests);
        self.passes(excess, request.patience).map(saturated)
    }

    fn ever_admits(&self, request: Request) -> bool {
        if request.forced {
            return request.forced_delay().is_some();
        }
        let rested = (i128::from(request.permits) - 1) * 1_000;
        self.passes(rested, request.patience).is_some()
    }

    fn remaining(&self, now: u64) -> u64 {
        self.at_once(self.excess_of(now, 1))
    }

    fn take(&mut self, request: Request) -> Ticket {
        let requests = i128::from(request.permits);
        let excess = self.excess_of(request.now, requests);
        let last = self.millis(request.now);
        self.latest = self.latest.max(request.now);
        self.node = Some(Node { excess, last });
        self.tickets += 1;
        self.taken.insert(Ticket(self.tickets), requests);
        Ticket(self.tickets)
    }

    fn give_back(&mut self, now: u64, ticket: Ticket) {
        self.latest = self.latest.max(now);
        let requests = self.taken.remove(&ticket).unwrap_or(0);
        if let Some(node) = &mut self.node {
            // Below -1,000 a node would be better than none.
            node.excess = (node.excess - requests * 1_000).max(-1_000);
        }
    }

    fn boxed(&self) -> Box<dyn Oracle> {
        Box::new(self.clone())
    }
}
