//! Waiting for permits that have to come back: in order, by priority, nobody forgotten and nobody
//! overtaken, against a model that says it in plain words.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;

use proptest::prelude::*;
use tidegate::{
    Acquire, Algorithm, Ask, ConcurrencyLimiter, Decision, Enforcer, Joined, KeyHasher,
    KeyedConcurrencyLimiter, OnChange, Permit, Retry, Timestamp,
};
use tidegate_sim::strategy::cases;

use crate::door::keyed;

const START: Timestamp = Timestamp::from_secs(1_700_000_000);

/// The longest line, in permits.
const LENGTH: u64 = 12;

#[derive(Clone, Copy, Debug)]
enum Op {
    Try(u64),
    Join {
        permits: u64,
        priority: u8,
    },
    /// One who is inside, by its place among them.
    Leave(usize),
    /// One who waits, by its place among them.
    GiveUp(usize),
    SetMax(u64),
    /// Wants to know when nobody is inside.
    Drain,
}

fn op() -> impl Strategy<Value = Op> {
    let permits = prop_oneof![8 => 1..4_u64, 1 => Just(0), 1 => 4..8_u64];
    let priority = prop_oneof![3 => Just(0), 1 => 0..3_u8];
    prop_oneof![
        2 => permits.clone().prop_map(Op::Try),
        6 => (permits, priority).prop_map(|(permits, priority)| Op::Join { permits, priority }),
        6 => any::<usize>().prop_map(Op::Leave),
        2 => any::<usize>().prop_map(Op::GiveUp),
        1 => (0..7_u64).prop_map(Op::SetMax),
        1 => Just(Op::Drain),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    In,
    Waits,
    OnRelease,
    Never,
}

impl Said {
    fn of(decision: &Decision) -> Self {
        match decision.retry() {
            None => Self::In,
            Some(Retry::OnRelease) => Self::OnRelease,
            Some(Retry::Never) => Self::Never,
            Some(Retry::After(_)) => panic!("a gate has no time to give"),
        }
    }
}

/// What must happen, said as slowly as one likes.
#[derive(Debug, Default)]
struct Model {
    max: u64,
    inside: u64,
    /// Number, permits and priority of those who wait, as they came.
    line: Vec<(usize, u64, u8)>,
    /// What those who waited were told since it was last asked.
    told: Vec<(usize, Said)>,
}

impl Model {
    fn try_acquire(&mut self, permits: u64) -> Said {
        let free = self.max.saturating_sub(self.inside);
        match permits {
            0 => Said::In,
            _ if permits > self.max => Said::Never,
            _ if self.line.is_empty() && permits <= free => {
                self.inside += permits;
                Said::In
            }
            _ => Said::OnRelease,
        }
    }

    fn join(&mut self, number: usize, permits: u64, priority: u8) -> Said {
        let waiting: u64 = self.line.iter().map(|(_, permits, _)| permits).sum();
        match self.try_acquire(permits) {
            Said::OnRelease if waiting + permits <= LENGTH => {
                self.line.push((number, permits, priority));
                self.serve();
                let told = self.told.iter().position(|(told, _)| *told == number);
                told.map_or(Said::Waits, |at| self.told.remove(at).1)
            }
            said => said,
        }
    }

    fn serve(&mut self) {
        loop {
            let highest = self.line.iter().map(|(_, _, priority)| *priority).max();
            let first = self.line.iter().position(|one| Some(one.2) == highest);
            let Some((at, (number, permits, _))) = first.map(|at| (at, self.line[at])) else {
                return;
            };
            let said = if permits > self.max {
                Said::Never
            } else if self.inside + permits <= self.max {
                self.inside += permits;
                Said::In
            } else {
                return;
            };
            self.line.remove(at);
            self.told.push((number, said));
        }
    }
}

#[derive(Debug, Default)]
struct Bell(AtomicBool);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A limit with a line, by each way to it.
enum Gate {
    One(ConcurrencyLimiter),
    Keyed(KeyedConcurrencyLimiter),
}

impl Gate {
    fn try_acquire(&self, permits: u64) -> (Decision, Option<Permit<'_>>) {
        match self {
            Self::One(limit) => limit.try_acquire(permits),
            Self::Keyed(limit) => limit.try_acquire("k", permits),
        }
    }

    fn acquire(&self, ask: Ask) -> Acquire<'_> {
        match self {
            Self::One(limit) => limit.acquire_async(ask),
            Self::Keyed(limit) => limit.acquire_async("k", ask),
        }
    }

    fn in_use(&self) -> u64 {
        match self {
            Self::One(limit) => limit.in_use(),
            Self::Keyed(limit) => limit.in_use("k"),
        }
    }

    /// When nobody is inside: of a limit of this key alone.
    fn one(&self) -> Option<&ConcurrencyLimiter> {
        match self {
            Self::One(limit) => Some(limit),
            Self::Keyed(_) => None,
        }
    }

    fn set_max(&self, max: u64) {
        match self {
            Self::One(limit) => limit.set_max(max),
            Self::Keyed(limit) => limit.set_max(max),
        }
        .expect("valid");
    }
}

struct Waits<'a> {
    number: usize,
    permits: u64,
    future: Acquire<'a>,
    bell: Arc<Bell>,
}

impl<'a> Waits<'a> {
    fn poll(&mut self) -> Poll<(Decision, Option<Permit<'a>>)> {
        let waker = Waker::from(Arc::clone(&self.bell));
        Pin::new(&mut self.future).poll(&mut Context::from_waker(&waker))
    }
}

/// Somebody who waits until nobody is inside.
struct Empties<'a> {
    future: Pin<Box<dyn Future<Output = ()> + 'a>>,
    bell: Arc<Bell>,
}

impl<'a> Empties<'a> {
    fn new(limit: &'a ConcurrencyLimiter) -> Self {
        Self {
            future: Box::pin(limit.drained()),
            bell: Arc::default(),
        }
    }

    fn is_ready(&mut self) -> bool {
        let waker = Waker::from(Arc::clone(&self.bell));
        let mut context = Context::from_waker(&waker);
        self.future.as_mut().poll(&mut context).is_ready()
    }
}

/// A limit beside the model.
struct Run<'a> {
    gate: &'a Gate,
    model: Model,
    inside: Vec<(u64, Option<Permit<'a>>)>,
    waiting: Vec<Waits<'a>>,
    empties: Vec<Empties<'a>>,
}

fn agrees_with_the_model(gate: &Gate, max: u64, ops: &[Op]) -> Result<(), TestCaseError> {
    let mut run = Run {
        gate,
        model: Model {
            max,
            ..Model::default()
        },
        inside: Vec::new(),
        waiting: Vec::new(),
        empties: Vec::new(),
    };
    for (number, op) in ops.iter().enumerate() {
        run.step(number, *op)?;
        run.model.serve();
        run.compare_told(*op)?;
        run.compare_empty()?;
        let (peek, _) = gate.try_acquire(0);
        let free = run.model.max.saturating_sub(run.model.inside);
        let free = if run.model.line.is_empty() { free } else { 0 };
        prop_assert_eq!(peek.remaining, free);
    }
    Ok(())
}

impl Run<'_> {
    fn step(&mut self, number: usize, op: Op) -> Result<(), TestCaseError> {
        let Self {
            gate,
            model,
            inside,
            waiting,
            empties,
        } = self;
        match op {
            Op::Try(permits) => {
                let (decision, permit) = gate.try_acquire(permits);
                prop_assert_eq!(Said::of(&decision), model.try_acquire(permits));
                inside.extend(permit.map(|permit| (permits, Some(permit))));
            }
            Op::Join { permits, priority } => {
                let mut one = Waits {
                    number,
                    permits,
                    future: gate.acquire(Ask::new(permits).priority(priority)),
                    bell: Arc::default(),
                };
                let said = match one.poll() {
                    Poll::Pending => Said::Waits,
                    Poll::Ready((decision, permit)) => {
                        inside.extend(permit.map(|permit| (permits, Some(permit))));
                        Said::of(&decision)
                    }
                };
                prop_assert_eq!(said, model.join(number, permits, priority));
                waiting.extend((said == Said::Waits).then_some(one));
            }
            Op::Leave(at) if !inside.is_empty() => {
                let (permits, permit) = inside.swap_remove(at % inside.len());
                drop(permit);
                model.inside -= permits;
            }
            Op::GiveUp(at) if !waiting.is_empty() => {
                let gone = waiting.swap_remove(at % waiting.len());
                model.line.retain(|(number, ..)| *number != gone.number);
            }
            Op::SetMax(max) => {
                gate.set_max(max);
                model.max = max;
            }
            Op::Drain => {
                if let Some(mut one) = gate.one().map(Empties::new) {
                    let is_empty = one.is_ready();
                    prop_assert_eq!(is_empty, model.inside == 0);
                    empties.extend((!is_empty).then_some(one));
                }
            }
            Op::Leave(_) | Op::GiveUp(_) => {}
        }
        Ok(())
    }

    /// Whoever was told something was woken for it, and nobody else was.
    fn compare_told(&mut self, op: Op) -> Result<(), TestCaseError> {
        let mut told = Vec::new();
        let woken = |one: &mut Waits<'_>| one.bell.0.load(Ordering::SeqCst);
        for mut one in self.waiting.extract_if(.., woken) {
            let Poll::Ready((decision, permit)) = one.poll() else {
                panic!("woken for nothing");
            };
            told.push((one.number, Said::of(&decision)));
            self.inside
                .extend(permit.map(|permit| (one.permits, Some(permit))));
        }
        told.sort_unstable_by_key(|(number, _)| *number);
        let mut expected = std::mem::take(&mut self.model.told);
        expected.sort_unstable_by_key(|(number, _)| *number);
        prop_assert_eq!(&told, &expected, "after {:?}", op);
        Ok(())
    }

    /// Whoever waits until nobody is inside is told when that is so.
    fn compare_empty(&mut self) -> Result<(), TestCaseError> {
        let (is_empty, mut still) = (self.model.inside == 0, Vec::new());
        let woken = |one: &mut Empties<'_>| one.bell.0.swap(false, Ordering::SeqCst);
        for mut one in self.empties.extract_if(.., woken) {
            // It may have been empty for a moment only: then it goes on waiting.
            prop_assert_eq!(one.is_ready(), is_empty);
            still.extend((!is_empty).then_some(one));
        }
        prop_assert!(
            !is_empty || self.empties.is_empty(),
            "nobody is inside, and not all were told"
        );
        self.empties.append(&mut still);
        prop_assert_eq!(self.gate.in_use(), self.model.inside);
        Ok(())
    }
}

proptest! {
    #![proptest_config(cases(2_000))]

    // proves: A2 (bounded waiting), B8, B10 (async)
    #[test]
    fn who_waits_goes_in_in_order_and_nobody_is_forgotten(
        max in 0..7_u64,
        ops in prop::collection::vec(op(), 1..60),
    ) {
        let gate = Gate::One(ConcurrencyLimiter::new(max).expect("valid").queue_length(LENGTH));
        agrees_with_the_model(&gate, max, &ops)?;
    }

    // proves: A2 (bounded waiting), B8, B10 (async)
    #[test]
    fn each_key_has_a_line_of_its_own(
        max in 0..7_u64,
        ops in prop::collection::vec(op(), 1..60),
    ) {
        let limit = KeyedConcurrencyLimiter::new(max, 10).expect("valid").queue_length(LENGTH);
        let gate = Gate::Keyed(limit);
        let Gate::Keyed(limit) = &gate else { unreachable!() };
        // Another key is full, and somebody waits there.
        let full = limit.try_acquire("other", max);
        let mut behind = limit.acquire_async("other", 1);
        let waits = Pin::new(&mut behind).poll(&mut Context::from_waker(Waker::noop()));
        agrees_with_the_model(&gate, max, &ops)?;
        drop((waits, full));
    }

    // proves: A2 (bounded waiting), H1
    #[test]
    fn keys_that_share_an_entry_share_its_line(
        max in 1..7_u64,
        ops in prop::collection::vec(op(), 1..60),
    ) {
        let limit = KeyedConcurrencyLimiter::new(max, 1).expect("valid").queue_length(LENGTH);
        let gate = Gate::Keyed(limit);
        let Gate::Keyed(limit) = &gate else { unreachable!() };
        // The only entry there is has somebody inside.
        let pinned = limit.try_acquire("pinned", 1);
        prop_assert!(pinned.1.is_some());
        agrees_with_the_model(&gate, max, &ops)?;
        prop_assert_eq!(limit.stats().keys, 1);
    }
}

// shows: A2 (bounded waiting), F4 (places)
#[test]
fn who_began_to_wait_before_there_were_more_places_goes_in() {
    let limit = KeyedConcurrencyLimiter::new(1, 10).expect("valid");
    let inside = limit.try_acquire("k", 1);
    let mut waits = limit.acquire_async("k", 1);
    let mut look = || Pin::new(&mut waits).poll(&mut Context::from_waker(Waker::noop()));
    limit.set_max(2).expect("valid");
    // Its place in line is taken now.
    assert!(look().is_ready());
    drop(inside);
}

// shows: A2 (bounded waiting), F4 (places)
#[test]
fn who_asks_under_earlier_numbers_holds_up_nobody_who_waits_under_the_new() {
    let places = |max| Algorithm::Concurrency { max };
    let old = keyed(&places(1), 10);
    let key = KeyHasher::with_keys(1, 2).hash("k");
    let take = |limit: &Enforcer| limit.check(key, START, &Ask::ONE).1.expect("a place");
    let renumbered = old.renumbered(&[places(3)], 10, START, OnChange::KeepUsed);
    let new = renumbered.expect("the same kind").remove(0);
    let inside = [&new, &new, &new].map(take);
    let waits = new.join(key, START, &Ask::ONE, LENGTH);
    // A request that still has the earlier numbers.
    assert!(old.check(key, START, &Ask::ONE).0.is_denied());
    let [first, ..] = inside;
    new.give_back(first, START).expect("its own");
    assert!(matches!(waits, Joined::Waiting(_)));
    assert_eq!(new.peek(key, START, &Ask::ONE).remaining, 0, "it went in");
}

// shows: A2 (bounded waiting), H1 (bounded memory)
#[test]
fn a_key_that_waits_for_the_shared_entry_has_no_other_beside_it() {
    let limit = KeyedConcurrencyLimiter::new(1, 1).expect("valid");
    let pinned = limit.try_acquire("pinned", 1).1.expect("its own");
    let shared = limit.try_acquire("shared", 1).1.expect("the shared one");
    let mut waits = limit.acquire_async("k", 1);
    let mut look = || Pin::new(&mut waits).poll(&mut Context::from_waker(Waker::noop()));
    assert!(look().is_pending());
    // Now there would be room for an entry of its own, and two of the key inside in the end.
    drop(pinned);
    assert!(limit.try_acquire("k", 1).1.is_none());
    drop(shared);
    let Poll::Ready((_, Some(inside))) = look() else {
        panic!("it was its turn");
    };
    assert!(limit.try_acquire("k", 1).1.is_none());
    drop(inside);
    assert!(limit.try_acquire("k", 1).1.is_some());
}

/// Asks for a place whenever it is rung.
struct Asks(Arc<KeyedConcurrencyLimiter>, AtomicBool);

impl Wake for Asks {
    fn wake(self: Arc<Self>) {
        let allowed = self.0.try_acquire("other", 1).0.is_allowed();
        self.1.store(allowed, Ordering::SeqCst);
    }
}

// shows: B8
#[test]
fn who_is_woken_by_a_change_may_ask_at_once() {
    let limit = Arc::new(KeyedConcurrencyLimiter::new(1, 10).expect("valid"));
    let inside = limit.try_acquire("k", 1);
    let asks = Arc::new(Asks(Arc::clone(&limit), AtomicBool::new(false)));
    let waker = Waker::from(Arc::clone(&asks));
    let mut waits = limit.acquire_async("k", 1);
    let mut context = Context::from_waker(&waker);
    assert!(Pin::new(&mut waits).poll(&mut context).is_pending());
    limit.set_max(2).expect("valid");
    assert!(asks.1.load(Ordering::SeqCst));
    assert!(Pin::new(&mut waits).poll(&mut context).is_ready());
    drop(inside);
}

// shows: B8
#[test]
fn a_future_asks_under_the_numbers_that_hold_when_it_is_polled() {
    let limit = KeyedConcurrencyLimiter::new(5, 10).expect("valid");
    let mut context = Context::from_waker(Waker::noop());
    let mut early = limit.acquire_async("k", 1);
    limit.set_max(0).expect("valid");
    let Poll::Ready((decision, _)) = Pin::new(&mut early).poll(&mut context) else {
        panic!("there is nothing to wait for");
    };
    assert_eq!(Said::of(&decision), Said::Never);
}
