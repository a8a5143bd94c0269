//! Interleavings of those who come, wait, leave and give up. Waiting here is loom's own: a wake
//! that is lost is a deadlock, which loom reports.

use core::future::Future;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use std::sync::Arc;
use std::task::Wake;

use loom::sync::Notify;
use loom::thread;

use crate::{ConcurrencyLimiter, KeyHasher, KeyedConcurrencyLimiter};

struct Bell(Notify);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.notify();
    }
}

fn wait<F: Future>(future: F) -> F::Output {
    let bell = Arc::new(Bell(Notify::new()));
    let waker = Waker::from(Arc::clone(&bell));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(answer) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return answer;
        }
        bell.0.wait();
    }
}

fn look_once<F: Future + Unpin>(future: &mut F) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    Pin::new(future).poll(&mut context).is_ready()
}

fn one() -> ConcurrencyLimiter {
    ConcurrencyLimiter::new(1).unwrap()
}

// proves: A2 (bounded waiting), B10 (async)
#[test]
fn loom_who_waits_is_woken_when_somebody_leaves() {
    loom::model(|| {
        let limit = one();
        let inside = limit.try_acquire(1).1.unwrap().into_owned();
        let other = limit.clone();
        let waits = thread::spawn(move || wait(other.acquire_async(1)).1.is_some());
        drop(inside);
        assert!(waits.join().unwrap());
        assert_eq!(limit.in_use(), 0);
    });
}

#[test]
fn loom_a_line_of_a_key_forgets_nobody_either() {
    loom::model(|| {
        let limit = Arc::new(KeyedConcurrencyLimiter::new(1, 10).unwrap());
        let inside = limit.try_acquire("k", 1).1.unwrap().into_owned();
        let other = Arc::clone(&limit);
        let waits = thread::spawn(move || wait(other.acquire_async("k", 1)).1.is_some());
        drop(inside);
        assert!(waits.join().unwrap());
        assert_eq!(limit.peek("k", 1).remaining, 1);
    });
}

#[test]
fn loom_nobody_gets_in_before_one_who_waits() {
    loom::model(|| {
        let limit = one();
        let inside = limit.try_acquire(1).1.unwrap().into_owned();
        let mut first = limit.acquire_async(1);
        assert!(!look_once(&mut first));
        let leaves = thread::spawn(move || drop(inside));
        let other = limit.clone();
        let newcomer = thread::spawn(move || other.try_acquire(1).0.is_allowed());
        assert!(
            !newcomer.join().unwrap(),
            "a place is free, but not for this one"
        );
        leaves.join().unwrap();
        assert!(look_once(&mut first));
    });
}

#[test]
fn loom_one_who_gives_up_as_it_is_let_in_hands_the_place_on() {
    loom::model(|| {
        let limit = one();
        let inside = limit.try_acquire(1).1.unwrap().into_owned();
        let mut gives_up = limit.acquire_async(1);
        assert!(!look_once(&mut gives_up));
        let mut next = limit.acquire_async(1);
        assert!(!look_once(&mut next));
        let leaves = thread::spawn(move || drop(inside));
        drop(gives_up);
        leaves.join().unwrap();
        assert!(look_once(&mut next));
        drop(next);
        assert_eq!(limit.in_use(), 0);
    });
}

#[test]
fn loom_more_places_let_in_who_waits() {
    loom::model(|| {
        let limit = ConcurrencyLimiter::new(0).unwrap();
        let other = limit.clone();
        let grows = thread::spawn(move || other.set_max(2).unwrap());
        let asked = wait(limit.acquire_async(2));
        grows.join().unwrap();
        // Before there were places no waiting would have helped.
        assert_eq!(asked.1.is_some(), asked.0.is_allowed());
        drop(asked);
        assert!(limit.try_acquire(2).1.is_some());
    });
}

#[test]
fn loom_drained_is_told_when_the_last_has_left() {
    loom::model(|| {
        let limit = one();
        let inside = limit.try_acquire(1).1.unwrap().into_owned();
        let leaves = thread::spawn(move || drop(inside));
        wait(limit.drained());
        assert_eq!(limit.in_use(), 0);
        leaves.join().unwrap();
    });
}

#[test]
fn loom_drained_is_told_when_the_last_of_any_key_has_left() {
    loom::model(|| {
        // Several shards.
        let limit = KeyedConcurrencyLimiter::new(1, 4_096).unwrap();
        let limit = limit.hasher(KeyHasher::with_keys(1, 2));
        let [a, b] = [1, 2].map(|key| limit.try_acquire(&key, 1).1.unwrap().into_owned());
        let leaves = thread::spawn(move || drop(a));
        let drained = limit.drained();
        drop(b);
        wait(drained);
        assert_eq!([1, 2].map(|key| limit.in_use(&key)), [0, 0]);
        leaves.join().unwrap();
    });
}
