//! Limits of which the next one pays: a change forgives no debt, and scales what is stored.

use core::time::Duration;

use tidegate::{Algorithm, Ask, KeyedLimiter, ManualClock, Quota};

use super::{START, limiter};

/// Waits in seconds of a limiter that is acquired from, with changes between.
fn guava(story: &[Turn]) -> Vec<f64> {
    let clock = ManualClock::new(START);
    let mut limiter: Option<KeyedLimiter<ManualClock>> = None;
    let mut waits = Vec::new();
    for turn in story {
        match (*turn, &mut limiter) {
            (Turn::Rate(algorithm), None) => limiter = Some(self::limiter(algorithm, &clock)),
            (Turn::Rate(algorithm), Some(limiter)) => {
                limiter.set_limit(algorithm, 100).expect("a valid limit");
            }
            (Turn::Acquire(permits), Some(limiter)) => {
                let long = Duration::from_hours(1);
                let decision = limiter.acquire_within("key", Ask::new(permits), long);
                waits.push(decision.delay().as_secs_f64());
            }
            (Turn::Acquire(_), None) => panic!("a rate first"),
        }
    }
    waits
}

#[derive(Clone, Copy, Debug)]
enum Turn {
    Rate(Algorithm),
    Acquire(u64),
}

fn bursty(per_second: u64) -> Turn {
    Turn::Rate(Algorithm::SmoothBursty {
        quota: Quota::per_second(per_second),
        max_debt: Duration::from_hours(1),
    })
}

fn warm_up(per_second: u64) -> Turn {
    Turn::Rate(Algorithm::SmoothWarmUp {
        quota: Quota::per_second(per_second),
        warm_up: Duration::from_secs(4),
        cold_factor: 3,
        max_debt: Duration::from_hours(1),
    })
}

fn close(waits: &[f64], expected: &[f64]) {
    assert_eq!(waits.len(), expected.len());
    let near = |(wait, expected): (&f64, &f64)| (wait - expected).abs() < 0.005 + 1e-6;
    assert!(waits.iter().zip(expected).all(near), "{waits:?}");
}

// shows: B6 (local), F4 (Guava: setRate of a bursty limiter)
#[test]
fn a_changed_bursty_rate_lets_the_next_one_pay_the_old_debt() {
    use Turn::Acquire;
    let story = [
        bursty(1),
        Acquire(1),
        Acquire(1),
        bursty(2),
        Acquire(1),
        Acquire(2),
        Acquire(4),
        Acquire(1),
    ];
    close(&guava(&story), &[0.0, 1.0, 1.0, 0.5, 1.0, 2.0]);
    // To a rate whose state would not fit 64 bits: the same.
    let story = [bursty(1), Acquire(1), bursty(7), Acquire(7), Acquire(1)];
    close(&guava(&story), &[0.0, 1.0, 1.0]);
}

// shows: B6 (local), F4 (Guava: setRate while warming up)
#[test]
fn a_changed_warm_up_rate_goes_on_as_warm_as_it_was() {
    let one = Turn::Acquire(1);
    let mut story = vec![warm_up(2)];
    // Warm, cold again after rest: by asking in the same words as Guava's test does.
    story.extend([one, one, one]);
    story.push(warm_up(4));
    story.extend([one; 5]);
    close(
        &guava(&story),
        &[0.0, 1.38, 1.13, 0.88, 0.34, 0.28, 0.25, 0.25],
    );
}

// shows: F4 (a reload gives nothing away)
#[test]
fn changing_a_pay_later_limit_forgives_no_debt() {
    for (a, b) in [(bursty(10), bursty(20)), (warm_up(10), warm_up(20))] {
        let clock = ManualClock::new(START);
        let (Turn::Rate(slow), Turn::Rate(fast)) = (a, b) else {
            panic!("rates");
        };
        let mut limiter = limiter(slow, &clock);
        let mut passed = 0;
        for turn in 0..1_000 {
            let algorithm = if turn % 2 == 0 { fast } else { slow };
            limiter.set_limit(algorithm, 100).expect("a valid limit");
            while limiter.check("key").is_allowed() {
                passed += 1;
            }
            clock.advance(Duration::from_millis(1));
        }
        // A second at no more than 20 a second, what is stored at first, and one to be paid.
        assert!(passed <= 20 + 20 + 1, "{passed}");
    }
}

// shows: B6 (local), F4 (Guava: setRate scales what is stored)
#[test]
fn a_changed_burst_stores_the_same_part_of_it() {
    let of = |burst| Algorithm::SmoothBursty {
        quota: Quota::per_second(10).burst(burst),
        max_debt: Duration::from_hours(1),
    };
    let clock = ManualClock::new(START);
    let mut limiter = limiter(of(10), &clock);
    assert!(limiter.check("key").is_allowed());
    clock.advance(Duration::from_millis(600));
    let mut stored = |burst| {
        limiter.set_limit(of(burst), 100).expect("a valid limit");
        limiter.peek("key", Ask::ONE).remaining
    };
    // A tenth of a second pays for the first; five have been stored since.
    assert_eq!([10, 20, 7, 10].map(&mut stored), [5, 10, 3, 5]);
}
