//! Interleavings of those who share a striped key.

use loom::sync::Arc;
use loom::thread;

use super::*;
use crate::{ManualClock, Quota};

const NOW: Timestamp = Timestamp::from_secs(1_000_000);

fn striped(burst: u64, lease: u64) -> Arc<StripedKey<u64, ManualClock>> {
    let meter = TokenBucket::new(Quota::per_second(1).burst(burst)).unwrap();
    let clock = ManualClock::new(NOW);
    Arc::new(StripedKey::with_leases(meter, 2, lease, clock))
}

/// Two threads check twice each on these stripes; how many checks passed.
fn passed(key: &Arc<StripedKey<u64, ManualClock>>, [mine, theirs]: [usize; 2]) -> u64 {
    let twice = |key: &StripedKey<_, _>, stripe| {
        (0..2)
            .filter(|_| key.check_on(stripe, NOW, &Ask::ONE).0.is_allowed())
            .count() as u64
    };
    let other = {
        let key = Arc::clone(key);
        thread::spawn(move || twice(&key, theirs))
    };
    twice(key, mine) + other.join().unwrap()
}

// proves: A1, B5 (greedy refill)
#[test]
fn loom_stripes_grant_the_burst_and_no_more() {
    loom::model(|| {
        let key = striped(3, 2);
        assert_eq!(passed(&key, [0, 1]), 3);
        assert_eq!(key.peek(NOW, &Ask::ONE).remaining, 0);
    });
}

#[test]
fn loom_threads_on_one_stripe_grant_the_burst_and_no_more() {
    loom::model(|| {
        let key = striped(3, 2);
        assert_eq!(passed(&key, [0, 0]), 3);
        assert_eq!(key.peek(NOW, &Ask::ONE).remaining, 0);
    });
}

#[test]
fn loom_a_lease_that_is_called_back_while_it_is_used() {
    loom::model(|| {
        let key = striped(4, 3);
        assert!(key.check_on(0, NOW, &Ask::ONE).0.is_allowed());
        let other = {
            let key = Arc::clone(&key);
            thread::spawn(move || key.check_on(0, NOW, &Ask::ONE).0.is_allowed())
        };
        let left = key.peek(NOW, &Ask::ONE).remaining;
        assert!(other.join().unwrap());
        assert!((2..=3).contains(&left), "before or after");
        assert_eq!(key.peek(NOW, &Ask::ONE).remaining, 2);
    });
}

#[test]
fn loom_what_is_given_back_ends_a_refusal() {
    loom::model(|| {
        let key = striped(1, 1);
        let (_, taken) = key.check_on(0, NOW, &Ask::ONE);
        let other = {
            let key = Arc::clone(&key);
            thread::spawn(move || key.check_on(1, NOW, &Ask::ONE).0.is_allowed())
        };
        key.undo(&taken.unwrap(), NOW);
        let early = other.join().unwrap();
        let late = key.check_on(1, NOW, &Ask::ONE).0.is_allowed();
        assert!(early != late, "there is one permit, and it is not lost");
    });
}

#[test]
fn loom_a_lease_that_is_replaced_while_it_is_used() {
    loom::model(|| {
        let key = striped(8, 4);
        assert!(key.check_on(0, NOW, &Ask::ONE).0.is_allowed());
        // A lease of three, unused.
        let other = {
            let key = Arc::clone(&key);
            thread::spawn(move || {
                key.check_on(0, NOW, &Ask::new(3))
                    .1
                    .map_or(0, |t| t.permits)
            })
        };
        // It is called back, and the next is shorter.
        let four = key
            .hold(NOW, &Ask::new(4), &mut |_| true)
            .map_or(0, |t| t.permits);
        let one = key.check_on(0, NOW, &Ask::ONE).1.map_or(0, |t| t.permits);
        let three = other.join().unwrap();
        let left = key.peek(NOW, &Ask::ONE).remaining;
        assert_eq!(1 + four + one + three + left, 8);
    });
}
