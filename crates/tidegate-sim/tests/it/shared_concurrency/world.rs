//! Nodes, one Redis and links between them, in simulated time; everything follows from a seed.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tidegate::Timestamp;
use tidegate_redis::concurrency::{
    Asked, ConcurrencyOptions, DoubleWindow, Event, NodeShare, Places, Scheme, Slots,
};
use tidegate_sim::redis_concurrency::{DoubleWindowModel, NodeShareModel, ScriptModel, SlotsModel};

pub(crate) const MS: u64 = 1_000_000;
const BUDGET: u64 = 25 * MS;
/// When the simulation begins, by Redis's clock, in microseconds.
const BEGIN_US: u64 = 1_790_000_000_000_000;

/// Random numbers (an xorshift with a multiplication; Vigna, 2016).
#[derive(Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) const fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) % end
    }

    pub(crate) const fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// How often what fails.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    /// Of messages, in percent: lost, and as many late by seconds.
    pub(crate) messages: u64,
    /// Time between two kills, stalls or cut-offs, on average; 0 for none.
    pub(crate) every: u64,
    /// Whether Redis loses its latest writes now and then.
    pub(crate) rollbacks: bool,
}

#[derive(Debug)]
enum Happens {
    Request(usize),
    End(usize, u64, u64),
    Wake(usize, u64),
    Arrives(usize, u64, u64, Vec<Vec<u8>>),
    Answer(usize, u64, u64, Vec<i64>),
    Timeout(usize, u64, u64),
    Fault,
}

#[derive(Clone, Copy, Debug)]
struct InFlight {
    permits: u64,
    lost: bool,
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) places: Box<dyn Places>,
    /// Which process this is; another after each kill.
    life: u64,
    call: u64,
    drift_ppm: u64,
    stalled_until: u64,
    cut_until: u64,
    waits: BTreeMap<u64, (u64, u64)>,
    in_flight: BTreeMap<u64, InFlight>,
    wakes_at: u64,
}

pub(crate) struct World {
    options: ConcurrencyOptions,
    scheme: Scheme,
    limit: u64,
    lease: u64,
    pub(crate) now: u64,
    pub(crate) chance: Chance,
    faults: Faults,
    happens: BTreeMap<(u64, u64), Happens>,
    serial: u64,
    redis: Box<dyn ScriptModel>,
    earlier: VecDeque<Box<dyn ScriptModel>>,
    pub(crate) nodes: Vec<Node>,
    /// Requests of a node come every so often on average, and stay so long at most.
    pub(crate) load: (u64, u64),
    pub(crate) granted: u64,
    pub(crate) denied: u64,
    pub(crate) calls: u64,
    pub(crate) lost: u64,
    pub(crate) rolled_back_at: Option<u64>,
    /// The longest request that is never to be lost: of node 0, which nothing befalls.
    pub(crate) long_lived: Option<u64>,
}

pub(crate) fn places(scheme: Scheme, options: &ConcurrencyOptions, seed: u64) -> Box<dyn Places> {
    match scheme {
        Scheme::Slots => Box::new(Slots::new(options, seed)),
        Scheme::DoubleWindow => Box::new(DoubleWindow::new(options, seed)),
        _ => Box::new(NodeShare::new(options, seed)),
    }
}

fn model(scheme: Scheme) -> Box<dyn ScriptModel> {
    match scheme {
        Scheme::Slots => Box::<SlotsModel>::default(),
        Scheme::DoubleWindow => Box::<DoubleWindowModel>::default(),
        _ => Box::<NodeShareModel>::default(),
    }
}

impl World {
    pub(crate) fn new(scheme: Scheme, limit: u64, nodes: usize, faults: Faults, seed: u64) -> Self {
        let lease = 900 * MS;
        let options = ConcurrencyOptions::new(limit)
            .scheme(scheme)
            .ttl(Duration::from_nanos(lease))
            .window(Duration::from_nanos(lease));
        options.validate().expect("such a limit can be");
        let mut world = Self {
            options,
            scheme,
            limit,
            lease,
            now: 0,
            chance: Chance::new(seed),
            faults,
            happens: BTreeMap::new(),
            serial: 0,
            redis: model(scheme),
            earlier: VecDeque::new(),
            nodes: Vec::new(),
            load: (40 * MS, 400 * MS),
            granted: 0,
            denied: 0,
            calls: 0,
            lost: 0,
            rolled_back_at: None,
            long_lived: None,
        };
        for _ in 0..nodes {
            world.start_node();
        }
        if faults.every > 0 {
            world.in_about(faults.every, Happens::Fault);
        }
        world
    }

    fn start_node(&mut self) {
        let node = self.new_node();
        self.nodes.push(node);
        let index = self.nodes.len() - 1;
        self.in_about(self.load.0, Happens::Request(index));
    }

    fn new_node(&mut self) -> Node {
        let seed = self.chance.below(u64::MAX);
        self.serial += 1;
        Node {
            places: places(self.scheme, &self.options, seed),
            life: self.serial,
            call: 0,
            drift_ppm: self.chance.below(400),
            stalled_until: 0,
            cut_until: 0,
            waits: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            wakes_at: u64::MAX,
        }
    }

    fn at(&mut self, time: u64, what: Happens) {
        self.serial += 1;
        self.happens.insert((time, self.serial), what);
    }

    fn in_about(&mut self, wait: u64, what: Happens) {
        let wait = self.chance.below(2 * wait) + 1;
        self.at(self.now + wait, what);
    }

    /// A node's clock: it began at another time, and is slow by up to 200 millionths, or fast.
    fn clock(&self, node: usize) -> Timestamp {
        let drift = self.nodes[node].drift_ppm;
        let ahead = self.now / 1_000_000 * drift;
        let behind = self.now / 1_000_000 * 200;
        Timestamp::from_nanos(5_000 * MS + self.now + ahead - behind)
    }

    pub(crate) fn run(&mut self, until: u64, mut check: impl FnMut(&Self)) {
        while let Some(entry) = self.happens.first_entry()
            && entry.key().0 <= until
        {
            let ((time, _), what) = entry.remove_entry();
            self.now = time;
            self.happen(what);
            self.clocks_go_on();
            check(self);
        }
        self.now = until;
        self.clocks_go_on();
        check(self);
    }

    /// Requests in flight that nobody has been told to stop.
    pub(crate) fn in_flight(&self) -> u64 {
        let all = self.nodes.iter().flat_map(|node| node.in_flight.values());
        all.filter(|one| !one.lost).map(|one| one.permits).sum()
    }

    fn happen(&mut self, what: Happens) {
        match what {
            Happens::Request(node) => {
                self.in_about(self.load.0, Happens::Request(node));
                let permits = 1 + self.chance.below(self.limit.min(3));
                let stays = 1 + self.chance.below(self.load.1);
                if self.nodes[node].stalled_until <= self.now {
                    self.ask(node, permits, stays);
                }
            }
            Happens::End(node, life, ticket) if self.is_life(node, life) => {
                let stalled = self.nodes[node].stalled_until;
                if stalled > self.now {
                    self.at(stalled, Happens::End(node, life, ticket));
                } else if self.nodes[node].in_flight.remove(&ticket).is_some() {
                    let clock = self.clock(node);
                    self.nodes[node].places.give_back(clock, ticket);
                    self.go_on(node);
                }
            }
            // Not one that an earlier one has replaced.
            Happens::Wake(node, life)
                if self.is_life(node, life) && self.nodes[node].wakes_at == self.now =>
            {
                self.nodes[node].wakes_at = u64::MAX;
                self.go_on(node);
            }
            Happens::Arrives(node, life, call, args) => {
                self.serve(node, life, call, &args);
            }
            Happens::Answer(node, life, call, numbers) if self.is_life(node, life) => {
                self.answer(node, call, Some(&numbers));
            }
            Happens::Timeout(node, life, call) if self.is_life(node, life) => {
                self.answer(node, call, None);
            }
            Happens::Fault => self.fault(),
            _ => {}
        }
    }

    fn is_life(&self, node: usize, life: u64) -> bool {
        self.nodes[node].life == life
    }

    pub(crate) fn ask(&mut self, node: usize, permits: u64, stays: u64) {
        let clock = self.clock(node);
        match self.nodes[node].places.ask(clock, permits) {
            Asked::Granted(ticket) => self.begin(node, ticket, permits, stays),
            Asked::Waits(ticket) => {
                self.nodes[node].waits.insert(ticket, (permits, stays));
                self.go_on(node);
                // Some do not wait for the answer, whose call is under way by now.
                let is_gone = self.faults.messages > 0 && self.chance.percent(5);
                if is_gone && self.nodes[node].waits.remove(&ticket).is_some() {
                    self.nodes[node].places.give_back(clock, ticket);
                }
            }
            Asked::Denied(_) | Asked::Unavailable => self.denied += 1,
        }
        self.go_on(node);
    }

    fn begin(&mut self, node: usize, ticket: u64, permits: u64, stays: u64) {
        self.granted += 1;
        let one = InFlight {
            permits,
            lost: false,
        };
        self.nodes[node].in_flight.insert(ticket, one);
        let life = self.nodes[node].life;
        if stays < u64::MAX {
            self.at(self.now + stays, Happens::End(node, life, ticket));
        } else {
            self.long_lived = Some(ticket);
        }
    }

    /// Makes the node's next call, if there is one, and sees to it that it looks again.
    fn go_on(&mut self, node: usize) {
        let clock = self.clock(node);
        self.hear(node);
        let stalled = self.nodes[node].stalled_until;
        if stalled > self.now {
            self.wake(node, stalled);
            return;
        }
        if let Some(request) = self.nodes[node].places.poll(clock) {
            self.send(node, request.args);
        }
        self.hear(node);
        let Some(next) = self.nodes[node].places.next() else {
            return;
        };
        let wait = next.nanos_since(clock).saturating_mul(1_001) / 1_000 + 1;
        let at = self.now.saturating_add(wait);
        if at < self.nodes[node].wakes_at {
            self.wake(node, at);
        }
    }

    fn wake(&mut self, node: usize, at: u64) {
        self.nodes[node].wakes_at = at;
        let life = self.nodes[node].life;
        self.at(at, Happens::Wake(node, life));
    }

    fn send(&mut self, node: usize, args: Vec<Vec<u8>>) {
        self.calls += 1;
        let now = self.now;
        let state = &mut self.nodes[node];
        state.call += 1;
        let (life, call) = (state.life, state.call);
        let is_cut = state.cut_until > now;
        self.at(now + BUDGET, Happens::Timeout(node, life, call));
        let lost = self.chance.percent(self.faults.messages) || is_cut && self.chance.percent(50);
        let late = self.chance.percent(self.faults.messages);
        if !lost {
            let wait = if late { 3_000 * MS } else { 2 * MS };
            let wait = 1 + self.chance.below(wait);
            self.at(now + wait, Happens::Arrives(node, life, call, args));
        }
    }

    fn serve(&mut self, node: usize, life: u64, call: u64, args: &[Vec<u8>]) {
        if self.faults.rollbacks {
            self.earlier.push_back(self.redis.snapshot());
            if self.earlier.len() > 64 {
                self.earlier.pop_front();
            }
        }
        let numbers = self.redis.call(BEGIN_US + self.now / 1_000, args);
        let is_cut = self.nodes[node].cut_until > self.now;
        if !is_cut && !self.chance.percent(self.faults.messages) {
            let wait = 1 + self.chance.below(2 * MS);
            self.at(self.now + wait, Happens::Answer(node, life, call, numbers));
        }
    }

    fn answer(&mut self, node: usize, call: u64, numbers: Option<&[i64]>) {
        // One call at a time: what comes after the budget is not heard.
        if self.nodes[node].call != call {
            return;
        }
        let stalled = self.nodes[node].stalled_until;
        if stalled > self.now {
            let life = self.nodes[node].life;
            let again = match numbers {
                Some(numbers) => Happens::Answer(node, life, call, numbers.to_vec()),
                None => Happens::Timeout(node, life, call),
            };
            self.at(stalled, again);
            return;
        }
        self.nodes[node].call += 1;
        let clock = self.clock(node);
        let understood = self.nodes[node].places.answered(clock, numbers);
        assert!(understood, "{numbers:?}");
        self.go_on(node);
    }

    /// What is lost is lost by the clock, also while a process stands still.
    fn clocks_go_on(&mut self) {
        for node in 0..self.nodes.len() {
            let clock = self.clock(node);
            self.nodes[node].places.lapse(clock);
            self.hear(node);
        }
    }

    fn hear(&mut self, node: usize) {
        for event in self.nodes[node].places.take_events() {
            match event {
                Event::Granted(ticket) => {
                    let asked = self.nodes[node].waits.remove(&ticket);
                    let (permits, stays) = asked.expect("nobody who has gone is answered");
                    self.begin(node, ticket, permits, stays);
                }
                Event::Denied(ticket) | Event::Unavailable(ticket) => {
                    self.denied += 1;
                    let asked = self.nodes[node].waits.remove(&ticket);
                    assert!(asked.is_some(), "nobody who has gone is answered");
                }
                Event::Lost(ticket) => {
                    self.lost += 1;
                    if let Some(one) = self.nodes[node].in_flight.get_mut(&ticket) {
                        one.lost = true;
                    }
                    assert!(
                        node > 0 || self.long_lived != Some(ticket),
                        "node 0 lost its place"
                    );
                    // Who is told to stop needs a moment to do so.
                    let life = self.nodes[node].life;
                    self.in_about(20 * MS, Happens::End(node, life, ticket));
                }
            }
        }
    }

    fn fault(&mut self) {
        self.in_about(self.faults.every, Happens::Fault);
        if self.faults.rollbacks && self.chance.percent(20) && !self.earlier.is_empty() {
            let back = self.chance.below(self.earlier.len() as u64) as usize;
            self.redis = if self.chance.percent(20) {
                model(self.scheme)
            } else {
                self.earlier[back].snapshot()
            };
            self.earlier.clear();
            self.rolled_back_at = Some(self.now);
            return;
        }
        if self.nodes.len() < 2 {
            return;
        }
        let node = 1 + self.chance.below(self.nodes.len() as u64 - 1) as usize;
        let lasts = self.now + 1 + self.chance.below(3 * self.lease);
        match self.chance.below(3) {
            0 => self.kill(node),
            1 => self.nodes[node].stalled_until = lasts,
            _ => self.nodes[node].cut_until = lasts,
        }
    }

    /// The process ends without a word (SIGKILL), and another begins.
    pub(crate) fn kill(&mut self, node: usize) {
        self.nodes[node] = self.new_node();
    }

    /// Everybody is killed, and nobody comes: after `wait` one node that asks for all places gets
    /// them at once.
    pub(crate) fn all_places_are_free_after(&mut self, wait: u64) {
        self.long_lived = None;
        self.happens.clear();
        self.faults = Faults {
            messages: 0,
            every: 0,
            rollbacks: false,
        };
        for node in 0..self.nodes.len() {
            self.kill(node);
        }
        self.now += wait;
        let (before, limit) = (self.granted, self.limit);
        self.ask(0, limit, MS);
        let until = self.now + 20 * MS;
        self.run(until, |_| ());
        assert!(self.granted > before, "{self:?}");
    }
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "at {} us: {:?}; {:?}",
            self.now / 1_000,
            self.redis,
            self.nodes
        )
    }
}
