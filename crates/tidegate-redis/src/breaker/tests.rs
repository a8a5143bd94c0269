use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

fn at(millis: u64) -> Timestamp {
    Timestamp::from_secs(1_000_000).after_nanos(millis * 1_000_000)
}

/// One that has a connection.
fn closed(now: Timestamp) -> Breaker {
    let mut breaker = Breaker::new();
    breaker.probe_passed(now);
    breaker
}

fn call(breaker: &mut Breaker, now: Timestamp, outcome: Outcome) {
    let pass = breaker.admit().expect("lets calls through");
    breaker.record(now, pass, outcome, u64::MAX);
}

/// A pipeline of 64 that met one pause of the server was 64 misses in a row.
#[test]
fn calls_that_were_under_way_together_are_one_miss() {
    let mut breaker = closed(at(0));
    for wave in 1..=5 {
        let passes: Vec<_> = (0..64).filter_map(|_| breaker.admit()).collect();
        assert_eq!(passes.len(), 64, "{wave}");
        for pass in passes {
            breaker.record(at(15 * wave), pass, Outcome::Missed, u64::MAX);
        }
    }
    assert_eq!(breaker.phase(), Phase::Open);
}

#[test]
fn without_a_connection_nobody_asks() {
    let mut breaker = Breaker::new();
    assert_eq!(breaker.admit(), None);
    assert_eq!(breaker.probe_at(), Some(Timestamp::EPOCH));
    breaker.probe_failed(at(0), u64::MAX);
    assert_eq!(breaker.admit(), None);
    let due = breaker.probe_at().expect("open");
    assert!(due > at(24) && due <= at(25));
    breaker.probe_passed(at(30));
    assert_eq!(breaker.phase(), Phase::Closed);
}

#[test]
fn five_misses_in_a_row_open_it() {
    let mut breaker = closed(at(0));
    for _ in 0..4 {
        call(&mut breaker, at(1), Outcome::Missed);
    }
    call(&mut breaker, at(1), Outcome::Answered);
    for _ in 0..5 {
        assert_eq!(breaker.phase(), Phase::Closed);
        call(&mut breaker, at(1), Outcome::Missed);
    }
    assert_eq!(breaker.phase(), Phase::Open);
    assert_eq!(breaker.admit(), None);
}

#[test]
fn more_than_half_of_the_last_twenty_open_it() {
    let mut breaker = closed(at(0));
    for _ in 0..100 {
        call(&mut breaker, at(1), Outcome::Missed);
        call(&mut breaker, at(1), Outcome::Answered);
    }
    assert_eq!(breaker.phase(), Phase::Closed, "half is not more than half");
    call(&mut breaker, at(1), Outcome::Missed);
    assert_eq!(breaker.phase(), Phase::Closed, "the oldest miss has left");
    call(&mut breaker, at(1), Outcome::Missed);
    assert_eq!(breaker.phase(), Phase::Open, "11 of 20");
}

#[test]
fn a_server_that_cannot_serve_is_not_asked_again() {
    let mut breaker = closed(at(0));
    call(&mut breaker, at(1), Outcome::Useless);
    assert_eq!(breaker.phase(), Phase::Open);
}

#[test]
fn after_misses_three_trials_decide() {
    let mut breaker = closed(at(0));
    call(&mut breaker, at(1), Outcome::Useless);
    breaker.probe_passed(at(30));
    assert_eq!(breaker.phase(), Phase::HalfOpen);
    let trials: Vec<_> = (0..3).map(|_| breaker.admit().expect("a trial")).collect();
    assert_eq!(breaker.admit(), None, "not a fourth");
    breaker.record(at(31), trials[0], Outcome::Answered, 0);
    assert_eq!(breaker.admit(), None, "three in all, not three at once");
    breaker.record(at(31), trials[1], Outcome::Unknown, 0);
    let again = breaker.admit().expect("in place of the one that gave up");
    breaker.record(at(31), trials[2], Outcome::Answered, 0);
    assert_eq!(breaker.phase(), Phase::HalfOpen);
    breaker.record(at(32), again, Outcome::Answered, 0);
    assert_eq!(breaker.phase(), Phase::Closed);
}

#[test]
fn a_trial_that_misses_opens_it_for_longer() {
    let mut breaker = closed(at(0));
    call(&mut breaker, at(1), Outcome::Useless);
    for (round, ceiling) in [50, 100, 200, 400, 500, 500].into_iter().enumerate() {
        let now = at(1_000 * (round as u64 + 1));
        breaker.probe_passed(now);
        call(&mut breaker, now, Outcome::Missed);
        let wait = breaker.probe_at().expect("open").since(now);
        assert_eq!(wait.as_millis() + 1, ceiling);
    }
}

#[test]
fn a_lost_connection_is_made_up_for_by_another() {
    let mut breaker = closed(at(0));
    let before = breaker.admit().expect("closed");
    breaker.lost(at(1), 0);
    assert_eq!(breaker.admit(), None);
    breaker.probe_passed(at(2));
    assert_eq!(breaker.phase(), Phase::Closed);
    breaker.record(at(3), before, Outcome::Useless, 0);
    assert_eq!(breaker.phase(), Phase::Closed, "of another connection");
}

#[test]
fn without_callers_a_probe_does() {
    let mut breaker = closed(at(0));
    call(&mut breaker, at(1), Outcome::Useless);
    breaker.probe_passed(at(100));
    breaker.settle(at(599));
    assert_eq!(breaker.phase(), Phase::HalfOpen);
    let trial = breaker.admit().expect("a trial");
    breaker.settle(at(600));
    assert_eq!(breaker.phase(), Phase::HalfOpen, "the trial decides");
    breaker.record(at(601), trial, Outcome::Unknown, 0);
    breaker.settle(at(1_100));
    assert_eq!(breaker.phase(), Phase::Closed);
}

#[test]
fn the_first_wait_is_short_again_after_a_calm() {
    let mut breaker = closed(at(0));
    for second in 1..9 {
        breaker.lost(at(1_000 * second), u64::MAX);
        breaker.probe_passed(at(1_000 * second + 500));
    }
    breaker.lost(at(18_499), u64::MAX);
    let wait = breaker.probe_at().expect("open").since(at(18_499));
    assert_eq!(
        wait.as_millis(),
        499,
        "10 s after the last reopening, but for 1 ms"
    );
    breaker.probe_passed(at(20_000));
    breaker.lost(at(30_000), u64::MAX);
    let wait = breaker.probe_at().expect("open").since(at(30_000));
    assert_eq!(wait.as_millis(), 24);
}

#[derive(Clone, Debug)]
enum Step {
    Admit,
    Record(usize, Outcome),
    Lost,
    ProbeFailed,
    ProbePassed,
    Settle,
}

fn steps() -> impl Strategy<Value = Vec<(u64, u64, Step)>> {
    let outcome = prop_oneof![
        4 => Just(Outcome::Answered),
        6 => Just(Outcome::Missed),
        1 => Just(Outcome::Useless),
        1 => Just(Outcome::Unknown),
    ];
    let step = prop_oneof![
        8 => Just(Step::Admit),
        8 => (any::<usize>(), outcome).prop_map(|(which, outcome)| Step::Record(which, outcome)),
        1 => Just(Step::Lost),
        1 => Just(Step::ProbeFailed),
        3 => Just(Step::ProbePassed),
        1 => Just(Step::Settle),
    ];
    prop::collection::vec((0..200_u64, any::<u64>(), step), 1..400)
}

proptest! {
    /// Whatever happens in whatever order: nobody asks while it is open; it opens exactly when it
    /// should; no more than three trials are out; a probe is due within the longest wait; and an
    /// outcome of an earlier state changes nothing.
    #[test]
    fn it_keeps_its_promises(steps in steps()) {
        let mut breaker = Breaker::new();
        let mut now = at(0);
        // The last: whether a miss was counted while it was out.
        let mut out: Vec<(u64, Pass, bool)> = Vec::new();
        let mut last: VecDeque<bool> = VecDeque::new();
        let mut trials = 0;
        for (pause, random, step) in steps {
            now = now.after(Duration::from_millis(pause));
            let (before, round) = (breaker.phase(), breaker.round);
            let mut may_open = false;
            match step {
                Step::Admit => {
                    let pass = breaker.admit();
                    prop_assert!(before != Phase::Open || pass.is_none());
                    prop_assert!(before != Phase::Closed || pass.is_some());
                    trials += usize::from(pass.is_some());
                    prop_assert!(before == Phase::Closed || trials <= 3);
                    out.extend(pass.map(|pass| (round, pass, false)));
                }
                Step::Record(which, outcome) if !out.is_empty() => {
                    let (admitted, pass, is_same) = out.swap_remove(which % out.len());
                    breaker.record(now, pass, outcome, random);
                    if admitted != round {
                        prop_assert_eq!(breaker.round, round, "too late to change anything");
                    } else if before == Phase::Closed {
                        let is_miss = outcome == Outcome::Missed && !is_same;
                        if is_miss {
                            for (_, _, is_same) in &mut out {
                                *is_same = true;
                            }
                        }
                        if is_miss || outcome == Outcome::Answered {
                            last.push_front(outcome == Outcome::Missed);
                            last.truncate(20);
                        }
                        let row = last.iter().take(5).filter(|missed| **missed).count() == 5;
                        let many = last.iter().filter(|missed| **missed).count() > 10;
                        may_open = outcome == Outcome::Useless || row || many;
                        prop_assert_eq!(breaker.phase() == Phase::Open, may_open);
                    } else {
                        trials -= usize::from(outcome == Outcome::Unknown);
                        may_open = matches!(outcome, Outcome::Missed | Outcome::Useless);
                        prop_assert_eq!(breaker.phase() == Phase::Open, may_open);
                    }
                }
                Step::Record(..) => {}
                Step::Lost => {
                    breaker.lost(now, random);
                    may_open = true;
                }
                Step::ProbeFailed => breaker.probe_failed(now, random),
                Step::ProbePassed => breaker.probe_passed(now),
                Step::Settle => breaker.settle(now),
            }
            if breaker.round != round {
                last.clear();
                trials = 0;
                let opened = breaker.phase() == Phase::Open;
                prop_assert!(!opened || may_open, "{:?} to open", before);
            }
            if let Some(due) = breaker.probe_at() {
                prop_assert!(due <= now.after(LONGEST));
            }
        }
    }
}
