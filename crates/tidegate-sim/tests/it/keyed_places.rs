//! Places of many keys: who is inside, when nobody is, and that every door asks under the numbers
//! that hold now.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;

use proptest::prelude::*;
use tidegate::{
    CheckAllError, Decision, KeyHasher, KeyedConcurrencyLimiter, Limiter, ManualClock, Permit,
    Quota, Retry, Timestamp, check_all,
};
use tidegate_sim::strategy::cases;

const START: Timestamp = Timestamp::from_secs(1_700_000_000);
const MINUTE: Duration = Duration::from_mins(1);

fn limit(max: u64, max_keys: usize) -> KeyedConcurrencyLimiter {
    let limit = KeyedConcurrencyLimiter::new(max, max_keys).expect("valid");
    limit.hasher(KeyHasher::with_keys(1, 2))
}

/// Waits for what another thread is about to do.
fn until(done: impl Fn() -> bool) {
    let start = std::time::Instant::now();
    while !done() {
        assert!(start.elapsed() < MINUTE, "it has not come to that");
        std::thread::yield_now();
    }
}

#[derive(Debug, Default)]
struct Bell(AtomicBool);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn look<F: Future + Unpin>(future: &mut F, bell: &Arc<Bell>) -> Poll<F::Output> {
    let waker = Waker::from(Arc::clone(bell));
    Pin::new(future).poll(&mut Context::from_waker(&waker))
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Try(u64, u64),
    /// Stands in line and stays there.
    Join(u64, u64),
    Leave(usize),
    GiveUp(usize),
    Close,
    SetMax(u64),
    /// Somebody more who wants to know when nobody is inside.
    Drain,
    /// One of them who does not any more.
    Forget(usize),
}

fn op() -> impl Strategy<Value = Op> {
    let (key, permits) = (0..6_u64, 0..3_u64);
    prop_oneof![
        6 => (key.clone(), permits.clone()).prop_map(|(key, permits)| Op::Try(key, permits)),
        2 => (key, permits).prop_map(|(key, permits)| Op::Join(key, permits)),
        8 => any::<usize>().prop_map(Op::Leave),
        1 => any::<usize>().prop_map(Op::GiveUp),
        1 => Just(Op::Close),
        1 => (0..4_u64).prop_map(Op::SetMax),
        3 => Just(Op::Drain),
        1 => any::<usize>().prop_map(Op::Forget),
    ]
}

/// Takes one out, by its place.
fn nth<T>(all: &mut Vec<T>, at: usize) -> Option<T> {
    (!all.is_empty()).then(|| all.swap_remove(at % all.len()))
}

fn drains_as_the_model(limit: &KeyedConcurrencyLimiter, ops: &[Op]) -> Result<(), TestCaseError> {
    // Guards of no permits are nobody inside.
    let mut inside: Vec<Permit<'_>> = Vec::new();
    let (mut waiting, mut drains) = (Vec::new(), Vec::new());
    let mut max = 3;
    for op in ops {
        match *op {
            Op::Try(key, permits) => {
                let (decision, permit) = limit.try_acquire(&key, permits);
                prop_assert!(max > 0 || permits == 0 || decision.retry() == Some(Retry::Never));
                inside.extend(permit.filter(|_| permits > 0));
            }
            Op::Join(key, permits) => {
                let bell = Arc::default();
                waiting.push((permits, limit.acquire_async(&key, permits), bell));
            }
            Op::Leave(at) => drop(nth(&mut inside, at)),
            Op::GiveUp(at) => drop(nth(&mut waiting, at)),
            Op::Close => {
                limit.close();
                max = 0;
            }
            Op::SetMax(most) => {
                limit.set_max(most).expect("valid");
                max = most;
            }
            Op::Drain => drains.push((Box::pin(limit.drained()), Arc::new(Bell::default()), true)),
            Op::Forget(at) => drop(nth(&mut drains, at)),
        }
        // Whoever waited goes in, or is refused.
        waiting.retain_mut(|(permits, acquire, bell)| match look(acquire, bell) {
            Poll::Pending => true,
            Poll::Ready((_, permit)) => {
                inside.extend(permit.filter(|_| *permits > 0));
                false
            }
        });
        let nobody = (0..6).all(|key: u64| limit.in_use(&key) == 0);
        prop_assert_eq!(nobody, inside.is_empty());
        for (drained, bell, is_new) in &mut drains {
            // Who is not woken has nothing new to see.
            let woken = bell.0.swap(false, Ordering::SeqCst);
            prop_assert!(
                woken || *is_new || !nobody,
                "nobody is inside, and it was not told"
            );
            if woken || std::mem::take(is_new) {
                prop_assert_eq!(look(drained, bell).is_ready(), nobody);
            }
        }
        drains.retain(|_| !nobody);
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(1_000))]

    // With few places for keys, some share an entry.
    // proves: B8, H1
    #[test]
    fn who_waits_until_nobody_is_inside_is_told_when_that_is_so(
        max_keys in prop_oneof![Just(2_usize), Just(4_usize), Just(100_000_usize)],
        ops in prop::collection::vec(op(), 1..60),
    ) {
        drains_as_the_model(&limit(3, max_keys), &ops)?;
    }

    // proves: B8
    #[test]
    fn what_is_in_use_of_a_key_is_what_its_guards_hold(
        takes in prop::collection::vec((0..6_u64, 0..4_u64, any::<bool>()), 1..60),
    ) {
        let limit = limit(5, 100);
        let mut inside: Vec<(u64, u64, Permit<'_>)> = Vec::new();
        for (key, permits, leaves) in takes {
            if leaves {
                inside.retain(|(of, ..)| *of != key);
            }
            let (_, permit) = limit.try_acquire(&key, permits);
            inside.extend(permit.map(|permit| (key, permits, permit)));
            for key in 0..6 {
                let held = inside.iter().filter(|(of, ..)| *of == key).map(|(_, n, _)| n);
                prop_assert_eq!(limit.in_use(&key), held.sum::<u64>());
            }
        }
    }
}

// shows: B8
#[test]
fn a_closed_limit_refuses_every_key_and_those_in_line_for_good() {
    let limit = limit(1, 100_000);
    let inside = ["a", "b"].map(|key| limit.try_acquire(key, 1).1.expect("free"));
    let bell = Arc::default();
    let mut waits = limit.acquire_async("a", 1);
    assert!(look(&mut waits, &bell).is_pending());
    limit.close();
    let never = |decision: Decision| assert_eq!(decision.retry(), Some(Retry::Never));
    let Poll::Ready((told, None)) = look(&mut waits, &bell) else {
        panic!("it is closed");
    };
    never(told);
    for key in ["a", "b", "c"] {
        never(limit.acquire(key, 1).0);
        never(limit.try_acquire(key, 1).0);
        never(limit.peek(key, 1));
    }
    let mut drained = limit.drained();
    let [a, b] = inside;
    drop(a);
    assert!(look(&mut drained, &bell).is_pending(), "b is inside");
    assert!(!limit.drained_within(Duration::ZERO));
    drop(b);
    assert!(look(&mut drained, &bell).is_ready() && limit.drained_within(MINUTE));
    limit.set_max(1).expect("valid");
    assert!(limit.try_acquire("a", 1).0.is_allowed(), "open again");
}

// shows: A2 (bounded waiting), B10 (sync)
#[test]
fn a_thread_that_waits_for_a_key_goes_in_before_who_comes_later() {
    let limit = limit(3, 100);
    let inside = limit.try_acquire("k", 2).1.expect("free");
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| limit.acquire("k", 2).1);
        // One place is free until it stands in line for two.
        until(|| limit.peek("k", 0).remaining == 0);
        assert!(limit.try_acquire("k", 1).0.is_on_release());
        assert!(limit.try_acquire("other", 3).0.is_allowed(), "another line");
        drop(inside);
        let permit = waits.join().expect("no panic");
        assert!(permit.is_some() && limit.in_use("k") == 2);
    });
    assert_eq!(limit.in_use("k"), 0);
    // Nobody may stand in a line of no length.
    let limit = self::limit(1, 100).queue_length(0);
    let inside = limit.acquire("k", 1).1;
    assert!(inside.is_some() && limit.acquire("k", 1).0.is_on_release());
}

// shows: A2 (bounded waiting), F4 (places)
#[test]
fn who_has_waited_too_long_is_asked_under_the_numbers_that_hold_then() {
    let limit = limit(3, 10);
    let [first, second] = [1, 1].map(|permits| limit.try_acquire("k", permits).1.expect("free"));
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let soon = Duration::from_millis(200);
            limit.acquire_within("k", 2, soon).1.is_some()
        });
        // One place is free until it stands in line for two.
        until(|| limit.peek("k", 0).remaining == 0);
        // It would fit under the first number.
        limit.set_max(2).expect("valid");
        drop(first);
        assert!(!waits.join().expect("no panic"));
    });
    assert_eq!(limit.in_use("k"), 1);
    drop(second);
}

// shows: A6, B8, F4 (places)
#[test]
fn places_of_a_key_are_taken_with_other_limits_or_not_at_all() {
    let slots = limit(1, 10);
    let clock = ManualClock::new(START);
    let rate = Limiter::with_clock(Quota::per_hour(2), clock).expect("valid");
    let both = |key: &str| check_all(&[slots.ask(key, 1), rate.ask(1)], START);
    let ann = both("ann").expect("two limits");
    assert!(ann.is_allowed() && slots.in_use("ann") == 1);
    // No place: no permit either.
    assert!(!both("ann").expect("two limits").is_allowed());
    assert_eq!(rate.peek(1).remaining, 1);
    // It asks under the number that holds when it asks.
    slots.set_max(2).expect("valid");
    assert!(both("ann").expect("two limits").is_allowed());
    // No permit: no place either.
    assert!(!both("ben").expect("two limits").is_allowed());
    assert_eq!(slots.in_use("ben"), 0);
    // Dropped, it gives its place back.
    assert_eq!(slots.in_use("ann"), 1);
    drop(ann);
    assert_eq!(slots.in_use("ann"), 0);
    let twice = check_all(&[slots.ask("ann", 1), slots.ask("ben", 1)], START);
    assert_eq!(twice.err(), Some(CheckAllError::SameLimit(0, 1)));
}

// shows: H1 (bounded memory)
#[test]
fn what_keys_take_up_is_told() {
    let limit = limit(1, 100);
    let before = limit.allocated_bytes();
    let inside: Vec<_> = (0..50).map(|key| limit.try_acquire(&key, 1)).collect();
    assert_eq!(limit.stats().keys, 50);
    assert!(limit.allocated_bytes() >= before + 50 * 24);
    drop(inside);
}
