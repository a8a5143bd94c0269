//! What is limited: in nginx's words, in ours, and in nginx's own arithmetic.

use std::collections::HashMap;

/// A zone and the `limit_req` that uses it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Zone {
    /// Requests, and whether a minute instead of a second.
    pub(crate) rate: (i64, bool),
    /// nginx's own: without the first request.
    pub(crate) burst: i64,
    pub(crate) delay: Delay,
}

/// Which of the requests beyond the rate are delayed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Delay {
    All,
    Beyond(i64),
    None,
}

impl Zone {
    /// `rate=` of a `limit_req_zone`.
    pub(crate) fn nginx_rate(&self) -> String {
        let (requests, per_minute) = self.rate;
        format!("{requests}r/{}", if per_minute { 'm' } else { 's' })
    }

    /// What stands behind `zone=` of a `limit_req`.
    pub(crate) fn nginx_words(&self) -> String {
        let burst = match self.burst {
            0 => String::new(),
            burst => format!(" burst={burst}"),
        };
        match self.delay {
            Delay::All => burst,
            Delay::Beyond(delay) => format!("{burst} delay={delay}"),
            Delay::None => format!("{burst} nodelay"),
        }
    }

    /// The numbers of the limit.
    pub(crate) fn policy(&self) -> String {
        let (requests, per_minute) = self.rate;
        let unit = if per_minute { "min" } else { "s" };
        let delay = match self.delay {
            Delay::All => String::new(),
            Delay::Beyond(delay) => format!(", delay: {delay}"),
            Delay::None => ", nodelay: true".to_owned(),
        };
        let burst = self.burst + 1;
        format!("algorithm: nginx, rate: {requests}/{unit}, burst: {burst}{delay}")
    }

    /// Thousandths of a request per second.
    const fn thousandths(&self) -> i64 {
        let (requests, per_minute) = self.rate;
        requests * 1_000 / if per_minute { 60 } else { 1 }
    }

    /// The delay of a request that led to this excess.
    fn delay_millis(&self, excess: i64) -> i64 {
        let free = match self.delay {
            Delay::All => 0,
            Delay::Beyond(delay) => delay * 1_000,
            Delay::None => return 0,
        };
        (excess - free).max(0) * 1_000 / self.thousandths()
    }
}

/// `$limit_req_status`, with the delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Status {
    Passed,
    Delayed(i64),
    Rejected,
}

/// nginx's nodes of several zones: who asks has a key in each.
#[derive(Debug)]
pub(crate) struct Model<'a> {
    zones: &'a [Zone],
    /// Excess and millisecond by zone and key.
    nodes: HashMap<(usize, i64), (i64, i64)>,
}

impl<'a> Model<'a> {
    pub(crate) fn new(zones: &'a [Zone]) -> Self {
        Self {
            zones,
            nodes: HashMap::new(),
        }
    }

    /// A request at this millisecond; its key in the first zone is `client`, and one and the same
    /// in all others.
    pub(crate) fn ask(&mut self, now: i64, client: i64) -> Status {
        let mut new = Vec::new();
        let mut delay = 0;
        for (at, zone) in self.zones.iter().enumerate() {
            let key = (at, if at == 0 { client } else { 0 });
            let excess = self.nodes.get(&key).map_or(0, |(excess, last)| {
                (excess - zone.thousandths() * (now - last) / 1_000 + 1_000).max(0)
            });
            if excess > zone.burst * 1_000 {
                return Status::Rejected;
            }
            delay = delay.max(zone.delay_millis(excess));
            new.push((key, (excess, now)));
        }
        self.nodes.extend(new);
        match delay {
            0 => Status::Passed,
            delay => Status::Delayed(delay),
        }
    }
}
