//! The ways into the engine, behind one face.

use core::fmt::Debug;

use tidegate::meter::{
    FixedWindow, IntervalBucket, Nginx, SentinelWarmUp, SentinelWarmUpQueue, SlidingCounter,
    SlidingLog, SlidingWindow, SmoothBursty, SmoothWarmUp, Taken, TokenBucket,
};
use tidegate::{
    Algorithm, Ask, Decision, Enforcer, KeyHash, KeyHasher, Limiter, ManualClock, Meter, Quota,
    Receipt, Timestamp, enforcers,
};

/// One limit with one key.
pub(crate) trait Door: Debug {
    fn check(&mut self, now: Timestamp, ask: &Ask) -> Decision;
    fn peek(&mut self, now: Timestamp, ask: &Ask) -> Decision;
    /// Gives back what the check of this number took (of those that took something, from 0).
    fn give_back(&mut self, number: usize, now: Timestamp);
}

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// The pure state machine, in the widest state.
    Meter,
    /// `Limiter`, with a clock; the state is the narrowest, in an atomic where it fits.
    Limiter,
    /// A keyed store by `enforcers`: what a node asks.
    Keyed,
}

impl Way {
    pub(crate) const ALL: [Self; 3] = [Self::Meter, Self::Limiter, Self::Keyed];

    pub(crate) fn open(self, algorithm: &Algorithm, now: Timestamp) -> Box<dyn Door> {
        match self {
            Self::Meter => pure(algorithm, now),
            Self::Limiter => Box::new(Timed::new(algorithm, now)),
            Self::Keyed => Box::new(Keyed::new(algorithm)),
        }
    }
}

fn boxed<M: Meter>(meter: Result<M, tidegate::QuotaError>, now: Timestamp) -> Box<dyn Door> {
    let meter = meter.expect("strategies make valid limits");
    Box::new(Pure {
        state: meter.fresh(now),
        meter,
        taken: Vec::new(),
    })
}

fn pure(algorithm: &Algorithm, now: Timestamp) -> Box<dyn Door> {
    match *algorithm {
        Algorithm::TokenBucket(quota) => boxed(TokenBucket::<u128>::new(quota), now),
        Algorithm::FixedWindow { permits, window } => boxed(FixedWindow::new(permits, window), now),
        Algorithm::WindowFromFirst { permits, window } => {
            boxed(FixedWindow::from_first(permits, window), now)
        }
        Algorithm::CalendarWindow { permits, unit } => {
            boxed(FixedWindow::calendar(permits, unit), now)
        }
        Algorithm::SlidingLog { permits, window } => boxed(SlidingLog::new(permits, window), now),
        Algorithm::IntervalBucket { quota, aligned } => {
            boxed(IntervalBucket::new(quota, aligned), now)
        }
        Algorithm::SlidingWindow {
            permits,
            window,
            parts,
        } => boxed(SlidingWindow::new(permits, window, parts), now),
        Algorithm::SlidingCounter { permits, window } => {
            boxed(SlidingCounter::new(permits, window), now)
        }
        Algorithm::SmoothBursty { quota, max_debt } => {
            boxed(SmoothBursty::new(quota, max_debt), now)
        }
        Algorithm::SmoothWarmUp {
            quota,
            warm_up,
            cold_factor,
            max_debt,
        } => boxed(
            SmoothWarmUp::new(quota, warm_up, cold_factor, max_debt),
            now,
        ),
        Algorithm::Concurrency { max } => boxed(tidegate::gate::Concurrency::new(max), now),
        ref dialect => pure_dialect(dialect, now),
    }
}

fn pure_dialect(algorithm: &Algorithm, now: Timestamp) -> Box<dyn Door> {
    match *algorithm {
        Algorithm::Nginx {
            requests,
            per_minute,
            burst,
            delay,
        } => boxed(Nginx::new(requests, per_minute, burst, delay), now),
        Algorithm::RedisCell {
            max_burst,
            count,
            period_seconds,
        } => {
            let quota = Quota::redis_cell(max_burst, count, period_seconds);
            boxed(quota.and_then(TokenBucket::<u128>::new), now)
        }
        Algorithm::SentinelWarmUp {
            count,
            warm_up_seconds,
            cold_factor,
        } => boxed(
            SentinelWarmUp::new(count, warm_up_seconds, cold_factor),
            now,
        ),
        Algorithm::SentinelWarmUpQueue {
            count,
            warm_up_seconds,
            cold_factor,
        } => boxed(
            SentinelWarmUpQueue::new(count, warm_up_seconds, cold_factor),
            now,
        ),
        ref other => panic!("no door for {other:?}"),
    }
}

#[derive(Debug)]
struct Pure<M: Meter> {
    meter: M,
    state: M::State,
    taken: Vec<Taken>,
}

impl<M: Meter> Door for Pure<M> {
    fn check(&mut self, now: Timestamp, ask: &Ask) -> Decision {
        let plan = self.meter.plan(&self.state, now, ask);
        if let Some(change) = plan.change {
            self.taken.push(self.meter.commit(&mut self.state, change));
        }
        plan.decision
    }

    fn peek(&mut self, now: Timestamp, ask: &Ask) -> Decision {
        let verdict = self.meter.plan(&self.state, now, ask).decision.verdict;
        let nothing = self.meter.plan(&self.state, now, &Ask::new(0)).decision;
        Decision { verdict, ..nothing }
    }

    fn give_back(&mut self, number: usize, now: Timestamp) {
        self.meter.undo(&mut self.state, &self.taken[number], now);
    }
}

#[derive(Debug)]
struct Timed {
    limiter: Limiter<ManualClock>,
    clock: ManualClock,
    receipts: Vec<Option<Receipt>>,
}

impl Timed {
    fn new(algorithm: &Algorithm, now: Timestamp) -> Self {
        let clock = ManualClock::new(now);
        let limiter = Limiter::with_clock(*algorithm, clock.clone());
        Self {
            limiter: limiter.expect("strategies make valid limits"),
            clock,
            receipts: Vec::new(),
        }
    }
}

impl Door for Timed {
    fn check(&mut self, now: Timestamp, ask: &Ask) -> Decision {
        self.clock.set(now);
        let (decision, receipt) = self.limiter.reserve(ask);
        if receipt.is_some() {
            self.receipts.push(receipt);
        }
        decision
    }

    fn peek(&mut self, now: Timestamp, ask: &Ask) -> Decision {
        self.clock.set(now);
        self.limiter.peek(ask)
    }

    fn give_back(&mut self, number: usize, now: Timestamp) {
        self.clock.set(now);
        let receipt = self.receipts[number].take().expect("given back once");
        self.limiter.give_back(receipt).expect("its own receipt");
    }
}

#[derive(Debug)]
struct Keyed {
    limit: Enforcer,
    key: KeyHash,
    receipts: Vec<Option<Receipt>>,
}

impl Keyed {
    fn new(algorithm: &Algorithm) -> Self {
        Self {
            limit: keyed(algorithm, 100),
            key: KeyHasher::with_keys(1, 2).hash("the one key"),
            receipts: Vec::new(),
        }
    }
}

/// One limit over a new store.
pub(crate) fn keyed(algorithm: &Algorithm, max_keys: usize) -> Enforcer {
    let mut limits = enforcers(&[*algorithm], max_keys).expect("strategies make valid limits");
    limits.pop().expect("one limit for one algorithm")
}

impl Door for Keyed {
    fn check(&mut self, now: Timestamp, ask: &Ask) -> Decision {
        let (decision, receipt) = self.limit.check(self.key, now, ask);
        if receipt.is_some() {
            self.receipts.push(receipt);
        }
        decision
    }

    fn peek(&mut self, now: Timestamp, ask: &Ask) -> Decision {
        self.limit.peek(self.key, now, ask)
    }

    fn give_back(&mut self, number: usize, now: Timestamp) {
        let receipt = self.receipts[number].take().expect("given back once");
        self.limit.give_back(receipt, now).expect("its own receipt");
    }
}
