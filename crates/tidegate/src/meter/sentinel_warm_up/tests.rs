use proptest::prelude::*;

use super::*;
use crate::Meter;

fn meter(count: u64, warm_up_seconds: u32, cold_factor: u32) -> SentinelWarmUp {
    SentinelWarmUp::new(count, warm_up_seconds, cold_factor).expect("valid")
}

fn take(meter: &SentinelWarmUp, state: &mut Stored, now: Timestamp, ask: &Ask) -> Decision {
    let plan = meter.plan(state, now, ask);
    if let Some(change) = plan.change {
        let _ = meter.commit(state, change);
    }
    plan.decision
}

/// How many pass in the second from `second` on, of more than enough in each half of it.
fn pass(meter: &SentinelWarmUp, state: &mut Stored, second: u64) -> u64 {
    let halves = [second * SECOND, second * SECOND + HALF].map(Timestamp::from_nanos);
    let mut passed = 0;
    for now in halves {
        while take(meter, state, now, &Ask::ONE).is_allowed() {
            passed += 1;
        }
    }
    passed
}

// shows: B7 (local)
#[test]
fn the_numbers_of_sentinels_own_tests() {
    // count, warning line, most, then (stored, whole permits a second).
    let cases = [
        (10, 50, 100, [(100, 3), (75, 5), (50, 10), (49, 10)]),
        (
            100,
            500,
            1_000,
            [(1_000, 33), (750, 50), (500, 100), (0, 100)],
        ),
        // 44.999... as floating point has it, which is why Sentinel takes the next number.
        (75, 375, 750, [(500, 45), (750, 25), (375, 75), (374, 75)]),
    ];
    for (count, warning, most, stored) in cases {
        let meter = meter(count, 10, 3);
        assert_eq!(
            (meter.tokens.warning(), meter.tokens.most()),
            (warning, most)
        );
        for (tokens, allowed) in stored {
            let state = Stored {
                tokens,
                ..Stored::default()
            };
            assert_eq!(meter.allowed(&state), allowed, "{tokens} of {count}");
        }
    }
}

// shows: B7 (local)
#[test]
fn a_cold_limit_gets_warm_while_it_is_asked_and_cold_again_in_rest() {
    let meter = meter(10, 10, 3);
    let mut state = meter.fresh(Timestamp::EPOCH);
    let passed: Vec<u64> = (1_000..1_020)
        .map(|second| pass(&meter, &mut state, second))
        .collect();
    // Stored: 100, then less what the second before passed: 97, 94, 91, 88 (3.97 a second), 85
    // (4.17), 81, 77, ...
    assert_eq!(passed[..8], [3, 3, 3, 3, 3, 4, 4, 4]);
    assert!(passed.is_sorted() && passed[19] == 10, "{passed:?}");
    assert_eq!(pass(&meter, &mut state, 1_100), 3);
}

// shows: B7 (local)
#[test]
fn a_limit_below_its_cold_factor_is_never_stuck() {
    for count in 1..=5 {
        for warm_up in [1, 2, 3, 10, 300] {
            for cold_factor in [2, 3, 4, 100] {
                let meter = meter(count, warm_up, cold_factor);
                let mut state = meter.fresh(Timestamp::EPOCH);
                let warm_after = meter.tokens.most() - meter.tokens.warning() + 2;
                for second in 1_000..1_000 + warm_after {
                    let passed = pass(&meter, &mut state, second);
                    assert!((1..=count).contains(&passed), "{meter:?} {passed}");
                }
                for second in 1_000 + warm_after..1_010 + warm_after {
                    assert_eq!(pass(&meter, &mut state, second), count, "{meter:?}");
                }
            }
        }
    }
}

// shows: B7 (local)
#[test]
fn the_largest_and_the_smallest_limits_there_are() {
    let seconds = u32::try_from(Quota::MAX_PERIOD.as_secs()).expect("34,560,000");
    let most_cold = super::super::SmoothWarmUp::MAX_COLD_FACTOR;
    for count in [0, 1, Quota::MAX_PERMITS >> 8] {
        for (warm_up, cold_factor) in [(1, 2), (1, most_cold), (seconds, 2), (seconds, most_cold)] {
            let meter = meter(count, warm_up, cold_factor);
            for start in [
                Timestamp::EPOCH,
                Timestamp::from_secs(1_700_000_000),
                Timestamp::MAX,
            ] {
                let debt = meter.assume(Used::permits(u64::MAX), start);
                for mut state in [Stored::default(), meter.fresh(start), debt] {
                    for now in [start, Timestamp::MAX, Timestamp::EPOCH] {
                        for permits in [0, 1, count, count + 1, u64::MAX] {
                            let ask = Ask::new(permits).within(Duration::MAX);
                            let decision = take(&meter, &mut state, now, &ask);
                            assert!(decision.remaining <= decision.limit);
                            assert!(decision.is_denied() || permits <= count);
                        }
                        let taken = Taken {
                            permits: u64::MAX,
                            at: Timestamp::EPOCH,
                            detail: u64::MAX - 1,
                        };
                        meter.undo(&mut state, &taken, now);
                        meter.migrate(&self::meter(1, 1, 2), &mut state, now);
                        let _ = meter.at_stake(&state, now);
                    }
                }
            }
        }
    }
    assert!(SentinelWarmUp::new(u64::MAX, 1, 3).is_err());
    assert!(SentinelWarmUp::new(1, u32::MAX, 3).is_err());
    assert!(SentinelWarmUp::new(1, 0, 3).is_err());
    assert!(SentinelWarmUp::new(1, 1, 1).is_err());
}

proptest! {
    // proves: B7 (local)
    #[test]
    fn one_that_waits_as_told_is_admitted(
        count in 1..40_u64,
        warm_up in 1..20_u32,
        cold_factor in 2..12_u32,
        steps in prop::collection::vec((0..1_500_000_000_u64, 0..12_u64), 1..40),
        several in 1..40_u64,
    ) {
        let meter = meter(count, warm_up, cold_factor);
        let mut now = Timestamp::from_nanos(1_700_000_000_123_456_789);
        let mut state = meter.fresh(now);
        for (time, permits) in steps {
            now = now.after_nanos(time);
            let _ = take(&meter, &mut state, now, &Ask::new(permits));
            let decision = meter.plan(&state, now, &Ask::ONE).decision;
            let all = meter.plan(&state, now, &Ask::new(decision.remaining)).decision;
            prop_assert!(all.is_allowed());
            if let Some(wait) = decision.retry_after() {
                let then = now.after(wait);
                prop_assert!(meter.plan(&state, then, &Ask::ONE).decision.is_allowed());
                let early = Timestamp::from_nanos(then.as_nanos() - 1);
                prop_assert!(meter.plan(&state, early, &Ask::ONE).decision.is_denied());
            }
            // Several at once, too: or never, where rest makes it only colder.
            let ask = Ask::new(several);
            match meter.plan(&state, now, &ask).decision.retry() {
                None => {}
                Some(Retry::After(wait)) => {
                    prop_assert!(meter.plan(&state, now.after(wait), &ask).decision.is_allowed());
                }
                Some(_) => for half in 1..50 {
                    let then = now.after_nanos(half * HALF);
                    prop_assert!(meter.plan(&state, then, &ask).decision.is_denied());
                },
            }
            // The reset is when nothing counts as passing any more.
            let passing = meter.used(&state, now.after(decision.reset_after));
            prop_assert_eq!(passing, Used::NOTHING);
        }
    }
}
