//! Several rates of one key with a line to wait in: who waits for the one that is slowest at the
//! moment goes ahead at a pace that all of them allow. This is why a policy lets token buckets
//! have both, and nothing that gives many permits at once.

use core::time::Duration;

use proptest::prelude::*;
use tidegate::{
    Algorithm, Ask, Asked, Decision, Enforcer, KeyHasher, Quota, Timestamp, check_all_with_receipts,
};
use tidegate_sim::strategy::cases;

use crate::door::keyed;

const START: Timestamp = Timestamp::from_secs(1_700_000_000);

/// Permits a millisecond-long period, and a burst.
fn rate() -> impl Strategy<Value = (u64, u64, u64)> {
    (1..10_u64, 1..100_u64, 1..15_u64)
}

/// A request: how long after the one before, for how many permits, waiting how long at most.
fn request() -> impl Strategy<Value = (u64, u64, u64)> {
    let pause = prop_oneof![6 => Just(0), 3 => 0..50_u64, 1 => 0..500_u64];
    (pause, 1..4_u64, 0..300_u64)
}

/// When requests went ahead, and with how many permits.
fn passed(limits: &[Enforcer], requests: &[(u64, u64, u64)]) -> Vec<(Timestamp, u64)> {
    let key = KeyHasher::with_keys(9, 10).hash("key");
    let mut now = START;
    let mut passed = Vec::new();
    for &(pause, permits, patience) in requests {
        now = now.after(Duration::from_millis(pause));
        let ask = Ask::new(permits).within(Duration::from_millis(patience));
        let asks: Vec<Asked<'_>> = limits
            .iter()
            .map(|limit| Asked::new(&**limit, key, ask))
            .collect();
        let answers = check_all_with_receipts(&asks, now).expect("few limits, each once");
        let decisions = answers.iter().map(|answer| &answer.decision);
        if decisions.clone().all(Decision::is_allowed) {
            let delay = decisions.map(Decision::delay).max().unwrap_or_default();
            passed.push((now.after(delay), permits));
        }
    }
    passed.sort_unstable();
    passed
}

/// A stretch in which more went ahead than burst and rate allow.
fn too_many(
    passed: &[(Timestamp, u64)],
    (permits, millis, burst): (u64, u64, u64),
) -> Option<(Timestamp, Timestamp)> {
    let period = u128::from(millis) * 1_000_000;
    (0..passed.len()).find_map(|from| {
        let mut sum = 0;
        passed[from..].iter().find_map(|&(at, taken)| {
            sum += u128::from(taken);
            // A wait is rounded up, so that the stretch may have begun a nanosecond earlier.
            let time = at.since(passed[from].0).as_nanos() + 1;
            let allowed = u128::from(burst) * period + u128::from(permits) * time;
            (sum * period > allowed).then_some((passed[from].0, at))
        })
    })
}

proptest! {
    #![proptest_config(cases(256))]

    // proves: B4 (queue), B5 (several bandwidths)
    #[test]
    fn who_waits_for_several_rates_goes_ahead_at_the_pace_of_each(
        rates in prop::collection::vec(rate(), 2..4),
        requests in prop::collection::vec(request(), 1..120),
    ) {
        let limits: Vec<_> = rates
            .iter()
            .map(|&(permits, millis, burst)| {
                let quota = Quota::new(permits, Duration::from_millis(millis)).burst(burst);
                keyed(&Algorithm::TokenBucket(quota), 100)
            })
            .collect();
        let passed = passed(&limits, &requests);
        for rate in rates {
            prop_assert_eq!(too_many(&passed, rate), None, "{:?} of {:?}", rate, passed);
        }
    }
}

// What the policy refuses, and why: all who wait for the next window go ahead as it begins.
#[test]
fn a_window_lets_a_line_go_at_once_whatever_the_other_rate() {
    let quota = Quota::per_second(1).burst(1);
    let window = Algorithm::FixedWindow {
        permits: 5,
        window: Duration::from_mins(1),
    };
    let limits = [
        keyed(&Algorithm::TokenBucket(quota), 100),
        keyed(&window, 100),
    ];
    let requests = [(0, 1, 60_000); 10];
    let passed = passed(&limits, &requests);
    assert!(too_many(&passed, (1, 1_000, 1)).is_some(), "{passed:?}");
}
