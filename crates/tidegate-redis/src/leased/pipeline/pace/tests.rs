use std::time::Duration;

use tidegate::Timestamp;

use super::{Change, Ended, MISSES, MOST, Pace, Turn};

/// The longest wait that can be.
const ALL: u64 = u64::MAX;

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(1_000_000 + millis)
}

const CALL: Turn = Turn::Goes { is_trial: false };
const TRIAL: Turn = Turn::Goes { is_trial: true };

/// How many calls may be made at once.
fn goes(pace: &mut Pace, now: Timestamp) -> u32 {
    (0..).take_while(|_| pace.turn(now) == CALL).count() as u32
}

fn ended(pace: &mut Pace, now: Timestamp, how: Ended) -> Option<Change> {
    pace.ended(now, (false, how), ALL)
}

fn trial_ended(pace: &mut Pace, now: Timestamp, how: Ended) -> Option<Change> {
    pace.ended(now, (true, how), ALL)
}

/// One to which nothing answers since 0.
fn down() -> Pace {
    let mut pace = Pace::default();
    assert_eq!(goes(&mut pace, at(0)), MOST);
    for miss in 1..=MOST {
        let change = ended(&mut pace, at(0), Ended::Missed);
        assert_eq!(change, (miss == MISSES).then_some(Change::Down));
    }
    pace
}

#[test]
fn so_many_calls_are_under_way_and_no_more() {
    let mut pace = Pace::default();
    assert_eq!(goes(&mut pace, at(0)), MOST);
    assert_eq!(pace.turn(at(0)), Turn::Full);
    assert_eq!(ended(&mut pace, at(1), Ended::Answered), None);
    assert_eq!(goes(&mut pace, at(1)), 1);
}

#[test]
fn misses_between_answers_stop_nobody() {
    let mut pace = Pace::default();
    for _ in 0..100 {
        for _ in 1..MISSES {
            assert_eq!(pace.turn(at(0)), CALL);
            assert_eq!(ended(&mut pace, at(0), Ended::Missed), None);
        }
        assert_eq!(pace.turn(at(0)), CALL);
        assert_eq!(ended(&mut pace, at(0), Ended::Answered), None);
    }
    assert!(!pace.is_down());
}

#[test]
fn where_nothing_answers_one_tries_after_waits_that_double() {
    let mut pace = down();
    let mut now = 0;
    // Those that were under way when it went down have not made the first any longer.
    for ceiling in [25, 50, 100, 200, 400, 500, 500] {
        assert!(matches!(pace.turn(at(now + ceiling - 1)), Turn::Down(_)));
        assert_eq!(pace.turn(at(now + ceiling)), TRIAL, "{ceiling}");
        now += ceiling + 15;
        assert!(matches!(pace.turn(at(now)), Turn::Down(_)), "one tries");
        assert_eq!(trial_ended(&mut pace, at(now), Ended::Missed), None);
    }
}

#[test]
fn what_is_not_sent_makes_no_wait_longer() {
    let mut pace = down();
    let mut now = 0;
    for _ in 0..20 {
        now += 25;
        assert_eq!(pace.turn(at(now)), TRIAL);
        assert_eq!(trial_ended(&mut pace, at(now), Ended::NotSent), None);
    }
}

#[test]
fn after_an_answer_there_is_one_call_and_then_more_and_more() {
    let mut pace = down();
    assert_eq!(pace.turn(at(25)), TRIAL);
    let up = trial_ended(&mut pace, at(26), Ended::Answered);
    let after = Duration::from_millis(26);
    assert_eq!(up, Some(Change::Up { after }));
    for window in [1, 2, 4, 8, 16, 32, 64, 64] {
        assert_eq!(goes(&mut pace, at(30)), window);
        for _ in 0..window {
            assert_eq!(ended(&mut pace, at(30), Ended::Answered), None);
        }
    }
}

#[test]
fn a_trial_that_was_given_up_is_made_by_another() {
    let mut pace = down();
    assert_eq!(pace.turn(at(25)), TRIAL);
    assert_eq!(trial_ended(&mut pace, at(26), Ended::GivenUp), None);
    assert_eq!(pace.turn(at(26)), TRIAL);
}
