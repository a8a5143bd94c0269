//! Promises 4 and 6, by the engine's own word: who waits exactly as long as was told is admitted,
//! one nanosecond earlier not; and who asks for exactly what remains gets it.

use core::num::NonZeroU32;
use core::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use tidegate::{
    Algorithm, Ask, Clock, Decision, KeyedLimiter, ManualClock, Quota, Retry, Timestamp,
};
use tidegate_sim::oracle::{Oracle, oracle_of};
use tidegate_sim::strategy::{self, Act, Allowed, Step, cases, scale};

use crate::door::Way;

type Outcome = Result<(), TestCaseError>;

const ALL: Allowed = Allowed {
    steps_back: false,
    patience: true,
    give_back: true,
    force: false,
};

#[derive(Clone, Copy, Debug)]
enum Event {
    Check(Timestamp, Ask),
    GiveBack(Timestamp, usize),
}

/// What has happened so far, to be told again to another store.
#[derive(Debug)]
struct Story {
    algorithm: Algorithm,
    way: Way,
    start: Timestamp,
    events: Vec<Event>,
}

impl Story {
    /// What a request at `now` would be answered after all that has happened.
    fn then(&self, now: Timestamp, ask: &Ask) -> Decision {
        let mut door = self.way.open(&self.algorithm, self.start);
        for event in &self.events {
            match *event {
                Event::Check(now, ask) => drop(door.check(now, &ask)),
                Event::GiveBack(now, which) => door.give_back(which, now),
            }
        }
        door.check(now, ask)
    }

    /// `patience` is that of the ask: a grant may come as much later than the request.
    fn denial_is_true(
        &self,
        now: Timestamp,
        ask: &Ask,
        patience: Duration,
        retry: Retry,
    ) -> Outcome {
        match retry {
            Retry::OnRelease => prop_assert!(self.algorithm.is_gate()),
            Retry::Never => {
                let rested = now.after(Duration::from_hours(24 * 365));
                prop_assert!(self.then(rested, ask).is_denied());
            }
            Retry::After(wait) => {
                prop_assert!(!wait.is_zero());
                let nanos = wait.as_nanos() as u64;
                let latest = wait.saturating_add(patience).as_nanos() + u128::from(now.as_nanos());
                if latest > Timestamp::MAX.as_nanos().into() {
                    return Ok(()); // Time ends before.
                }
                let on_time = now.after_nanos(nanos);
                prop_assert!(self.then(on_time, ask).is_allowed(), "after {:?}", wait);
                let early = now.after_nanos(nanos - 1);
                prop_assert!(self.then(early, ask).is_denied(), "before {:?}", wait);
            }
        }
        Ok(())
    }

    fn remaining_is_there(&self, now: Timestamp, remaining: u64) -> Outcome {
        let all = self.then(now, &Ask::new(remaining));
        prop_assert!(all.is_allowed() && all.delay().is_zero());
        if !self.algorithm.delays() {
            prop_assert!(self.then(now, &Ask::new(remaining + 1)).is_denied());
        }
        Ok(())
    }
}

fn words_are_true(algorithm: Algorithm, way: Way, start: Timestamp, steps: &[Step]) -> Outcome {
    let mut story = Story {
        algorithm,
        way,
        start,
        events: Vec::new(),
    };
    let mut door = way.open(&algorithm, start);
    let (mut now, mut told) = (start, 0);
    let (mut takes, mut out) = (0, Vec::new());
    // Only to size the steps.
    let limit: Box<dyn Oracle> = oracle_of(&algorithm, start.as_nanos());
    for step in steps {
        now = Timestamp::from_nanos(step.time.from(now.as_nanos(), scale(&algorithm), told));
        if let Act::GiveBack(which) = step.act {
            let Some(at) = which.checked_rem(out.len()) else {
                continue;
            };
            let number = out.swap_remove(at);
            door.give_back(number, now);
            story.events.push(Event::GiveBack(now, number));
            continue;
        }
        let patience = Duration::from_nanos(step.patience.nanos(scale(&algorithm)));
        let ask = Ask::new(step.size.permits(&*limit, now.as_nanos())).within(patience);
        let decision = door.check(now, &ask);
        story.events.push(Event::Check(now, ask));
        if let Some(retry) = decision.retry() {
            told = decision
                .retry_after()
                .map_or(0, |wait| wait.as_nanos() as u64);
            story.denial_is_true(now, &ask, patience, retry)?;
        } else if ask.permits() > 0 {
            out.push(takes);
            takes += 1;
        }
        story.remaining_is_there(now, decision.remaining)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(200))]

    // proves: A1, B1 (local), B3 (local), B4 (meter), B5 (greedy refill), B6 (local)
    #[test]
    fn who_waits_as_told_is_admitted_and_what_remains_is_there(
        algorithm in strategy::rate_limit(),
        way in prop::sample::select(&Way::ALL[..]),
        start in strategy::start(),
        steps in strategy::schedule(40, ALL),
    ) {
        words_are_true(algorithm, way, start, &steps)?;
    }

    // proves: A2 (refusing), B8 (permits with a guard)
    #[test]
    fn what_remains_of_a_concurrency_limit_is_there(
        algorithm in strategy::concurrency(),
        start in strategy::start(),
        steps in strategy::schedule(40, ALL),
    ) {
        words_are_true(algorithm, Way::Keyed, start, &steps)?;
    }
}

// shows: B10 (sync)
#[test]
fn who_waits_for_a_key_waits_as_told_and_who_waits_in_vain_does_not() {
    let start = Timestamp::from_secs(1_700_000_000);
    let clock = ManualClock::new(start);
    let built = KeyedLimiter::builder(Quota::per_second(1)).clock(clock.clone());
    let limiter = built.build().expect("valid");
    for second in 0..3 {
        // A manual clock is moved by who sleeps.
        assert!(limiter.acquire("k", 1).is_allowed());
        assert_eq!(clock.now(), start.after(Duration::from_secs(second)));
    }
    let soon = Duration::from_millis(999);
    assert!(limiter.acquire_within("k", 1, soon).is_denied());
    assert_eq!(limiter.acquire("k", 2).retry(), Some(Retry::Never));
    assert_eq!(clock.now(), start.after(Duration::from_secs(2)));
    assert!(limiter.acquire("other", 1).delay().is_zero());
}

// shows: A7 (cost and peek and give back), B3 (local)
#[test]
fn reservations_that_are_given_up_leave_what_was_taken_before_them() {
    let start = Timestamp::from_secs(1_700_000_000);
    let window = Duration::from_secs(10);
    let log = Algorithm::SlidingLog { permits: 2, window };
    let limits = [
        log,
        Algorithm::SlidingWindow {
            permits: 2,
            window,
            parts: NonZeroU32::new(10).expect("not 0"),
        },
        Algorithm::FixedWindow { permits: 2, window },
    ];
    for limit in limits {
        for way in Way::ALL {
            let mut door = way.open(&limit, start);
            let patient = Ask::ONE.within(Duration::from_mins(10));
            let at = |secs| start.after(Duration::from_secs(secs));
            for _ in 0..2 {
                assert!(door.check(at(0), &Ask::ONE).delay().is_zero());
            }
            for place in 0..4 {
                let reserved = door.check(at(1), &patient);
                let wait = reserved.delay().as_secs();
                assert!(
                    wait >= if place < 2 { 9 } else { 19 },
                    "{limit:?}: {reserved:?}"
                );
            }
            for number in 2..6 {
                door.give_back(number, at(1));
            }
            assert!(door.check(at(2), &Ask::ONE).is_denied(), "{limit:?}");
        }
    }
}
