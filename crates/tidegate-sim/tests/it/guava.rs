//! Guava's own values: what its tests say (T), and what follows from its source (D). It truncates
//! each price to a microsecond and its tests compare two digits; ours are exact. The oracles are
//! held to the same values.

use core::time::Duration;

use tidegate::{Algorithm, Ask, Clock, Limiter, ManualClock, Quota, Timestamp};
use tidegate_sim::oracle::{Request, oracle_of};

/// What a caller does: acquires so many and sleeps as told, or rests.
#[derive(Clone, Copy, Debug)]
enum Do {
    Acquire(u64),
    Rest(f64),
}
use Do::{Acquire, Rest};

const START: Timestamp = Timestamp::from_secs(1_700_000_000);
const FOR_EVER: u64 = 10_000 * 1_000_000_000;

fn bursty(per_second: u64) -> Algorithm {
    Algorithm::SmoothBursty {
        quota: Quota::per_second(per_second),
        max_debt: Duration::from_hours(1),
    }
}

fn warm_up(per_second: u64, seconds: u64, cold_factor: u32) -> Algorithm {
    Algorithm::SmoothWarmUp {
        quota: Quota::per_second(per_second),
        warm_up: Duration::from_secs(seconds),
        cold_factor,
        max_debt: Duration::from_hours(1),
    }
}

/// Waits in seconds, by the engine (acquiring, as a user would) and by the oracle.
fn waits(algorithm: Algorithm, story: &[Do]) -> [Vec<f64>; 2] {
    let clock = ManualClock::new(START);
    let limiter = Limiter::with_clock(algorithm, clock.clone()).expect("valid");
    let mut oracle = oracle_of(&algorithm, START.as_nanos());
    let mut oracle_now = START.as_nanos();
    let mut all = [Vec::new(), Vec::new()];
    for step in story {
        match *step {
            Rest(seconds) => {
                let rest = Duration::from_secs_f64(seconds);
                clock.advance(rest);
                oracle_now += rest.as_nanos() as u64;
            }
            Acquire(permits) => {
                let before = clock.now();
                let decision = limiter.acquire(Ask::new(permits));
                assert!(decision.is_allowed());
                assert_eq!(clock.now().since(before), decision.delay(), "slept as told");
                all[0].push(decision.delay().as_secs_f64());

                let request = Request {
                    patience: FOR_EVER,
                    ..Request::at(oracle_now, permits)
                };
                let delay = oracle.delay_of(request).expect("patient enough");
                oracle.take(request);
                oracle_now += delay;
                all[1].push(Duration::from_nanos(delay).as_secs_f64());
            }
        }
    }
    all
}

/// The waits are these, to `within` seconds.
fn check(algorithm: Algorithm, story: &[Do], expected: &[f64], within: f64) {
    for waits in waits(algorithm, story) {
        assert_eq!(waits.len(), expected.len());
        for (wait, expected) in waits.iter().zip(expected) {
            let off = (wait - expected).abs();
            assert!(off <= within, "{algorithm:?}: {waits:?}");
        }
    }
}

fn ones(count: usize) -> Vec<Do> {
    vec![Acquire(1); count]
}

const EXACT: f64 = 1e-9;
/// What Guava's tests compare.
const TWO_DIGITS: f64 = 0.005 + 1e-6;

// shows: B6 (local)
#[test]
fn bursty_the_next_one_pays() {
    let story = [Acquire(10), Acquire(1), Acquire(1), Acquire(1)];
    check(bursty(5), &story, &[0.0, 2.0, 0.2, 0.2], EXACT);
    let story = [1, 1, 2, 4, 8, 1].map(Acquire);
    check(bursty(1), &story, &[0.0, 1.0, 1.0, 2.0, 4.0, 8.0], EXACT);
}

// shows: B6 (local)
#[test]
fn bursty_stores_a_second_of_permits_and_the_next_is_free() {
    let mut story = vec![Acquire(1), Rest(3.0)];
    story.extend(ones(8));
    let waits = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.2, 0.2];
    check(bursty(5), &story, &waits, EXACT);
}

// shows: B6 (local)
#[test]
fn bursty_eleven_at_once_go_one_each_100_ms() {
    let clock = ManualClock::new(START);
    let limiter = Limiter::with_clock(bursty(10), clock).expect("valid");
    for caller in 0..11_u64 {
        // Nobody sleeps: all come at one instant.
        let decision = limiter.check_ask(Ask::ONE.within(Duration::from_secs(10)));
        assert_eq!(decision.delay(), Duration::from_millis(100 * caller));
    }
}

// shows: B6 (local)
#[test]
fn warm_up_two_per_second_over_three_seconds() {
    let waits = [0.0, 4.0 / 3.0, 1.0, 2.0 / 3.0, 0.5, 0.5, 0.5, 0.5, 0.5];
    check(warm_up(2, 3, 3), &ones(9), &waits, 2.0 * EXACT);
}

// shows: B6 (local)
#[test]
fn warm_up_gets_cold_again_after_rest() {
    let cold = [0.0, 1.38, 1.13, 0.88, 0.63, 0.5, 0.5, 0.5];
    let mut story = ones(8);
    story.push(Rest(0.5 + 4.0));
    story.extend(ones(8));
    story.push(Rest(0.5 + 2.0));
    story.extend(ones(8));
    let mut waits = [cold, cold].concat();
    waits.extend([0.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]);
    check(warm_up(2, 4, 3), &story, &waits, TWO_DIGITS);
}

// shows: B6 (local)
#[test]
fn warm_up_with_a_cold_factor_of_ten() {
    let waits = [0.0, 1.75, 1.26, 0.76, 0.30, 0.2, 0.2, 0.2];
    check(warm_up(5, 4, 10), &ones(8), &waits, TWO_DIGITS);
}

// shows: B6 (local)
#[test]
fn warm_up_takes_as_long_however_it_is_asked() {
    for cold_factor in [2, 3, 10] {
        let per_second = 1_000_u64;
        let algorithm = warm_up(per_second, 8, cold_factor);
        // What is stored above the threshold: 2 P / (1 + c), at this rate.
        let above = 16_000 / u64::from(1 + cold_factor);
        for batch in [1, 7, 100, above] {
            let mut story = vec![Acquire(batch); usize::try_from(above / batch).expect("few")];
            story.push(Acquire(above % batch + 1));
            story.push(Acquire(1));
            for waits in waits(algorithm, &story) {
                let spent: f64 = waits.iter().sum();
                // One permit of the last acquisition is from below: a thousandth of a second.
                assert!((spent - 8.0).abs() < 0.01, "{cold_factor} {batch}: {spent}");
            }
        }
    }
}

// shows: B6 (local), B10 (sync)
#[test]
fn try_acquire_looks_at_the_debt_of_others_not_at_its_own() {
    let clock = ManualClock::new(START);
    let limiter = Limiter::with_clock(bursty(5), clock.clone()).expect("valid");
    let within = |millis| limiter.check_ask(Ask::ONE.within(Duration::from_millis(millis)));
    assert!(within(0).is_allowed());
    let second = within(200);
    assert_eq!(second.delay(), Duration::from_millis(200));
    clock.advance(second.delay());
    assert!(within(100).is_denied(), "at once, without sleeping");
    clock.advance(Duration::from_millis(100));
    assert!(within(100).is_allowed());
}
