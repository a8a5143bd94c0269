//! Runs a schedule through the engine and an oracle, and compares each answer in full.

use core::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use tidegate::{Algorithm, Ask, Decision, Quota, Retry, Timestamp};
use tidegate_sim::interval::Pass;
use tidegate_sim::oracle::{Oracle, Request, Ticket, oracle_of};
use tidegate_sim::strategy::{Act, Step, scale};

use crate::door::{Door, Way};

type Outcome = Result<(), TestCaseError>;

/// A limit in the engine and in an oracle, side by side.
#[derive(Debug)]
pub(crate) struct Pair {
    algorithm: Algorithm,
    way: Way,
    door: Box<dyn Door>,
    pub(crate) oracle: Box<dyn Oracle>,
    /// What the clock says, and the latest that it said.
    now: u64,
    latest: u64,
    told: u64,
    /// Whether a store would remember the key.
    remembered: bool,
    taken: Vec<Option<(Ticket, u64)>>,
    /// What passed and what was given back, in the order of the calls.
    pub(crate) passes: Vec<Pass>,
}

impl Pair {
    pub(crate) fn new(algorithm: Algorithm, way: Way, start: Timestamp) -> Self {
        Self {
            door: way.open(&algorithm, start),
            oracle: oracle_of(&algorithm, start.as_nanos()),
            algorithm,
            way,
            now: start.as_nanos(),
            latest: match way {
                Way::Meter | Way::Limiter => start.as_nanos(),
                Way::Keyed => 0, // It has not been told yet.
            },
            told: 0,
            remembered: way != Way::Keyed,
            taken: Vec::new(),
            passes: Vec::new(),
        }
    }

    pub(crate) fn run(&mut self, steps: &[Step]) -> Outcome {
        for step in steps {
            self.step(step)?;
        }
        Ok(())
    }

    pub(crate) fn step(&mut self, step: &Step) -> Outcome {
        let scale = scale(&self.algorithm);
        self.now = step.time.from(self.now, scale, self.told);
        if let Act::GiveBack(which) = step.act {
            self.give_back(which);
            return Ok(());
        }
        self.latest = self.latest.max(self.now);
        if !self.remembered {
            // A store begins to remember a key with the first that it admits, or tells to wait.
            self.oracle = oracle_of(&self.algorithm, self.latest);
        }
        // Some schedules run to the end of time. A state has no room for a grant after it.
        let time_left = Timestamp::MAX.as_nanos() - self.latest;
        let request = Request {
            now: self.latest,
            permits: step.size.permits(&*self.oracle, self.latest),
            patience: step.patience.nanos(scale).min(time_left),
            forced: matches!(step.act, Act::Force),
        };
        match step.act {
            Act::Check | Act::Force => self.check(request),
            _ => self.peek(request),
        }
    }

    fn check(&mut self, request: Request) -> Outcome {
        let ask = ask_of(request);
        let decision = self.door.check(Timestamp::from_nanos(self.now), &ask);
        self.compare_verdict(request, &decision)?;
        self.remembered |= decision.retry_after().is_some();
        if decision.is_allowed() && request.permits > 0 {
            self.remembered = true;
            let ticket = self.oracle.take(request);
            self.taken.push(Some((ticket, request.permits)));
            // What is forced is beside the bound.
            if !request.forced {
                self.passes.push(Pass {
                    at: self
                        .latest
                        .saturating_add(decision.delay().as_nanos() as u64),
                    permits: request.permits.into(),
                });
            }
        }
        self.compare_rest(&decision)
    }

    fn peek(&mut self, request: Request) -> Outcome {
        let now = Timestamp::from_nanos(self.now);
        let decision = self.door.peek(now, &ask_of(request));
        self.compare_verdict(request, &decision)?;
        self.compare_rest(&decision)
    }

    fn give_back(&mut self, which: usize) {
        let Some(number) = which.checked_rem(self.taken.len()) else {
            return;
        };
        if let Some((ticket, permits)) = self.taken[number].take() {
            self.latest = self.latest.max(self.now);
            self.door.give_back(number, Timestamp::from_nanos(self.now));
            self.oracle.give_back(self.latest, ticket);
            self.passes.push(Pass {
                at: self.latest,
                permits: -i128::from(permits),
            });
        }
    }

    /// Promises 2 and 4: admitted if the oracle admits it, and told a wait that is exact.
    fn compare_verdict(&mut self, request: Request, decision: &Decision) -> Outcome {
        let mut expected = self.oracle.delay_of(request);
        if request.forced && self.way == Way::Meter && request.permits <= Quota::MAX_PERMITS {
            // The widest state has room for every debt.
            expected = Some(0);
        }
        match decision.retry() {
            None => prop_assert_eq!(expected, Some(nanos(decision.delay())), "{:?}", request),
            Some(retry) => {
                prop_assert_eq!(expected, None, "{:?}: the engine says {:?}", request, retry);
                self.compare_retry(request, retry)?;
            }
        }
        Ok(())
    }

    fn compare_retry(&mut self, request: Request, retry: Retry) -> Outcome {
        let ever = self.oracle.ever_admits(request);
        let wait = match retry {
            Retry::Never => {
                prop_assert!(!ever, "{request:?} is admitted some time");
                return Ok(());
            }
            Retry::OnRelease => {
                prop_assert!(self.algorithm.is_gate() && ever);
                return Ok(());
            }
            Retry::After(wait) => nanos(wait),
        };
        prop_assert!(ever, "{request:?} is never admitted");
        prop_assert!(wait > 0, "{request:?}: wait no time, to be refused again");
        self.told = wait;
        let at = |now| Request { now, ..request };
        let on_time = self.now.saturating_add(wait);
        // Nobody can wait until after the end of time.
        if on_time <= Timestamp::MAX.as_nanos() {
            let admitted = self.oracle.delay_of(at(on_time));
            prop_assert!(admitted.is_some(), "{request:?}: refused after {wait} ns");
        }
        let admitted = self.oracle.delay_of(at(on_time - 1));
        prop_assert!(admitted.is_none(), "{request:?}: admitted before {wait} ns");
        Ok(())
    }

    /// Promise 6, and the time of reset.
    fn compare_rest(&self, decision: &Decision) -> Outcome {
        let Decision {
            limit, remaining, ..
        } = *decision;
        prop_assert_eq!(limit, self.oracle.limit());
        prop_assert!(remaining <= limit);
        prop_assert_eq!(remaining, self.oracle.remaining(self.latest));
        let reset = nanos(decision.reset_after);
        if self.algorithm.is_gate() {
            prop_assert_eq!(reset, 0);
            return Ok(());
        }
        let at = self.now.saturating_add(reset);
        if at <= Timestamp::MAX.as_nanos() {
            let full = self.oracle.remaining(at.max(self.latest));
            prop_assert_eq!(full, limit, "after {} ns", reset);
        }
        // What a warm-up stores is full only with a part of a permit more.
        let parts = matches!(self.algorithm, Algorithm::SmoothWarmUp { .. });
        if reset > 0 && !parts {
            let early = self.oracle.remaining((at - 1).max(self.latest));
            prop_assert!(early < limit, "full before {reset} ns");
        }
        Ok(())
    }
}

fn ask_of(request: Request) -> Ask {
    let ask = Ask::new(request.permits).within(Duration::from_nanos(request.patience));
    if request.forced { ask.forced() } else { ask }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
