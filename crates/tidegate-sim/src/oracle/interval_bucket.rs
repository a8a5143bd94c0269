//! A bucket with whole tokens, and a time at which the next refill comes.

use std::collections::BTreeMap;

use tidegate::Quota;

use super::{Oracle, Request, Ticket, ceil_div, nanos, saturated};

/// `permits` come at once at the end of each period, until the bucket is full.
#[derive(Clone, Debug)]
pub struct IntervalBucketOracle {
    bucket: Bucket,
    latest: u64,
    taken: BTreeMap<Ticket, i128>,
    tickets: u64,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    permits: i128,
    period: i128,
    burst: i128,
    aligned: bool,
    /// Below zero when refills to come are promised already.
    tokens: i128,
    /// When the next refill comes; a full bucket waits for none.
    next: Option<i128>,
}

impl Bucket {
    /// When the first refill comes of a bucket that is no longer full from `now` on.
    fn first_refill(&self, now: i128) -> i128 {
        if self.aligned {
            (now / self.period + 1) * self.period
        } else {
            now + self.period
        }
    }

    fn refill(&mut self, at: i128) {
        self.tokens += self.permits;
        self.next = Some(at + self.period);
        self.rest_if_full();
    }

    fn rest_if_full(&mut self) {
        if self.tokens >= self.burst {
            self.tokens = self.burst;
            self.next = None;
        }
    }

    /// The same at `now`, after one refill and another. Where there were more than a few before
    /// it is full, most of them come in one go.
    fn at(mut self, now: i128) -> Self {
        if let Some(next) = self.next.filter(|next| *next <= now) {
            let to_full = (self.burst - self.tokens) / self.permits.max(1);
            let go = to_full.min((now - next) / self.period) - 3;
            if go > 0 {
                self.tokens += go * self.permits;
                self.next = Some(next + go * self.period);
            }
        }
        while let Some(next) = self.next.filter(|next| *next <= now) {
            self.refill(next);
        }
        self
    }
}

impl IntervalBucketOracle {
    /// A bucket of which nothing has been taken.
    pub fn new(quota: Quota, aligned: bool, start: u64) -> Self {
        let mut bucket = Bucket {
            permits: i128::from(quota.permits()),
            period: nanos(quota.period()),
            burst: i128::from(quota.burst_permits()),
            aligned,
            tokens: i128::from(quota.initial_permits()),
            next: None,
        };
        bucket.next = Some(bucket.first_refill(i128::from(start)));
        bucket.rest_if_full();
        Self {
            bucket,
            latest: start,
            taken: BTreeMap::new(),
            tickets: 0,
        }
    }

    fn at(&self, now: u64) -> (Bucket, i128) {
        let now = i128::from(self.latest.max(now));
        (self.bucket.at(now), now)
    }

    fn advance(&mut self, now: u64) -> i128 {
        let (bucket, at) = self.at(now);
        self.latest = self.latest.max(now);
        self.bucket = bucket;
        at
    }

    /// The same bucket under another quota: what is in use stays in use. The period that runs is as
    /// long as the new one, if that is not over already; then a new one begins.
    pub fn change(&mut self, quota: Quota, aligned: bool, now: u64) {
        let now = self.advance(now);
        let old = self.bucket;
        let new = &mut self.bucket;
        new.permits = i128::from(quota.permits());
        new.period = nanos(quota.period());
        new.burst = i128::from(quota.burst_permits());
        new.aligned = aligned;
        new.tokens = new.burst - (old.burst - old.tokens);
        new.next = old.next.map(|next| next - old.period + new.period);
        if aligned || new.next.is_none_or(|next| next <= now) {
            new.next = Some(new.first_refill(now));
        }
        new.rest_if_full();
    }
}

impl Oracle for IntervalBucketOracle {
    fn limit(&self) -> u64 {
        saturated(self.bucket.burst)
    }

    fn delay_of(&self, request: Request) -> Option<u64> {
        if request.forced {
            return request.forced_delay();
        }
        let permits = i128::from(request.permits);
        if permits == 0 {
            return Some(0);
        }
        let (bucket, now) = self.at(request.now);
        if permits > bucket.burst {
            return None;
        }
        let missing = permits - bucket.tokens;
        if missing <= 0 {
            return Some(0);
        }
        let next = bucket.next.unwrap_or_else(|| bucket.first_refill(now));
        let refills = ceil_div(missing, bucket.permits);
        let delay = next + (refills - 1) * bucket.period - now;
        (delay <= i128::from(request.patience)).then_some(saturated(delay))
    }

    fn ever_admits(&self, request: Request) -> bool {
        if request.forced {
            return request.forced_delay().is_some();
        }
        i128::from(request.permits) <= self.bucket.burst
    }

    fn remaining(&self, now: u64) -> u64 {
        saturated(self.at(now).0.tokens)
    }

    fn take(&mut self, request: Request) -> Ticket {
        let now = self.advance(request.now);
        let permits = i128::from(request.permits);
        self.bucket.tokens -= permits;
        if self.bucket.next.is_none() {
            self.bucket.next = Some(self.bucket.first_refill(now));
        }
        self.tickets += 1;
        self.taken.insert(Ticket(self.tickets), permits);
        Ticket(self.tickets)
    }

    fn give_back(&mut self, now: u64, ticket: Ticket) {
        self.advance(now);
        self.bucket.tokens += self.taken.remove(&ticket).unwrap_or(0);
        self.bucket.rest_if_full();
    }

    fn boxed(&self) -> Box<dyn Oracle> {
        Box::new(self.clone())
    }
}
