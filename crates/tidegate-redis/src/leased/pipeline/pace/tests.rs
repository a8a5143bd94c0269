use std::time::Duration;

use tidegate::Timestamp;

use super::{Change, Ended, MISSES, MOST, NOT_SENT, Pace, Pass, Turn};

/// The longest wait that can be.
const ALL: u64 = u64::MAX;

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(1_000_000 + millis)
}

/// As many calls as may be made.
fn all(pace: &mut Pace, now: Timestamp) -> Vec<Pass> {
    let one = |_| match pace.turn(now) {
        Turn::Goes(pass) => Some(pass),
        _ => None,
    };
    (0..1_000).map_while(one).collect()
}

fn one(pace: &mut Pace, now: Timestamp) -> Pass {
    match pace.turn(now) {
        Turn::Goes(pass) => pass,
        other => panic!("{other:?}"),
    }
}

/// One to which nothing answers since 0.
fn down() -> Pace {
    let mut pace = Pace::default();
    let mut change = None;
    for _ in 0..MISSES {
        assert_eq!(change, None);
        let pass = one(&mut pace, at(0));
        change = pace.ended(at(0), (pass, Ended::Missed), ALL);
    }
    assert_eq!(change, Some(Change::Down));
    pace
}

#[test]
fn so_many_calls_are_under_way_and_no_more() {
    let mut pace = Pace::default();
    let calls = all(&mut pace, at(0));
    assert_eq!(calls.len(), MOST as usize);
    assert_eq!(pace.turn(at(0)), Turn::Full);
    assert_eq!(pace.ended(at(1), (calls[0], Ended::Answered), 0), None);
    assert_eq!(all(&mut pace, at(1)).len(), 1);
}

#[test]
fn calls_that_were_under_way_together_are_one_miss() {
    let mut pace = Pace::default();
    for wave in 1..=MISSES {
        let calls = all(&mut pace, at(0));
        assert_eq!(calls.len(), MOST as usize);
        let ended = calls
            .iter()
            .map(|pass| pace.ended(at(15), (*pass, Ended::Missed), ALL));
        let changes: Vec<_> = ended.flatten().collect();
        assert_eq!(changes.len(), usize::from(wave == MISSES));
    }
}

#[test]
fn misses_between_answers_stop_nobody() {
    let mut pace = Pace::default();
    for round in 0..100 {
        let (how, most) = if round % 2 == 0 {
            (Ended::Missed, MISSES)
        } else {
            (Ended::NotSent, NOT_SENT)
        };
        for _ in 1..most {
            let pass = one(&mut pace, at(0));
            assert_eq!(pace.ended(at(0), (pass, how), ALL), None);
        }
        let pass = one(&mut pace, at(0));
        assert_eq!(pace.ended(at(0), (pass, Ended::Answered), ALL), None);
    }
    assert!(!pace.is_down());
}

#[test]
fn where_nothing_answers_one_tries_after_waits_that_double() {
    let mut pace = down();
    let mut now = 0;
    for ceiling in [25, 50, 100, 200, 400, 500, 500] {
        assert!(matches!(pace.turn(at(now + ceiling - 1)), Turn::Down(_)));
        let trial = one(&mut pace, at(now + ceiling));
        now += ceiling + 15;
        assert!(matches!(pace.turn(at(now)), Turn::Down(_)), "one tries");
        assert_eq!(pace.ended(at(now), (trial, Ended::Missed), ALL), None);
    }
}

#[test]
fn one_that_was_under_way_before_does_not_count_as_the_trial() {
    let mut pace = Pace::default();
    let early = one(&mut pace, at(0));
    for _ in 0..MISSES {
        let pass = one(&mut pace, at(0));
        pace.ended(at(0), (pass, Ended::Missed), ALL);
    }
    let trial = one(&mut pace, at(25));
    assert_eq!(pace.ended(at(26), (early, Ended::Missed), ALL), None);
    assert!(matches!(pace.turn(at(27)), Turn::Down(_)), "one tries");
    assert!(pace.ended(at(27), (trial, Ended::Answered), ALL).is_some());
}

#[test]
fn what_is_not_sent_makes_no_wait_longer() {
    let mut pace = down();
    let mut now = 0;
    for _ in 0..20 {
        now += 25;
        let trial = one(&mut pace, at(now));
        assert_eq!(pace.ended(at(now), (trial, Ended::NotSent), ALL), None);
    }
}

#[test]
fn after_an_answer_there_is_one_call_and_then_more_and_more() {
    let mut pace = down();
    let trial = one(&mut pace, at(25));
    let up = pace.ended(at(26), (trial, Ended::Answered), 0);
    let after = Duration::from_millis(26);
    assert_eq!(up, Some(Change::Up { after }));
    for window in [1, 2, 4, 8, 16, 32, 64, 64] {
        let calls = all(&mut pace, at(30));
        assert_eq!(calls.len(), window);
        for pass in calls {
            assert_eq!(pace.ended(at(30), (pass, Ended::Answered), 0), None);
        }
    }
}

#[test]
fn a_trial_that_was_given_up_is_made_by_another() {
    let mut pace = down();
    let trial = one(&mut pace, at(25));
    assert_eq!(pace.ended(at(26), (trial, Ended::GivenUp), 0), None);
    let _ = one(&mut pace, at(26));
}
