//! Interleavings of those who share a state: `RUSTFLAGS="--cfg loom" cargo test -p tidegate --lib
//! --release loom_`. A deadlock, or a spin that nobody ends, fails too.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

use super::{Keyed, OneKey, Registered, SingleStore};
use crate::gate::Concurrency;
use crate::meter::TokenBucket;
use crate::{
    Ask, ConcurrencyLimiter, KeyHasher, Limiter, ManualClock, Meter, OnChange, Quota, Timestamp,
    check_all,
};

const NOW: Timestamp = Timestamp::from_secs(1_000_000);

/// A bucket that never refills within a test.
fn bucket(burst: u64) -> TokenBucket<u64> {
    TokenBucket::new(Quota::per_day(1).burst(burst)).unwrap()
}

fn limiter(burst: u64) -> Limiter<ManualClock> {
    let quota = Quota::per_day(1).burst(burst);
    Limiter::with_clock(quota, ManualClock::new(NOW)).unwrap()
}

/// Runs `work` on a second thread and on this one, and adds up what they answer.
fn both<T: Send + Sync + 'static>(shared: &Arc<T>, work: fn(&T, u64) -> u64) -> u64 {
    let theirs = {
        let shared = Arc::clone(shared);
        thread::spawn(move || work(&shared, 1))
    };
    work(shared, 0) + theirs.join().unwrap()
}

// proves: A1, B5 (greedy refill)
#[test]
fn loom_two_checks_admit_no_more_than_the_burst() {
    loom::model(|| {
        let store = Arc::new(OneKey::new(bucket(3), NOW));
        let passed = both(&store, |store, _| {
            let twice = [Ask::ONE, Ask::ONE];
            let passed = twice
                .iter()
                .filter(|ask| store.check(NOW, ask).0.is_allowed());
            passed.count() as u64
        });
        assert_eq!(passed, 3);
        assert_eq!(store.peek(NOW, &Ask::ONE).remaining, 0);
    });
}

#[test]
fn loom_a_check_beside_one_who_holds_the_state_still() {
    loom::model(|| {
        let store = Arc::new(OneKey::new(bucket(1), NOW));
        let passed = both(&store, |store, who| {
            if who == 0 {
                return u64::from(store.check(NOW, &Ask::ONE).0.is_allowed());
            }
            let taken = store.hold(NOW, &Ask::ONE, &mut |_| true);
            u64::from(taken.is_some())
        });
        assert_eq!(passed, 1);
    });
}

#[test]
fn loom_who_holds_and_does_not_agree_takes_nothing() {
    loom::model(|| {
        let store = Arc::new(OneKey::new(bucket(1), NOW));
        let passed = both(&store, |store, who| {
            if who == 0 {
                return u64::from(store.check(NOW, &Ask::ONE).0.is_allowed());
            }
            let taken = store.hold(NOW, &Ask::ONE, &mut |_| false);
            u64::from(taken.is_some())
        });
        assert_eq!(passed, 1, "the other is admitted, before or after");
    });
}

// proves: A7 (cost and peek and give back)
#[test]
fn loom_what_is_given_back_is_there_once() {
    loom::model(|| {
        let store = Arc::new(OneKey::new(bucket(1), NOW));
        let passed = both(&store, |store, _| {
            let (_, taken) = store.check(NOW, &Ask::ONE);
            if let Some(taken) = &taken {
                store.undo(taken, NOW);
            }
            u64::from(taken.is_some())
        });
        assert!(passed >= 1);
        assert_eq!(store.peek(NOW, &Ask::ONE).remaining, 1);
    });
}

// proves: A6
#[test]
fn loom_checks_of_two_limits_charge_both_or_none() {
    loom::model(|| {
        let limits = Arc::new((limiter(2), limiter(1)));
        let passed = both(&limits, |(wide, narrow), who| {
            // Each names them in another order: they are held in the same one.
            let mut asks = [wide.ask(1), narrow.ask(1)];
            if who != 0 {
                asks.reverse();
            }
            let checked = check_all(&asks, NOW).unwrap();
            u64::from(checked.is_allowed())
        });
        assert_eq!(passed, 1);
        assert_eq!(limits.0.peek(&Ask::ONE).remaining, 1);
        assert_eq!(limits.1.peek(&Ask::ONE).remaining, 0);
    });
}

// proves: A6
#[test]
fn loom_a_check_of_two_limits_beside_a_check_of_one() {
    loom::model(|| {
        let limits = Arc::new((limiter(1), limiter(1)));
        let passed = both(&limits, |(first, second), who| {
            if who == 0 {
                return u64::from(second.check().is_allowed());
            }
            let checked = check_all(&[first.ask(1), second.ask(1)], NOW).unwrap();
            2 * u64::from(checked.is_allowed())
        });
        assert!(passed == 1 || passed == 2, "one of them");
        assert_eq!(limits.0.peek(&Ask::ONE).remaining, 2 - passed);
        assert_eq!(limits.1.peek(&Ask::ONE).remaining, 0);
    });
}

// proves: A2 (refusing), B8 (refusing)
#[test]
fn loom_never_more_inside_than_places() {
    loom::model(|| {
        let gate = Arc::new((ConcurrencyLimiter::new(1).unwrap(), AtomicU64::new(0)));
        both(&gate, |(gate, inside), _| {
            let (_, permit) = gate.try_acquire(1);
            if permit.is_some() {
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                inside.fetch_sub(1, Ordering::SeqCst);
            }
            u64::from(permit.is_some())
        });
        assert_eq!(gate.0.peek(1).remaining, 1, "all came back");
    });
}

#[test]
fn loom_a_gate_and_a_rate_together_leak_no_place() {
    loom::model(|| {
        let limits = Arc::new((ConcurrencyLimiter::new(1).unwrap(), limiter(1)));
        let passed = both(&limits, |(gate, rate), _| {
            let checked = check_all(&[gate.ask(1), rate.ask(1)], NOW).unwrap();
            u64::from(checked.is_allowed())
        });
        assert_eq!(passed, 1);
        assert_eq!(limits.0.peek(1).remaining, 1);
    });
}

fn keyed<M: Meter>(meter: M, max_keys: usize) -> (Keyed<M>, Registered<M>) {
    let store = Keyed::new(max_keys);
    let meter = store
        .register(meter, store.begin(NOW, OnChange::KeepUsed))
        .unwrap();
    (store, meter)
}

#[test]
fn loom_two_checks_of_one_key_in_a_store_of_many() {
    loom::model(|| {
        let store = Arc::new(keyed(bucket(1), 10));
        let passed = both(&store, |(store, meter), _| {
            let key = KeyHasher::with_keys(1, 2).hash("key");
            let (decision, _) = store.check(meter, key, NOW, &Ask::ONE);
            u64::from(decision.is_allowed())
        });
        assert_eq!(passed, 1);
        assert_eq!(store.0.stats().keys, 1);
    });
}

// proves: H1 (bounded memory)
#[test]
fn loom_new_keys_in_two_shards_respect_the_bound() {
    loom::model(|| {
        // Two shards, room for one key: the other finds nothing to take the place of.
        let store = Arc::new(keyed(Concurrency::new(1).unwrap(), 2_048));
        store.0.set_max_keys(1);
        let passed = both(&store, |(store, meter), who| {
            let key = crate::KeyHash {
                hi: 1,
                lo: who << 63,
            };
            let (decision, _) = store.check(meter, key, NOW, &Ask::ONE);
            u64::from(decision.is_allowed())
        });
        assert_eq!(passed, 2);
        let stats = store.0.stats();
        assert!(stats.keys == 1 && stats.overflowed == 1, "{stats:?}");
    });
}
