//! What is saved of a limit's keys, loaded at any later time by another process, is what a store
//! that never stopped has.

use core::time::Duration;

use proptest::prelude::*;
use tidegate::store::SavePoint;
use tidegate::{
    Algorithm, Ask, Enforcer, KeyHash, KeyHasher, OnChange, Quota, Timestamp, enforcers,
};
use tidegate_sim::strategy::{self, Act, Allowed, Move, Size, Step, cases, scale};

const ANY: Allowed = Allowed {
    steps_back: true,
    patience: true,
    give_back: true,
    force: true,
};

fn any_rate() -> BoxedStrategy<Algorithm> {
    let sentinel =
        (1..=40_u64, 1..=20_u32, 2..=10_u32).prop_map(|(count, warm_up_seconds, cold_factor)| {
            Algorithm::SentinelWarmUp {
                count,
                warm_up_seconds,
                cold_factor,
            }
        });
    prop_oneof![8 => strategy::rate_limit(), 1 => sentinel].boxed()
}

fn word() -> BoxedStrategy<u64> {
    let edges = prop_oneof![Just(0), Just(u64::MAX), 0..100_u64];
    prop_oneof![1 => any::<u64>(), 2 => edges, 1 => strategy::log_uniform(1 << 62)].boxed()
}

/// What `save` shows of a whole store: hash, number of the numbers, state.
type Saved = Vec<(KeyHash, u32, Vec<u64>)>;

fn save(limit: &Enforcer, now: Timestamp) -> Saved {
    let mut saved = Vec::new();
    let mut next = Some(SavePoint::default());
    while let Some(from) = next {
        let visit = &mut |key, numbers, state: &[u64]| saved.push((key, numbers, state.to_vec()));
        next = limit.save(from, now, visit).expect("nobody takes it over");
    }
    saved
}

/// A limit of these numbers in another process, which read what was saved of it.
fn loaded(saved: &Saved, algorithm: &Algorithm, saved_at: Timestamp, now: Timestamp) -> Enforcer {
    // What a process can know of it is what was written.
    let algorithm = Algorithm::from_words(&algorithm.to_words()).expect("was written");
    let limit = enforcers(&[algorithm], 100).expect("valid").remove(0);
    for (key, _, state) in saved {
        let key = KeyHash::from_words(key.to_words()).expect("was written");
        assert!(limit.load(key, state, saved_at, now));
    }
    limit
}

/// A limit with one key, and what steps do with it.
struct Run {
    limit: Enforcer,
    key: KeyHash,
    scale: (u64, u64),
    now: u64,
    told: u64,
    taken: Vec<tidegate::Receipt>,
}

impl Run {
    fn step(&mut self, step: &Step) -> Option<tidegate::Decision> {
        self.now = step.time.from(self.now, self.scale, self.told);
        let now = Timestamp::from_nanos(self.now);
        let there = self.limit.peek(self.key, now, &Ask::ONE);
        let permits = match step.size {
            Size::Permits(permits) => permits,
            Size::Part(parts) => (u128::from(there.limit) * u128::from(parts) / 1_000) as u64,
            Size::Limit(by) => there.limit.saturating_add_signed(by),
            Size::Remaining(by) => there.remaining.saturating_add_signed(by),
            Size::Huge => u64::MAX,
        };
        let ask = Ask::new(permits);
        let ask = ask.within(Duration::from_nanos(step.patience.nanos(self.scale)));
        match step.act {
            Act::Peek => Some(self.limit.peek(self.key, now, &ask)),
            Act::Check | Act::Force => {
                let ask = if matches!(step.act, Act::Force) {
                    ask.forced()
                } else {
                    ask
                };
                let (decision, receipt) = self.limit.check(self.key, now, &ask);
                self.taken.extend(receipt);
                if let Some(wait) = decision.retry_after() {
                    self.told = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
                }
                Some(decision)
            }
            Act::GiveBack(at) => {
                if !self.taken.is_empty() {
                    let receipt = self.taken.swap_remove(at % self.taken.len());
                    self.limit.give_back(receipt, now).expect("its own");
                }
                None
            }
        }
    }
}

fn start_at(limit: Enforcer, algorithm: &Algorithm, now: Timestamp) -> Run {
    Run {
        limit,
        key: KeyHasher::with_keys(1, 2).hash("key"),
        scale: scale(algorithm),
        now: now.as_nanos(),
        told: 0,
        taken: Vec::new(),
    }
}

proptest! {
    #![proptest_config(cases(500))]

    // proves: H2 (a restart is as if nobody had stopped)
    #[test]
    fn a_store_that_was_loaded_answers_as_one_that_never_stopped(
        algorithm in any_rate(),
        start in strategy::start(),
        before in strategy::schedule(30, ANY),
        down in (0..3_000_u64).prop_map(Move::Part),
        after in strategy::schedule(30, Allowed { give_back: false, steps_back: false, ..ANY }),
    ) {
        let limit = enforcers(&[algorithm], 100).expect("valid").remove(0);
        let mut stays = start_at(limit, &algorithm, start);
        let mut latest = stays.now;
        for step in &before {
            stays.step(step);
            latest = latest.max(stays.now);
        }
        let saved_at = Timestamp::from_nanos(latest);
        let saved = save(&stays.limit, saved_at);
        // A key of which nothing is in use may be as good as new; that a Sentinel limit is warm
        // is no usage, so that it may begin cold.
        let may_be_cold = matches!(
            algorithm,
            Algorithm::SentinelWarmUp { .. } | Algorithm::SentinelWarmUpQueue { .. }
        );
        prop_assume!(!(may_be_cold && saved.is_empty()));
        stays.now = down.from(latest, stays.scale, 0);
        let now = Timestamp::from_nanos(stays.now);
        let limit = loaded(&saved, &algorithm, saved_at, now);
        prop_assume!(!(may_be_cold && limit.stats().keys == 0));
        let mut begins = start_at(limit, &algorithm, now);
        begins.told = stays.told;
        for step in &after {
            let (one, other) = (stays.step(step), begins.step(step));
            prop_assert_eq!(one, other, "{:?} at {}", step, stays.now);
        }
    }

    // proves: H2 (the clock goes back with a restart)
    #[test]
    fn where_it_is_earlier_after_a_restart_no_time_has_passed(
        algorithm in any_rate(),
        before in strategy::schedule(30, Allowed::default()),
        back in 1..1_000_000_000_000_000_u64,
    ) {
        let start = Timestamp::from_secs(1_700_000_000);
        let limit = enforcers(&[algorithm], 100).expect("valid").remove(0);
        let mut stays = start_at(limit, &algorithm, start);
        for step in &before {
            stays.step(step);
        }
        let saved_at = Timestamp::from_nanos(stays.now);
        let saved = save(&stays.limit, saved_at);
        let now = Timestamp::from_nanos(stays.now.saturating_sub(back));
        let limit = loaded(&saved, &algorithm, saved_at, now);
        let was = stays.limit.peek(stays.key, saved_at, &Ask::ONE);
        let is = limit.peek(stays.key, now, &Ask::ONE);
        // What Guava's pair owes is taken out of what is stored, and these go by whole seconds.
        let goes_by_more = matches!(
            algorithm,
            Algorithm::SmoothWarmUp { .. }
                | Algorithm::SentinelWarmUp { .. }
                | Algorithm::SentinelWarmUpQueue { .. }
        );
        if !goes_by_more {
            prop_assert!(is.remaining <= was.remaining, "{:?} of {:?}", is, was);
            // Nor does anybody wait until the clock is where it was; nginx goes by milliseconds.
            let is_there = is.remaining + 1 >= was.remaining;
            let is_nginx = matches!(algorithm, Algorithm::Nginx { .. });
            prop_assert!(is_there || is_nginx, "{:?} of {:?}", is, was);
        }
    }

    // proves: H2 (hostile states)
    #[test]
    fn no_words_make_a_state_that_a_limit_cannot_reckon_with(
        algorithm in any_rate(),
        start in strategy::start(),
        words in prop::collection::vec(word(), 0..12),
        other in any_rate(),
        steps in strategy::schedule(20, ANY),
    ) {
        let limit = enforcers(&[algorithm], 100).expect("valid").remove(0);
        let mut run = start_at(limit, &algorithm, start);
        let before = run.limit.load(run.key, &words, Timestamp::EPOCH, start);
        let later = KeyHasher::with_keys(1, 2).hash("later");
        let _ = run.limit.load(later, &words, Timestamp::MAX, start);
        for step in &steps {
            run.step(step);
        }
        if before {
            let now = Timestamp::from_nanos(run.now);
            let changed = tidegate::changed(&*run.limit, &[other], 100, now, OnChange::KeepUsed);
            run.limit = changed.expect("valid").remove(0);
            run.taken.clear();
            for step in &steps {
                run.step(step);
            }
        }
    }

    #[test]
    fn an_algorithm_is_read_as_it_was_written(algorithm in any_rate()) {
        let words = algorithm.to_words();
        let read = Algorithm::from_words(&words).expect("written");
        prop_assert_eq!(read.to_words(), words);
        prop_assert_eq!(read.permits_at_once(), algorithm.permits_at_once());
        prop_assert_eq!(core::mem::discriminant(&read), core::mem::discriminant(&algorithm));
    }

    #[test]
    fn any_words_are_an_algorithm_or_none(words in prop::collection::vec(word(), 0..10)) {
        if let Some(algorithm) = Algorithm::from_words(&words) {
            prop_assert!(algorithm.validate().is_ok());
        }
    }
}

// shows: H2 (overrides)
#[test]
fn keys_are_saved_under_the_numbers_that_hold_for_them() {
    let hourly = |permits| Algorithm::TokenBucket(Quota::per_hour(permits));
    let now = Timestamp::from_secs(1_700_000_000);
    let hasher = KeyHasher::with_keys(1, 2);
    let limits = enforcers(&[hourly(10), hourly(100)], 10_000).expect("valid");
    for user in 0..3_000_u64 {
        let limit = &limits[usize::from(user % 2 == 1)];
        assert!(
            limit
                .check(hasher.hash(&user), now, &Ask::new(7))
                .0
                .is_allowed()
        );
    }
    let [own, vip] = [&limits[0], &limits[1]].map(|limit| limit.numbers());
    let saved = save(&limits[0], now);
    assert_eq!(saved.len(), 3_000);
    assert_eq!(
        saved
            .iter()
            .filter(|(_, numbers, _)| *numbers == vip)
            .count(),
        1_500
    );
    let again = enforcers(&[hourly(10), hourly(100)], 10_000).expect("valid");
    for (key, numbers, state) in &saved {
        let limit = &again[usize::from(*numbers == vip)];
        assert!(limit.load(*key, state, now, now));
        assert!(!limit.load(*key, state, now, now), "it is there");
    }
    assert_eq!(again[0].stats().keys, 3_000);
    assert_eq!(
        again[1].peek(hasher.hash(&1_u64), now, &Ask::ONE).remaining,
        93
    );
    // Numbers that replaced those, and that no key has been asked under yet.
    let less = tidegate::changed(&*again[0], &[hourly(8)], 10_000, now, OnChange::KeepUsed);
    let less = less.expect("valid").remove(0);
    let saved = save(&less, now);
    assert_eq!(saved.len(), 3_000);
    assert!(
        saved
            .iter()
            .all(|(_, numbers, _)| *numbers == less.numbers() && *numbers != own)
    );
    let last = loaded_keys(&saved, hourly(8), now);
    assert_eq!(last.peek(hasher.hash(&1_u64), now, &Ask::ONE).remaining, 1);
    // What another store takes over is no longer here.
    let window = Algorithm::FixedWindow {
        permits: 9,
        window: Duration::from_hours(1),
    };
    let window = tidegate::changed(&*less, &[window], 10_000, now, OnChange::KeepUsed);
    let window = window.expect("valid").remove(0);
    assert_eq!(save(&window, now).len(), 3_000, "saving takes it over");
    let visit = &mut |_: KeyHash, _: u32, _: &[u64]| panic!("all is elsewhere");
    assert!(less.save(SavePoint::default(), now, visit).is_err());
}

fn loaded_keys(saved: &Saved, algorithm: Algorithm, now: Timestamp) -> Enforcer {
    let limit = enforcers(&[algorithm], 10_000).expect("valid").remove(0);
    for (key, _, state) in saved {
        assert!(limit.load(*key, state, now, now));
    }
    limit
}

// shows: H2 (gates)
#[test]
fn who_is_inside_a_gate_is_not_saved() {
    let now = Timestamp::from_secs(1_700_000_000);
    let gate = enforcers(&[Algorithm::Concurrency { max: 5 }], 100)
        .expect("valid")
        .remove(0);
    let key = KeyHasher::with_keys(1, 2).hash("key");
    let (_, receipt) = gate.check(key, now, &Ask::ONE);
    assert!(save(&gate, now).is_empty());
    assert!(!gate.load(key, &[1], now, now));
    gate.give_back(receipt.expect("taken"), now)
        .expect("its own");
}

// proves: H2 (hostile states)
#[test]
fn a_limit_that_is_colder_than_any_answers_as_the_coldest() {
    let algorithm = Algorithm::SentinelWarmUpQueue {
        count: 1,
        warm_up_seconds: 10,
        cold_factor: 3,
    };
    let now = Timestamp::from_secs(1_700_000_000);
    let limit = enforcers(&[algorithm], 100).expect("valid").remove(0);
    let key = KeyHasher::with_keys(1, 2).hash("key");
    let last = u128::from(now.as_nanos());
    let tokens = u64::MAX;
    let words = [tokens, u64::MAX, (last >> 64) as u64, last as u64, 0];
    assert!(limit.load(key, &words, now, now));
    let wait = limit.check(key, now, &Ask::ONE).0.retry_after();
    assert_eq!(wait, Some(Duration::from_secs(3)));
}
