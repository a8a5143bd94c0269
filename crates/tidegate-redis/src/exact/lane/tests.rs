use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tidegate::Retry;

use super::*;
use crate::exact::script::{Granted, Said};

/// What happens to a lane.
#[derive(Clone, Copy, Debug)]
enum Event {
    Join {
        permits: u64,
        patient: bool,
    },
    /// The caller with this number, if it is still there.
    Leave(usize),
    /// Time goes on, and it is somebody's turn.
    Turn {
        after_us: u64,
    },
    /// The call in flight ends: with so many permits in Redis, or not at all.
    End(Option<u64>),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (prop_oneof![4 => Just(1), 2 => 0..5_u64], prop::bool::weighted(0.1))
            .prop_map(|(permits, patient)| Event::Join { permits, patient }),
        1 => any::<usize>().prop_map(Event::Leave),
        3 => (0..300_u64).prop_map(|after_us| Event::Turn { after_us }),
        3 => prop::option::weighted(0.8, 0..12_u64).prop_map(Event::End),
    ]
}

fn ask(permits: u64, patient: bool) -> Ask {
    let wait = if patient { 1_000 } else { 0 };
    Ask::new(permits).within(Duration::from_micros(wait))
}

fn can_grow(ask: &Ask) -> bool {
    ask.max_delay().is_zero()
}

/// What Redis would say: one caller after the other, until one asks for more than there is.
fn reply(groups: &[Group], mut free: u64) -> Reply {
    let groups = groups.iter().map(|group| {
        let permits = group.ask.permits();
        let fit = free.checked_div(permits).unwrap_or(u64::MAX);
        let requests = fit.min(group.requests);
        free -= requests * permits;
        let said = Said {
            remaining: free,
            retry: (requests < group.requests).then_some(Retry::After(Duration::from_secs(1))),
            reset_after: Duration::ZERO,
            delay: Duration::ZERO,
        };
        Granted {
            requests,
            limits: vec![said],
        }
    });
    Reply {
        marks: vec![0],
        groups: groups.collect(),
    }
}

/// Who has joined, and how it ended for them.
#[derive(Debug, Default)]
struct Callers {
    asks: Vec<Ask>,
    left: BTreeSet<usize>,
    answered: BTreeMap<usize, Option<bool>>,
    last: Option<usize>,
}

impl Callers {
    fn answer(&mut self, caller: usize, granted: Option<bool>) -> Result<(), TestCaseError> {
        prop_assert!(!self.left.contains(&caller), "{caller} had left");
        prop_assert!(
            self.answered.insert(caller, granted).is_none(),
            "{caller} twice"
        );
        prop_assert!(self.last < Some(caller), "{caller} after {:?}", self.last);
        self.last = Some(caller);
        Ok(())
    }
}

proptest! {
    /// Everybody who stays is answered exactly once, in the order in which they came; and what is
    /// granted to who has left is told, to be given back.
    #[test]
    fn all_are_answered_once_in_order(
        events in prop::collection::vec(event(), 1..120),
        linger_us in prop_oneof![Just(0), 1..200_u64],
    ) {
        let linger = Duration::from_micros(linger_us);
        let mut lane = Lane::new(linger);
        let mut callers = Callers::default();
        let mut now = Duration::ZERO;
        let mut in_flight: Option<Vec<Group>> = None;
        // Whatever happened, in the end all are served.
        let end = [Event::End(Some(3)), Event::Turn { after_us: 1_000 }];
        let rest = std::iter::repeat_n(end, 300).flatten();
        for event in events.into_iter().chain(rest) {
            match event {
                Event::Join { permits, patient } => {
                    let caller = callers.asks.len();
                    let ask = ask(permits, patient);
                    callers.asks.push(ask);
                    prop_assert!(lane.join(now, Place(caller as u64), ask, caller));
                }
                Event::Leave(which) => {
                    let Some(caller) = which.checked_rem(callers.asks.len()) else { continue };
                    let was_there = lane.leave(Place(caller as u64)).is_some();
                    let is_waiting = !callers.answered.contains_key(&caller)
                        && callers.left.insert(caller);
                    prop_assert_eq!(was_there, is_waiting);
                }
                Event::Turn { after_us } => {
                    now += Duration::from_micros(after_us);
                    match lane.turn(now, can_grow) {
                        Turn::Call(groups) => {
                            prop_assert!(in_flight.is_none(), "two calls at once");
                            prop_assert!(groups.len() <= MAX_GROUPS);
                            for group in &groups {
                                prop_assert!(group.requests == 1 || can_grow(&group.ask));
                            }
                            in_flight = Some(groups);
                        }
                        Turn::Until(due) => prop_assert!(now < due && due <= now + linger),
                        Turn::Rest => {
                            let nobody = lane.is_idle();
                            prop_assert_eq!(nobody, in_flight.is_none());
                        }
                    }
                }
                Event::End(free) => {
                    let Some(groups) = in_flight.take() else { continue };
                    let Some(free) = free else {
                        for caller in lane.failed() {
                            callers.answer(caller, None)?;
                        }
                        continue;
                    };
                    let reply = reply(&groups, free);
                    let ended = lane.answered(&reply, &groups);
                    let asked = groups.iter().zip(&reply.groups);
                    let granted: u64 =
                        asked.map(|(group, granted)| granted.requests * group.ask.permits()).sum();
                    let mut told = ended.abandoned;
                    for (caller, part) in ended.answers {
                        prop_assert_eq!(part.ask, callers.asks[caller]);
                        prop_assert_eq!(part.ask, groups[part.group].ask);
                        if part.after.is_some() {
                            told += part.ask.permits();
                        }
                        callers.answer(caller, Some(part.after.is_some()))?;
                    }
                    prop_assert_eq!(told, granted, "all that was granted has somebody");
                }
            }
        }
        prop_assert!(lane.is_idle());
        prop_assert_eq!(callers.left.len() + callers.answered.len(), callers.asks.len());
    }
}

#[test]
fn the_first_goes_at_once_and_the_others_share_the_next_call() {
    let mut lane = Lane::new(Duration::ZERO);
    let now = Duration::ZERO;
    for caller in 0..4 {
        let permits = if caller == 3 { 2 } else { 1 };
        assert!(lane.join(now, Place(caller), Ask::new(permits), caller));
        if caller == 0 {
            let alone = Group {
                requests: 1,
                ask: Ask::ONE,
            };
            assert_eq!(lane.turn(now, can_grow), Turn::Call(vec![alone]));
        }
    }
    assert_eq!(lane.turn(now, can_grow), Turn::Rest);
    assert_eq!(lane.failed(), [0]);
    let both = Group {
        requests: 2,
        ask: Ask::ONE,
    };
    let dear = Group {
        requests: 1,
        ask: Ask::new(2),
    };
    assert_eq!(
        lane.turn(now, can_grow),
        Turn::Call(vec![both.clone(), dear.clone()])
    );
    let groups = [both, dear];
    let ended = lane.answered(&reply(&groups, 3), &groups);
    let after: Vec<_> = ended
        .answers
        .iter()
        .map(|(caller, part)| (*caller, part.after))
        .collect();
    assert_eq!(after, [(1, Some(1)), (2, Some(0)), (3, None)]);
}

#[test]
fn queue_and_batch_are_bounded() {
    let mut lane = Lane::new(Duration::from_secs(1));
    let now = Duration::ZERO;
    for caller in 0..MAX_WAITING as u64 {
        assert!(lane.join(now, Place(caller), Ask::ONE, ()));
    }
    assert!(!lane.join(now, Place(u64::MAX), Ask::ONE, ()));
    // A full batch does not linger.
    let full = Group {
        requests: MAX_BATCH as u64,
        ask: Ask::ONE,
    };
    assert_eq!(lane.turn(now, can_grow), Turn::Call(vec![full]));
    assert_eq!(lane.failed().len(), MAX_BATCH);
}
