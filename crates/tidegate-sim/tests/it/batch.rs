//! Several keys in one call: the same answers as one by one.

use core::time::Duration;

use proptest::prelude::*;
use tidegate::{Ask, KeyHasher, KeyedLimiter, ManualClock, Timestamp};
use tidegate_sim::strategy::{self, cases};

const START: Timestamp = Timestamp::from_secs(1_700_000_000);

/// Keys, permits and milliseconds until then.
type Batch = (Vec<u16>, u64, u64);

/// Few keys, which repeat, or many.
fn batches() -> impl Strategy<Value = Vec<Batch>> {
    let key = prop_oneof![2 => 0..8_u16, 1 => 0..5_000_u16];
    let keys = prop::collection::vec(key, 0..70);
    prop::collection::vec((keys, 0..4_u64, 0..2_000_u64), 1..12)
}

proptest! {
    #![proptest_config(cases(500))]

    // proves: A1, A7 (cost and peek and give back), H1 (bounded memory)
    #[test]
    fn a_batch_is_answered_as_its_keys_one_by_one(
        algorithm in strategy::rate_limit(),
        // In one shard, with too little room; or in several.
        max_keys in prop_oneof![2..40_usize, Just(8_000)],
        batches in batches(),
    ) {
        let clock = ManualClock::new(START);
        let limiter = || {
            let built = KeyedLimiter::builder(algorithm).max_keys(max_keys);
            let built = built.hasher(KeyHasher::with_keys(3, 4)).clock(clock.clone());
            built.build().expect("strategies make valid limits")
        };
        let (together, apart) = (limiter(), limiter());
        let mut answers = Vec::new();
        for (keys, permits, millis) in batches {
            clock.advance(Duration::from_millis(millis));
            answers.clear();
            together.check_batch(&keys, permits, &mut answers);
            prop_assert_eq!(answers.len(), keys.len());
            for (key, batched) in keys.iter().zip(answers.drain(..)) {
                let (decision, receipt) = apart.reserve(key, permits);
                prop_assert_eq!(batched.decision, decision, "key {}", key);
                let taken = receipt.map(|receipt| receipt.permits());
                prop_assert_eq!(batched.receipt.map(|receipt| receipt.permits()), taken);
            }
            prop_assert_eq!(together.stats(), apart.stats());
        }
    }

    // proves: A7 (cost and peek and give back)
    #[test]
    fn what_a_batch_took_is_given_back_by_its_receipts(
        algorithm in strategy::rate_limit(),
        keys in prop::collection::vec(0..8_u16, 0..40),
    ) {
        let clock = ManualClock::new(START);
        let built = KeyedLimiter::builder(algorithm).clock(clock);
        let limiter = built.build().expect("strategies make valid limits");
        let look = || (0..8_u16).map(|key| limiter.peek(&key, Ask::ONE)).collect::<Vec<_>>();
        let before = look();
        let mut answers = Vec::new();
        limiter.check_batch(&keys, 1, &mut answers);
        for receipt in answers.into_iter().rev().filter_map(|answer| answer.receipt) {
            prop_assert!(limiter.give_back(receipt).is_ok());
        }
        prop_assert_eq!(look(), before);
    }
}

// shows: A1, A7 (overdraft)
#[test]
fn a_batch_of_no_keys_or_of_one_many_times_over() {
    let limiter = KeyedLimiter::builder(tidegate::Quota::per_day(5));
    let limiter = limiter.clock(ManualClock::new(START));
    let limiter = limiter.build().expect("valid");
    let mut answers = Vec::new();
    limiter.check_batch::<&str>(&[], 1, &mut answers);
    assert!(answers.is_empty());
    limiter.check_batch(&["k"; 100], 1, &mut answers);
    let allowed = answers.iter().filter(|answer| answer.decision.is_allowed());
    assert_eq!((answers.len(), allowed.count()), (100, 5));
    // Answers are added, and what is asked may be forced.
    limiter.check_batch(&["k"; 3], Ask::ONE.forced(), &mut answers);
    assert!(
        answers[100..]
            .iter()
            .all(|answer| answer.decision.is_allowed())
    );
    assert_eq!(answers.len(), 103);
}
