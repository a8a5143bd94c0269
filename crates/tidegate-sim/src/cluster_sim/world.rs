//! Nodes, Redis and the messages between them, in virtual time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use tidegate::Timestamp;
use tidegate_redis::{
    LEASE_BUDGET, LeaseNode, LeaseReply, LeaseRequest, LeaseTerms, NodeId, ScriptCall, SpendRequest,
};

use super::chance::Chance;
use super::faults::{Cut, Faults, Loss};
use super::key::SharedKey;
use super::measure::Outcome;
use super::scenario::Scenario;

/// What Redis's clock says when a run begins, microseconds.
const REDIS_START: u64 = 1_790_000_000_000_000;
/// A message takes so many microseconds ...
const SHORTEST_WAY: f64 = 250.0;
/// ... and so many more on average; one of 200 another 5 ms.
const MEAN_EXTRA: f64 = 100.0;
const SLOW: u64 = 5_000;
/// A late one comes up to so many microseconds later.
const LATEST: u64 = 400_000;
/// Clocks are fast or slow by up to so many millionths.
const MOST_DRIFT: u64 = 500;

/// Runs a scenario. The same seed gives the same run.
pub fn run(terms: &LeaseTerms, scenario: &Scenario, seed: u64) -> Outcome {
    World::new(terms, scenario, seed).run()
}

struct World<'a> {
    terms: &'a LeaseTerms,
    scenario: &'a Scenario,
    faults: &'a Faults,
    /// Arrivals have a source of chance of their own: they do not depend on what nodes do.
    arrivals: Chance,
    chance: Chance,
    /// Microseconds since the start.
    now: u64,
    events: BinaryHeap<Reverse<(u64, u64)>>,
    /// By the number of the event.
    waiting: BTreeMap<u64, Event>,
    key: SharedKey,
    snapshots: Vec<(u64, SharedKey)>,
    grants: Vec<(u64, u64)>,
    redis_step: i64,
    nodes: Vec<Node>,
    scheduled: u64,
    outcome: Outcome,
}

struct Node {
    lease: Option<LeaseNode>,
    /// What its clock said at the start, nanoseconds, and how many millionths it is fast or slow.
    offset: u64,
    drift: i64,
    is_crashed: bool,
    /// Of crashed ones before.
    minted: u64,
    life: u64,
}

#[derive(Debug)]
enum Event {
    /// At Redis.
    Request(usize, u64, LeaseRequest),
    /// At the node.
    Reply(usize, u64, LeaseRequest, Option<LeaseReply>),
}

impl<'a> World<'a> {
    fn new(terms: &'a LeaseTerms, scenario: &'a Scenario, seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let arrivals = Chance::new(chance.next());
        let node = |_| Node {
            lease: None,
            offset: chance.below(1 << 60),
            drift: chance.below(2 * MOST_DRIFT + 1).cast_signed() - MOST_DRIFT.cast_signed(),
            is_crashed: false,
            minted: 0,
            life: 0,
        };
        Self {
            terms,
            scenario,
            faults: &scenario.faults,
            nodes: (0..scenario.nodes).map(node).collect(),
            arrivals,
            chance,
            now: 0,
            events: BinaryHeap::new(),
            waiting: BTreeMap::new(),
            key: SharedKey::default(),
            snapshots: Vec::new(),
            grants: Vec::new(),
            redis_step: 0,
            scheduled: 0,
            outcome: Outcome::default(),
        }
    }

    fn run(mut self) -> Outcome {
        let mut offers = self.scenario.offered.iter().peekable();
        let mut offered: &[f64] = &[];
        let rate = self.terms.rate();
        let per_milli = rate.permits() as f64 * 1e6 / rate.nanos() as f64;
        for milli in 0..self.scenario.end {
            while let Some((_, offer)) = offers.next_if(|(from, _)| *from <= milli) {
                offered = offer;
            }
            self.deliver_until(milli * 1000);
            self.outcome.calls.push(0);
            self.strike(milli);
            let (mut all, mut passed) = self.spend(milli);
            for turn in 0..self.nodes.len() {
                // Not always the same node first.
                let at = (turn + milli as usize) % self.nodes.len();
                let arrived = self.arrivals.poisson(offered[at] * per_milli);
                if self.faults.stall_end(at, milli).is_some() || self.nodes[at].is_crashed {
                    continue;
                }
                all += arrived;
                passed += self.serve(at, arrived);
            }
            self.outcome.offered.push(all);
            self.outcome.admitted.push(passed);
        }
        let lives = self.nodes.iter().map(Node::minted_in_all);
        self.outcome.minted = lives.sum();
        self.outcome
    }

    /// Crashes, losses and steps of this millisecond.
    fn strike(&mut self, milli: u64) {
        for at in 0..self.nodes.len() {
            let is_crashed = self.faults.is_crashed(at, milli);
            if is_crashed && !self.nodes[at].is_crashed {
                self.nodes[at].forget();
            }
            self.nodes[at].is_crashed = is_crashed;
        }
        let faults = self.faults;
        for &Loss { at, back } in faults.losses.iter().filter(|loss| loss.at >= milli) {
            if back.is_some_and(|back| at - back == milli) {
                self.snapshots.push((at, self.key.clone()));
            }
            if at == milli {
                self.lose(at, back);
            }
        }
        for (_, step) in faults.steps.iter().filter(|(at, _)| *at == milli) {
            self.redis_step += step;
        }
    }

    fn lose(&mut self, at: u64, back: Option<u64>) {
        let snapshot = self.snapshots.iter().find(|(when, _)| *when == at);
        self.key = snapshot.map(|(_, key)| key.clone()).unwrap_or_default();
        let since = back.map_or(0, |back| at - back);
        let lost = self.grants.iter().filter(|(when, _)| *when / 1000 >= since);
        self.outcome.lost_grants += lost.map(|(_, granted)| granted).sum::<u64>();
    }

    /// Spends without a lease, at once: what was asked, and what there was.
    fn spend(&mut self, milli: u64) -> (u64, u64) {
        let every = self.scenario.spends;
        if every == 0 || self.faults.is_out(milli) || self.arrivals.below(every) > 0 {
            return (0, 0);
        }
        let want = self.arrivals.below(self.terms.burst() + 1);
        let request = SpendRequest {
            want,
            unit: 1,
            returned: 0,
        };
        let answer = self.at_key(&request.call(b"key", self.terms));
        self.trace(&answer.map(i64::cast_unsigned));
        let granted = answer[0].cast_unsigned();
        self.grants.push((self.now, granted));
        (want, granted)
    }

    /// Lets a node decide on what has arrived, and see whether it should call.
    fn serve(&mut self, at: usize, arrived: u64) -> u64 {
        let now = self.clock(at);
        let node = &mut self.nodes[at];
        if node.lease.as_ref().is_some_and(LeaseNode::has_left) {
            node.forget();
        }
        if node.lease.is_none() {
            if arrived == 0 {
                return 0;
            }
            node.life += 1;
            let id = NodeId(self.chance.next());
            node.lease = Some(LeaseNode::new(*self.terms, id, now));
        }
        let Some(lease) = &node.lease else { return 0 };
        let (mut passed, mut is_due) = (0, now >= lease.next_refresh());
        for _ in 0..arrived {
            let checked = lease.check(now, 1);
            passed += u64::from(checked.decision.is_allowed());
            is_due |= checked.is_due;
        }
        if is_due && let Some(request) = lease.refresh(now) {
            let life = node.life;
            self.send(at, life, request);
        }
        passed
    }

    fn send(&mut self, at: usize, life: u64, request: LeaseRequest) {
        let arrives = self.now + self.way();
        self.schedule(arrives, Event::Request(at, life, request));
        let budget = LEASE_BUDGET.as_micros() as u64;
        self.schedule(self.now + budget, Event::Reply(at, life, request, None));
    }

    fn deliver_until(&mut self, until: u64) {
        while let Some(Reverse((when, number))) = self.events.peek().copied()
            && when <= until
        {
            self.events.pop();
            self.now = when;
            match self.waiting.remove(&number) {
                Some(Event::Request(at, life, request)) => self.at_redis(at, life, request),
                Some(Event::Reply(at, life, request, reply)) => {
                    self.at_node(at, life, request, reply);
                }
                None => {}
            }
        }
        self.now = until;
    }

    fn at_redis(&mut self, at: usize, life: u64, request: LeaseRequest) {
        let milli = self.now / 1000;
        if self.faults.is_out(milli) || self.faults.is_cut(at, milli, Cut::Requests) {
            return;
        }
        let answer = self.at_key(&request.call(b"key", self.terms));
        if let Some(calls) = self.outcome.calls.last_mut() {
            *calls += 1;
        }
        self.trace(&[self.now, at as u64, request.seq]);
        self.trace(&answer.map(i64::cast_unsigned));
        self.grants
            .push((self.now, answer[0].max(0).cast_unsigned()));
        let is_lost = self.chance.below(1000) < self.faults.lost_answers;
        if is_lost || self.faults.is_cut(at, milli, Cut::Replies) {
            return;
        }
        let Ok(reply) = LeaseReply::of(self.terms, &answer) else {
            return;
        };
        let arrives = self.now + self.way();
        self.schedule(arrives, Event::Reply(at, life, request, Some(reply)));
    }

    fn at_key(&mut self, call: &ScriptCall) -> [i64; 7] {
        let answer = self.key.call(self.redis_clock(), call);
        let is_sound = self.key.is_sound(call);
        assert!(is_sound, "more is promised than there is");
        answer
    }

    /// An answer, or the end of the time for one. Whichever comes second finds nobody waiting.
    fn at_node(&mut self, at: usize, life: u64, request: LeaseRequest, reply: Option<LeaseReply>) {
        if let Some(end) = self.faults.stall_end(at, self.now / 1000) {
            self.schedule(end * 1000 + 1, Event::Reply(at, life, request, reply));
            return;
        }
        let now = self.clock(at);
        let chance = self.chance.next();
        let node = &self.nodes[at];
        let Some(lease) = node.lease.as_ref().filter(|_| node.life == life) else {
            return;
        };
        match &reply {
            Some(reply) => lease.answered(&request, reply, now, chance),
            None => lease.failed(&request, now, chance),
        }
    }

    fn way(&mut self) -> u64 {
        #[expect(clippy::cast_sign_loss, reason = "not below 0")]
        let mut way = (SHORTEST_WAY + self.chance.exponential(MEAN_EXTRA)) as u64;
        if self.chance.below(200) == 0 {
            way += SLOW;
        }
        if self.chance.below(1000) < self.faults.late {
            way += self.chance.below(LATEST);
        }
        way
    }

    fn schedule(&mut self, at: u64, event: Event) {
        self.scheduled += 1;
        self.events.push(Reverse((at, self.scheduled)));
        self.waiting.insert(self.scheduled, event);
    }

    fn redis_clock(&self) -> u64 {
        (REDIS_START + self.now).saturating_add_signed(self.redis_step)
    }

    fn clock(&self, at: usize) -> Timestamp {
        let Node { offset, drift, .. } = self.nodes[at];
        let passed = self.now * 1000;
        let drifted = i128::from(passed) * i128::from(drift) / 1_000_000;
        let passed = i128::from(passed) + drifted;
        Timestamp::from_nanos(offset + u64::try_from(passed).unwrap_or(0))
    }

    fn trace(&mut self, numbers: &[u64]) {
        for &number in numbers {
            // FNV-1a, a word at a time.
            self.outcome.trace = (self.outcome.trace ^ number).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

impl Node {
    fn forget(&mut self) {
        self.minted = self.minted_in_all();
        self.lease = None;
    }

    fn minted_in_all(&self) -> u64 {
        self.minted + self.lease.as_ref().map_or(0, LeaseNode::minted)
    }
}
