//! Several threads on stores of many keys, in random schedules: `RUSTFLAGS="--cfg shuttle" cargo
//! test -p tidegate --lib --release shuttle_`. More threads and steps than loom can try all of.
//!
//! Time stands still and nothing refills, so that the books must balance to the permit: what was
//! admitted is in use, was given back, or was counted as released. A deadlock fails too.

use core::time::Duration;

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::{Config, Runner, thread};

use crate::{
    Algorithm, Ask, Enforcer, KeyHash, KeyHasher, OnChange, Quota, Receipt, Timestamp, check_all,
    enforcers,
};

const NOW: Timestamp = Timestamp::from_secs(1_000_000);
/// The same schedules each time.
const SEED: u64 = 20_260_101;
/// Schedules of each kind, unless `TIDEGATE_SCHEDULES` says how many when this is compiled.
const SCHEDULES: usize = 10_000;
/// Preemptions at places that are drawn: few are enough for most faults, and found sooner so.
const PREEMPTIONS: usize = 3;
/// Keys in room for so many are in two shards.
const TWO_SHARDS: usize = 2_048;

/// Runs `test` in schedules that switch anywhere, and in others that switch rarely.
pub(crate) fn explore(test: fn()) {
    let asked = option_env!("TIDEGATE_SCHEDULES").and_then(|text| text.parse().ok());
    let schedules = asked.unwrap_or(SCHEDULES);
    run(RandomScheduler::new_from_seed(SEED, schedules), test);
    let rarely = PctScheduler::new_from_seed(SEED, PREEMPTIONS, schedules);
    run(rarely, test);
}

fn run(scheduler: impl Scheduler + 'static, test: fn()) {
    let mut config = Config::new();
    config.stack_size = 0x2_0000;
    Runner::new(scheduler, config).run(test);
}

/// A bucket that does not refill within a test.
fn bucket(burst: u64) -> Algorithm {
    Algorithm::TokenBucket(Quota::per_day(1).burst(burst))
}

fn window(permits: u64) -> Algorithm {
    let window = Duration::from_hours(24);
    Algorithm::FixedWindow { permits, window }
}

fn limit(algorithm: Algorithm, max_keys: usize) -> Enforcer {
    let mut limits = enforcers(&[algorithm], max_keys).expect("a valid limit");
    limits.remove(0)
}

/// Keys 0, 2, ... in the first of two shards, 1, 3, ... in the second.
fn hash(key: u64) -> KeyHash {
    let KeyHash { hi, lo } = KeyHasher::with_keys(1, 2).hash(&key);
    let lo = lo >> 1 | (key & 1) << 63;
    KeyHash { hi, lo }
}

fn enter(limit: &Enforcer, key: u64) -> Option<Receipt> {
    limit.check(hash(key), NOW, &Ask::ONE).1
}

/// How many of these were admitted, one after the other.
fn checks(limit: &Enforcer, keys: &[u64]) -> u64 {
    let admitted = keys.iter().filter_map(|key| enter(limit, *key));
    admitted.count() as u64
}

fn in_use(limit: &Enforcer, key: u64) -> u64 {
    let decision = limit.peek(hash(key), NOW, &Ask::new(0));
    decision.limit - decision.remaining
}

fn in_use_of_all(limit: &Enforcer, keys: u64) -> u64 {
    (0..keys).map(|key| in_use(limit, key)).sum()
}

/// Runs each of these on a thread of its own, and adds up what they answer.
fn together(works: &[&(dyn Fn() -> u64 + Sync)]) -> u64 {
    thread::scope(|scope| {
        let threads: Vec<_> = works.iter().map(|work| scope.spawn(work)).collect();
        let answers = threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"));
        answers.sum()
    })
}

// proves: H1 (bounded memory), A5 (keys apart)
#[test]
fn shuttle_what_was_admitted_at_the_bound_is_in_use_or_was_released() {
    explore(|| {
        let store = limit(bucket(2), 2);
        let admitted = together(&[
            &|| checks(&store, &[0, 1, 2, 0]),
            &|| checks(&store, &[2, 3, 0]),
            &|| checks(&store, &[3, 3, 1]),
        ]);
        let stats = store.stats();
        assert_eq!(admitted, in_use_of_all(&store, 4) + stats.permits_released);
        assert_eq!((stats.keys, stats.overflowed), (2, 0));
    });
}

// proves: H1 (bounded memory)
#[test]
fn shuttle_keys_are_counted_in_all_shards_as_one() {
    explore(|| {
        let store = limit(bucket(2), TWO_SHARDS);
        together(&[
            &|| checks(&store, &[0, 1, 2]),
            &|| checks(&store, &[3, 1, 4]),
            &|| {
                let forgotten = [1, 2].map(|key| store.reset(hash(key), NOW));
                assert_eq!(forgotten, [true, true]);
                0
            },
        ]);
        let remembered = (0..5).filter(|key| in_use(&store, *key) > 0).count();
        assert_eq!(store.stats().keys, remembered);
        for key in 0..5 {
            assert!(store.reset(hash(key), NOW));
        }
        assert_eq!(store.stats().keys, 0);
    });
}

// proves: A2 (refusing), B8 (refusing), H1 (bounded memory)
#[test]
fn shuttle_gates_at_the_bound_keep_every_guard() {
    explore(|| {
        // Room for one of three keys: the others share an entry, or wait for that one to leave.
        let gate = limit(Algorithm::Concurrency { max: 1 }, 1);
        let inside = [const { AtomicU64::new(0) }; 3];
        let visit = |key: u64| {
            let Some(receipt) = enter(&gate, key) else {
                return 0;
            };
            let before = inside[key as usize].fetch_add(1, Ordering::SeqCst);
            assert_eq!(before, 0, "two of key {key} inside");
            assert!(!gate.reset(hash(key), NOW), "a guard is alive");
            inside[key as usize].fetch_sub(1, Ordering::SeqCst);
            gate.give_back(receipt, NOW).unwrap();
            1
        };
        let entered = together(&[&|| visit(0) + visit(1), &|| visit(1) + visit(2), &|| {
            visit(0) + visit(2)
        }]);
        assert!(entered >= 1);
        assert_eq!(in_use_of_all(&gate, 3), 0);
        assert!(gate.stats().keys <= 1);
        let forgotten = [0, 1, 2].map(|key| gate.reset(hash(key), NOW));
        assert_eq!(forgotten, [true; 3], "nobody is inside");
        assert_eq!(gate.stats().keys, 0);
    });
}

// proves: A7 (cost and peek and give back)
#[test]
fn shuttle_what_is_given_back_beside_resets_is_there_once() {
    explore(|| {
        let store = limit(bucket(2), 10);
        let and_back = |keys: [u64; 3]| {
            for key in keys {
                if let Some(receipt) = enter(&store, key) {
                    store.give_back(receipt, NOW).unwrap();
                }
            }
            0
        };
        together(&[
            &|| and_back([0, 1, 0]),
            &|| and_back([1, 0, 1]),
            &|| and_back([0, 0, 0]),
            &|| u64::from(store.reset(hash(0), NOW)),
        ]);
        assert_eq!(in_use_of_all(&store, 2), 0);
        // Not more either: two pass, and no third.
        assert_eq!(checks(&store, &[0, 0, 0, 1, 1, 1]), 4);
    });
}

// proves: F4 (token bucket)
#[test]
fn shuttle_what_is_used_while_numbers_change_stays_used() {
    explore(|| {
        for burst in [1, 5] {
            let old = limit(bucket(3), 10);
            let renumbered = std::sync::Mutex::new(None);
            let admitted = together(&[
                &|| checks(&old, &[0, 1, 0]),
                &|| {
                    let new = old
                        .renumbered(&[bucket(burst)], 10, NOW, OnChange::KeepUsed)
                        .unwrap()
                        .remove(0);
                    let admitted = checks(&new, &[0, 1, 0, 1]);
                    *renumbered.lock().unwrap() = Some(new);
                    admitted
                },
                &|| checks(&old, &[1, 0, 1]),
            ]);
            let new = renumbered.into_inner().unwrap().unwrap();
            // Of a limit that is lower than what was used, all of it.
            let wide = new
                .renumbered(&[bucket(100)], 10, NOW, OnChange::KeepUsed)
                .unwrap()
                .remove(0);
            assert_eq!(in_use_of_all(&wide, 2), admitted);
            for key in 0..2 {
                assert!(in_use(&wide, key) <= burst.max(3));
                assert_eq!(in_use(&new, key), in_use(&wide, key).min(burst));
            }
        }
    });
}

/// Old stores and the new one that takes their place: with other shards, of another kind.
fn successions() -> [(Enforcer, Enforcer); 3] {
    [
        (limit(bucket(3), TWO_SHARDS), limit(window(3), TWO_SHARDS)),
        (limit(bucket(3), TWO_SHARDS), limit(bucket(3), 10)),
        (limit(window(3), 10), limit(bucket(3), TWO_SHARDS)),
    ]
}

const KEYS: u64 = 4;

// proves: F4 (from any algorithm to any other)
#[test]
fn shuttle_a_store_is_taken_over_while_it_is_asked() {
    explore(|| {
        for (old, new) in successions() {
            let before = checks(&old, &[0, 1, 2, 3, 0]);
            new.succeed(old.drain().unwrap(), NOW, OnChange::KeepUsed);
            let admitted = together(&[
                &|| {
                    new.adopt_all(NOW);
                    0
                },
                &|| checks(&new, &[0, 1, 2, 0]),
                &|| checks(&new, &[3, 1, 0]),
                // Who still has the old one: it counts in one of the two.
                &|| checks(&old, &[1, 2]),
            ]);
            let stays = in_use_of_all(&old, KEYS);
            assert_eq!(before + admitted, in_use_of_all(&new, KEYS) + stays);
            for key in 0..KEYS {
                assert!(in_use(&new, key) <= 3);
            }
            let keys = new.stats().keys + old.stats().keys;
            let used = |limit: &Enforcer| (0..KEYS).filter(|key| in_use(limit, *key) > 0).count();
            assert_eq!(keys, used(&new) + used(&old));
        }
    });
}

// proves: F4 (from any algorithm to any other)
#[test]
fn shuttle_a_store_is_taken_over_before_it_has_taken_over_all() {
    explore(|| {
        let first = limit(bucket(3), TWO_SHARDS);
        let (second, third) = (limit(window(3), TWO_SHARDS), limit(bucket(3), 10));
        let before = checks(&first, &[0, 1, 1, 2, 3]);
        second.succeed(first.drain().unwrap(), NOW, OnChange::KeepUsed);
        third.succeed(second.drain().unwrap(), NOW, OnChange::KeepUsed);
        let admitted = together(&[
            &|| {
                second.adopt_all(NOW);
                0
            },
            &|| {
                third.adopt_all(NOW);
                0
            },
            &|| checks(&third, &[1, 0, 3]),
            &|| checks(&second, &[2, 1]),
        ]);
        let limits = [&first, &second, &third];
        let used: u64 = limits.map(|limit| in_use_of_all(limit, KEYS)).iter().sum();
        assert_eq!(before + admitted, used);
        assert_eq!(in_use_of_all(&first, KEYS), 0);
    });
}

// proves: A6, F4 (from any algorithm to any other)
#[test]
fn shuttle_checks_of_several_while_one_of_them_is_taken_over_charge_all_or_none() {
    explore(|| {
        // Created in this order: who has the old one holds it while it waits for `other`, and who
        // has the new one must not wait for the old while it holds `other`.
        let old = limit(bucket(2), TWO_SHARDS);
        let other = limit(bucket(4), TWO_SHARDS);
        let new = limit(window(2), TWO_SHARDS);
        let before = checks(&old, &[0, 1]);
        new.succeed(old.drain().unwrap(), NOW, OnChange::KeepUsed);
        let both = |limit: &Enforcer, key: u64, other_first: bool| {
            let mut asks =
                [limit, &other].map(|limit| crate::Asked::new(&**limit, hash(key), Ask::ONE));
            if other_first {
                asks.reverse();
            }
            u64::from(check_all(&asks, NOW).unwrap().is_allowed())
        };
        let admitted = together(&[
            &|| {
                new.adopt_all(NOW);
                0
            },
            &|| both(&new, 0, false) + both(&new, 1, true),
            &|| both(&new, 1, true) + both(&new, 0, false),
            &|| both(&old, 0, true),
        ]);
        assert_eq!(in_use_of_all(&other, 2), admitted);
        let used = in_use_of_all(&new, 2) + in_use_of_all(&old, 2);
        assert_eq!(before + admitted, used);
        for key in 0..2 {
            assert!(in_use(&new, key) <= 2);
        }
    });
}
