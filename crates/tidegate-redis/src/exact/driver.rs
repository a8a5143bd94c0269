//! Carries the calls of the lanes: who waits for which limits, over which scripts.
//!
//! A lane exists while somebody waits in it or its call is in flight; one task makes its calls, one
//! after the other. No lock is held while anything is waited for.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate::{Ask, Decision};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::checked::ExactReceipt;
use super::denials::Denials;
use super::lane::{Lane, MAX_WAITING, Part, Place, Turn};
use super::script::{Asked, Group, Reply, What, decide, forget, give_back};
use crate::call::{Scripts, Unavailable};

/// Lanes are spread over so many locks.
const SHARDS: usize = 16;

/// What limits of one slot said to one caller.
#[derive(Debug)]
pub(super) struct Answered {
    /// The limits that were asked, by their place, and what each said.
    pub(super) said: Vec<(usize, Decision)>,
    pub(super) receipt: Option<ExactReceipt>,
}

type Outcome = Result<Answered, Unavailable>;
type Caller = oneshot::Sender<Outcome>;
/// Lanes behind one lock.
#[derive(Debug, Default)]
struct Lanes {
    of: HashMap<Arc<[Asked]>, Lane<Caller>>,
    next_place: u64,
}

#[derive(Debug)]
pub(super) struct Driver {
    scripts: Arc<dyn Scripts>,
    budget: Duration,
    linger: Duration,
    start: Instant,
    lanes: [Mutex<Lanes>; SHARDS],
    denials: [Mutex<Denials>; SHARDS],
    hasher: RandomState,
}

/// Nothing that a lock guards is left half-changed by a panic: it goes on.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Driver {
    pub(super) fn new(scripts: Arc<dyn Scripts>, budget: Duration, linger: Duration) -> Self {
        Self {
            scripts,
            budget,
            linger,
            start: Instant::now(),
            lanes: Default::default(),
            denials: Default::default(),
            hasher: RandomState::new(),
        }
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn lanes(&self, limits: &[Asked]) -> MutexGuard<'_, Lanes> {
        let shard = self.hasher.hash_one(limits) as usize % SHARDS;
        lock(&self.lanes[shard])
    }

    fn denials(&self, limit: &Asked) -> MutexGuard<'_, Denials> {
        // By the key alone: it is forgotten whatever the numbers were.
        let shard = self.hasher.hash_one(&limit.key) as usize % SHARDS;
        lock(&self.denials[shard])
    }

    /// Asks at once; the answer is waited for by the future.
    pub(super) fn check(
        self: &Arc<Self>,
        limits: &Arc<[Asked]>,
        ask: Ask,
    ) -> impl Future<Output = Outcome> + use<> {
        let entered = match self.remembered(limits, &ask) {
            Some(answered) => Err(Ok(answered)),
            None => self.enter(limits, ask).map_err(Err),
        };
        async move {
            match entered {
                Ok(waiter) => waiter.answer().await,
                Err(outcome) => outcome,
            }
        }
    }

    /// Denials that are known to hold still.
    pub(super) fn remembered(&self, limits: &[Asked], ask: &Ask) -> Option<Answered> {
        let now = self.now();
        let known = limits.iter().enumerate();
        let said: Vec<_> = known
            .filter_map(|(at, limit)| Some((at, self.denials(limit).of(limit, ask, now)?)))
            .collect();
        let receipt = None;
        (!said.is_empty()).then_some(Answered { said, receipt })
    }

    /// Joins the lane of these limits, and sees to it that somebody makes its calls.
    fn enter(self: &Arc<Self>, limits: &Arc<[Asked]>, ask: Ask) -> Result<Waiter, Unavailable> {
        let runtime = Handle::try_current()
            .map_err(|_| Unavailable::Server("there is no tokio runtime here".to_owned()))?;
        let (caller, answer) = oneshot::channel();
        let mut lanes = self.lanes(limits);
        let place = Place(lanes.next_place);
        lanes.next_place += 1;
        let is_new = !lanes.of.contains_key(limits);
        let lane = lanes.of.entry(limits.clone());
        let lane = lane.or_insert_with(|| Lane::new(self.linger));
        if !lane.join(self.now(), place, ask, caller) {
            return Err(Unavailable::Crowded(MAX_WAITING));
        }
        drop(lanes);
        if is_new {
            let calls = Calls {
                driver: self.clone(),
                limits: limits.clone(),
                is_over: false,
            };
            runtime.spawn(calls.make());
        }
        Ok(Waiter {
            driver: self.clone(),
            limits: limits.clone(),
            place,
            answer,
            runtime,
        })
    }

    pub(super) async fn peek(&self, limits: Arc<[Asked]>, ask: Ask) -> Outcome {
        let groups = [Group { requests: 1, ask }];
        let call = decide(What::Peek, &limits, &groups);
        let answer = self.scripts.call(call, self.budget).await?;
        let reply = Reply::read(&answer, limits.len(), 1)?;
        let granted = reply.groups.first().map_or(0, |group| group.requests);
        let part = Part {
            group: 0,
            after: granted.checked_sub(1),
            ask,
        };
        let said = decisions(&limits, &reply, part);
        let receipt = None;
        Ok(Answered { said, receipt })
    }

    pub(super) async fn give_back(&self, receipt: ExactReceipt) -> Result<(), Unavailable> {
        let ExactReceipt { limits, taken } = receipt;
        let call = give_back(&limits, &taken);
        let answer = self.scripts.call(call, self.budget).await;
        self.forget_denials(&limits);
        answer.map(drop)
    }

    /// The same, without waiting for it.
    pub(super) fn give_back_in(self: &Arc<Self>, runtime: &Handle, receipt: ExactReceipt) {
        let driver = self.clone();
        runtime.spawn(async move {
            if let Err(error) = driver.give_back(receipt).await {
                // It stays taken until time gives it back: less is admitted, not more.
                tracing::debug!(%error, "permits were not given back");
            }
        });
    }

    pub(super) async fn reset(&self, limits: &[Asked]) -> Result<(), Unavailable> {
        let answer = self.scripts.call(forget(limits), self.budget).await;
        self.forget_denials(limits);
        answer.map(drop)
    }

    fn forget_denials(&self, limits: &[Asked]) {
        for limit in limits {
            self.denials(limit).forget(limit);
        }
    }

    fn remember_denials(&self, limits: &[Asked], reply: &Reply, groups: &[Group], at: Duration) {
        for (group, granted) in groups.iter().zip(&reply.groups) {
            if granted.requests == group.requests {
                continue;
            }
            for (limit, said) in limits.iter().zip(&granted.limits) {
                if said.retry.is_some() {
                    let denial = said.decision(limit.numbers.most, None, group.ask.permits());
                    self.denials(limit).remember(limit, group.ask, denial, at);
                }
            }
        }
    }
}

/// What each limit says to one caller.
fn decisions(limits: &[Asked], reply: &Reply, part: Part) -> Vec<(usize, Decision)> {
    let Some(granted) = reply.groups.get(part.group) else {
        return Vec::new();
    };
    let said = limits.iter().zip(&granted.limits).enumerate();
    let permits = part.ask.permits();
    said.map(|(at, (limit, said))| (at, said.decision(limit.numbers.most, part.after, permits)))
        .collect()
}

/// What so many permits of each limit are given back by; `None` where there are none.
fn receipt_of(limits: &Arc<[Asked]>, reply: &Reply, permits: u64) -> Option<ExactReceipt> {
    (permits > 0).then(|| ExactReceipt {
        limits: limits.clone(),
        taken: reply.marks.iter().map(|mark| (permits, *mark)).collect(),
    })
}

/// A caller that waits for its answer. Dropped before it has it, it gives back what it is granted.
#[derive(Debug)]
struct Waiter {
    driver: Arc<Driver>,
    limits: Arc<[Asked]>,
    place: Place,
    answer: oneshot::Receiver<Outcome>,
    runtime: Handle,
}

impl Waiter {
    async fn answer(mut self) -> Outcome {
        let gone = || {
            Err(Unavailable::Server(
                "whoever asked Redis has ended".to_owned(),
            ))
        };
        (&mut self.answer).await.unwrap_or_else(|_| gone())
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        if self.answer.is_terminated() {
            return; // It has its answer.
        }
        let mut lanes = self.driver.lanes(&self.limits);
        let caller = lanes
            .of
            .get_mut(&self.limits)
            .and_then(|lane| lane.leave(self.place));
        drop(lanes);
        if caller.is_some() {
            return; // What is granted to who has left is given back by who makes the calls.
        }
        // The answer is under way: from here on it is refused, and given back over there.
        self.answer.close();
        if let Ok(Ok(Answered {
            receipt: Some(receipt),
            ..
        })) = self.answer.try_recv()
        {
            self.driver.give_back_in(&self.runtime, receipt);
        }
    }
}

/// Makes the calls of one lane, until nobody waits in it.
struct Calls {
    driver: Arc<Driver>,
    limits: Arc<[Asked]>,
    is_over: bool,
}

impl Calls {
    async fn make(mut self) {
        while let Some(turn) = self.turn() {
            match turn {
                Turn::Rest => {}
                Turn::Until(due) => tokio::time::sleep_until(self.driver.start + due).await,
                Turn::Call(groups) => self.call(&groups).await,
            }
        }
        self.is_over = true;
    }

    /// What is to be done; `None` where the lane has ended.
    fn turn(&self) -> Option<Turn> {
        let mut lanes = self.driver.lanes(&self.limits);
        let lane = lanes.of.get_mut(&self.limits)?;
        if lane.is_idle() {
            lanes.of.remove(&self.limits);
            return None;
        }
        let can_grow = |ask: &Ask| Group::can_grow(ask, &self.limits);
        Some(lane.turn(self.driver.now(), can_grow))
    }

    async fn call(&self, groups: &[Group]) {
        let Self { driver, limits, .. } = self;
        let sent = driver.now();
        let call = decide(What::Check, limits, groups);
        let answer = driver.scripts.call(call, driver.budget).await;
        let reply = answer.and_then(|answer| Reply::read(&answer, limits.len(), groups.len()));
        match reply {
            Ok(reply) => {
                driver.remember_denials(limits, &reply, groups, sent);
                self.answer(&reply, groups);
            }
            Err(error) => {
                let callers = driver.lanes(limits).of.get_mut(limits).map(Lane::failed);
                for caller in callers.unwrap_or_default() {
                    // Who has left needs no answer.
                    let _ = caller.send(Err(error.clone()));
                }
            }
        }
    }

    fn answer(&self, reply: &Reply, groups: &[Group]) {
        let Self { driver, limits, .. } = self;
        let mut lanes = driver.lanes(limits);
        let lane = lanes.of.get_mut(limits);
        let ended = lane.map(|lane| lane.answered(reply, groups));
        drop(lanes);
        let Some(ended) = ended else { return };
        let mut abandoned = ended.abandoned;
        for (caller, part) in ended.answers {
            let taken = if part.after.is_some() {
                part.ask.permits()
            } else {
                0
            };
            let answered = Answered {
                said: decisions(limits, reply, part),
                receipt: receipt_of(limits, reply, taken),
            };
            if caller.send(Ok(answered)).is_err() {
                abandoned = abandoned.saturating_add(taken);
            }
        }
        if let Some(receipt) = receipt_of(limits, reply, abandoned) {
            driver.give_back_in(&Handle::current(), receipt);
        }
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        if !self.is_over {
            // The runtime ends, or who carries scripts panicked: those who wait are told, and the
            // next one begins anew.
            self.driver.lanes(&self.limits).of.remove(&self.limits);
        }
    }
}
