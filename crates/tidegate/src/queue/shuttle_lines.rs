//! Many who come, wait, leave and give up, in random schedules: where keys have no entry of their
//! own, and while the number of places changes. Whoever is forgotten is a deadlock, which shuttle
//! reports.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Waker};

use shuttle::future::block_on;
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::thread;

use crate::store::shuttle_keyed::explore;
use crate::{ConcurrencyLimiter, KeyHasher, KeyedConcurrencyLimiter, Permit};

/// How many are inside, to be seen from within.
#[derive(Default)]
struct Room(AtomicU64);

impl Room {
    fn visit(&self, permit: Option<Permit<'_>>, places: u64) {
        let permit = permit.expect("who waits goes in some time");
        let before = self.0.fetch_add(1, Ordering::SeqCst);
        assert!(before < places, "{} inside", before + 1);
        self.0.fetch_sub(1, Ordering::SeqCst);
        drop(permit);
    }
}

fn look_once<F: Future + Unpin>(future: &mut F) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    Pin::new(future).poll(&mut context).is_ready()
}

// proves: A2 (bounded waiting), B10 (async)
#[test]
fn shuttle_nobody_who_waits_is_forgotten_while_others_give_up() {
    explore(|| {
        let limit = ConcurrencyLimiter::new(1).expect("valid");
        let room = Room::default();
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..2 {
                        room.visit(block_on(limit.acquire_async(1)).1, 1);
                    }
                });
            }
            // Looks, and goes away: what it was given in the last moment goes to the next.
            scope.spawn(|| {
                for _ in 0..3 {
                    let mut waits = limit.acquire_async(1);
                    look_once(&mut waits);
                    thread::yield_now();
                }
            });
        });
        block_on(limit.drained());
        assert_eq!(
            (limit.in_use(), limit.try_acquire(1).0.is_allowed()),
            (0, true)
        );
    });
}

// proves: A2 (bounded waiting), H1 (bounded memory)
#[test]
fn shuttle_keys_without_room_of_their_own_wait_in_one_line() {
    explore(|| {
        let limit = KeyedConcurrencyLimiter::new(1, 1).expect("valid");
        let rooms = [Room::default(), Room::default(), Room::default()];
        let visit = |key: usize| {
            let permit = block_on(limit.acquire_async(&key, 1)).1;
            rooms[key].visit(permit, 1);
        };
        thread::scope(|scope| {
            scope.spawn(|| [0, 1].map(visit));
            scope.spawn(|| [1, 2].map(visit));
            scope.spawn(|| [2, 0].map(visit));
        });
        for key in 0..3_usize {
            assert_eq!(limit.peek(&key, 1).remaining, 1);
        }
        assert!(limit.stats().keys <= 1);
    });
}

// proves: A2 (bounded waiting), B8 (places changed while they are held)
#[test]
fn shuttle_who_waits_goes_in_when_there_are_more_places() {
    explore(|| {
        let limit = KeyedConcurrencyLimiter::new(1, 10).expect("valid");
        let room = Room::default();
        let kept = limit.try_acquire("k", 1).1.expect("the first").into_owned();
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| room.visit(block_on(limit.acquire_async("k", 1)).1, 2));
            }
            scope.spawn(|| limit.set_max(3).expect("valid"));
        });
        // They have been inside beside the first: without more places they would wait still.
        assert_eq!(limit.peek("k", 1).remaining, 2);
        drop(kept);
        assert_eq!(limit.peek("k", 3).remaining, 3);
    });
}

// proves: B8
#[test]
fn shuttle_all_who_wait_until_nobody_is_inside_are_told() {
    explore(|| {
        let limit = KeyedConcurrencyLimiter::new(1, 4_096).expect("valid");
        let limit = limit.hasher(KeyHasher::with_keys(1, 2));
        let inside = [1, 2, 3].map(|key| limit.try_acquire(&key, 1).1);
        thread::scope(|scope| {
            let limit = &limit;
            for permit in inside {
                scope.spawn(move || drop(permit));
            }
            for _ in 0..2 {
                scope.spawn(|| {
                    block_on(limit.drained());
                    assert_eq!([1, 2, 3].map(|key| limit.in_use(&key)), [0; 3]);
                });
            }
        });
    });
}
