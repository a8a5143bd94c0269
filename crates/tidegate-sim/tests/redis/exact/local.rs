//! The script and the local engine: the same calls, the same answers, at times and for waits that
//! are whole ticks.
//!
//! A local meter takes no time before one that it has seen. The script goes on from where a clock
//! is that stepped back: for buckets the meter is told the script's time plus all steps back.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use tidegate::meter::{
    FixedWindow, IntervalBucket, SlidingCounter, SlidingLog, SlidingWindow, SmoothBursty, Taken,
    TokenBucket,
};
use tidegate::{Algorithm, Ask, Decision, Meter, Quota, Retry, Timestamp, Verdict};
use tidegate_redis::exact::{Asked, Group, Kind, Numbers, Reply, What, decide, give_back};
use tidegate_sim::strategy::cases;

use super::cases::{Act, KINDS, Move, Scale, Step, algorithm, span_of, step};
use super::store::Store;

/// A meter with one state.
trait Local: Debug {
    /// As a key that is not stored would be at this time.
    fn refresh(&mut self, now: Timestamp);
    fn ask(&mut self, now: Timestamp, ask: &Ask, takes: bool) -> (Decision, Option<Taken>);
    fn undo(&mut self, taken: &Taken, now: Timestamp);
    fn change(&mut self, algorithm: &Algorithm, now: Timestamp);
}

#[derive(Debug)]
struct Held<M: Meter> {
    meter: M,
    state: M::State,
    make: fn(&Algorithm) -> Option<M>,
}

fn held<M: Meter>(algorithm: &Algorithm, make: fn(&Algorithm) -> Option<M>) -> Box<dyn Local> {
    let meter = make(algorithm).unwrap();
    let state = meter.fresh(Timestamp::EPOCH);
    Box::new(Held { meter, state, make })
}

impl<M: Meter> Local for Held<M> {
    fn refresh(&mut self, now: Timestamp) {
        self.state = self.meter.fresh(now);
    }

    fn ask(&mut self, now: Timestamp, ask: &Ask, takes: bool) -> (Decision, Option<Taken>) {
        let plan = self.meter.plan(&self.state, now, ask);
        let change = plan.change.filter(|_| takes);
        let taken = change.map(|change| self.meter.commit(&mut self.state, change));
        (plan.decision, taken)
    }

    fn undo(&mut self, taken: &Taken, now: Timestamp) {
        self.meter.undo(&mut self.state, taken, now);
    }

    fn change(&mut self, algorithm: &Algorithm, now: Timestamp) {
        let new = (self.make)(algorithm).unwrap();
        self.meter.migrate(&new, &mut self.state, now);
        self.meter = new;
    }
}

fn local(algorithm: &Algorithm) -> Box<dyn Local> {
    match algorithm {
        Algorithm::TokenBucket(_) => held(algorithm, |algorithm| match *algorithm {
            Algorithm::TokenBucket(quota) => TokenBucket::<u128>::new(quota).ok(),
            _ => None,
        }),
        Algorithm::SmoothBursty { .. } => held(algorithm, |algorithm| match *algorithm {
            Algorithm::SmoothBursty { quota, max_debt } => SmoothBursty::new(quota, max_debt).ok(),
            _ => None,
        }),
        Algorithm::IntervalBucket { .. } => held(algorithm, |algorithm| match *algorithm {
            Algorithm::IntervalBucket { quota, aligned } => {
                IntervalBucket::new(quota, aligned).ok()
            }
            _ => None,
        }),
        Algorithm::SlidingCounter { .. } => held(algorithm, |algorithm| match *algorithm {
            Algorithm::SlidingCounter { permits, window } => {
                SlidingCounter::new(permits, window).ok()
            }
            _ => None,
        }),
        Algorithm::SlidingLog { .. } => held(algorithm, |algorithm| match *algorithm {
            Algorithm::SlidingLog { permits, window } => SlidingLog::new(permits, window).ok(),
            _ => None,
        }),
        Algorithm::SlidingWindow { .. } => held(algorithm, |algorithm| match *algorithm {
            Algorithm::SlidingWindow {
                permits,
                window,
                parts,
            } => SlidingWindow::new(permits, window, parts).ok(),
            _ => None,
        }),
        _ => held(algorithm, |algorithm| match *algorithm {
            Algorithm::FixedWindow { permits, window } => FixedWindow::new(permits, window).ok(),
            Algorithm::WindowFromFirst { permits, window } => {
                FixedWindow::from_first(permits, window).ok()
            }
            Algorithm::CalendarWindow { permits, unit } => {
                FixedWindow::calendar(permits, unit).ok()
            }
            _ => None,
        }),
    }
}

/// A limit in Redis and here.
#[derive(Debug)]
struct Pair<'a> {
    store: &'a Store,
    algorithm: Algorithm,
    limit: Asked,
    /// A tick, in microseconds.
    grain: u64,
    local: Box<dyn Local>,
    /// Redis's time, the latest there was, and how far it stepped back in all.
    now: u64,
    latest: u64,
    back: u64,
    /// When the state was written, or an entry of a log.
    written: u64,
    is_stored: bool,
    is_over: bool,
    /// Something was given back, at a time that the script knows from then on, and the meter
    /// does not: the clock steps back no more.
    forward: bool,
    scale: Scale,
    taken: Vec<(Taken, (u64, i64))>,
}

impl<'a> Pair<'a> {
    fn new(store: &'a Store, algorithm: Algorithm, start: u64) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let numbers = Numbers::of(&algorithm).unwrap();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let grain = match numbers.kind {
            Kind::Log => numbers.y,
            _ => numbers.tick,
        };
        let start = start - start % grain;
        Self {
            store,
            local: local(&algorithm),
            algorithm,
            limit: Asked {
                key: format!("tg:{{{number}}}:local").into_bytes(),
                numbers,
            },
            grain,
            now: start,
            latest: start,
            back: 0,
            written: start,
            is_stored: false,
            is_over: false,
            forward: false,
            scale: Scale {
                span: span_of(&numbers),
                most: numbers.most,
                remaining: numbers.most,
                told: 0,
                tick: grain,
            },
            taken: Vec::new(),
        }
    }

    const fn is_bucket(&self) -> bool {
        matches!(self.limit.numbers.kind, Kind::Bucket | Kind::PayLater)
    }

    fn steps_back(&self) -> bool {
        // A period that began with a request begins anew when the clock has stepped back before it.
        !self.forward
            && !matches!(
                self.algorithm,
                Algorithm::IntervalBucket { aligned: false, .. }
            )
    }

    fn go_on(&mut self, time: Move) {
        let to = time.from(self.now, self.scale);
        let to = if to < self.now && !self.steps_back() {
            self.now
        } else {
            to
        };
        // Further back than a window the script follows the clock, and the meter does not.
        let least = if self.is_bucket() {
            0
        } else {
            self.latest
                .saturating_sub(self.scale.span - self.scale.span % self.grain)
        };
        self.now = (to - to % self.grain).max(least.next_multiple_of(self.grain));
        self.latest = self.latest.max(self.now);
        self.store.set_time(self.now);
    }

    /// What time it is for the meter.
    fn local_now(&mut self, writes: bool) -> Timestamp {
        let stepped = self.written.saturating_sub(self.now);
        if self.limit.numbers.kind == Kind::Log && self.is_stored {
            // A log stays at its last entry.
            return micros(self.now + stepped);
        }
        let stepped = if self.is_bucket() && self.is_stored {
            stepped
        } else {
            0
        };
        if writes && stepped > 0 {
            self.back += stepped;
            self.written = self.now;
            return micros(self.now + self.back);
        }
        micros(self.now + self.back + stepped)
    }

    fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        if self.is_over {
            return Ok(());
        }
        self.go_on(step.time);
        match &step.act {
            Act::Check(wishes) => {
                for wish in wishes {
                    self.ask(wish.ask(self.scale), true)?;
                }
            }
            Act::Peek(wish) => self.ask(wish.ask(self.scale), false)?,
            Act::GiveBack(which) => self.give_back(*which),
            Act::Forget => {}
            Act::Change(which) => self.change(*which)?,
        }
        Ok(())
    }

    /// The ask as both understand it: waits are whole ticks, and offered only where the script
    /// takes them; what is forced has room.
    fn understood(&self, ask: Ask) -> Ask {
        let wait = ask.max_delay().as_micros() as u64;
        let wait = if self.limit.numbers.kind.reserves() {
            wait.min(3 * self.scale.span) / self.grain * self.grain
        } else {
            0
        };
        let of = |permits: u64| Ask::new(permits).within(Duration::from_micros(wait));
        if ask.is_forced() {
            of(ask.permits().min(2 * self.scale.most + 3)).forced()
        } else {
            of(ask.permits())
        }
    }

    fn ask(&mut self, ask: Ask, takes: bool) -> Result<(), TestCaseError> {
        let ask = self.understood(ask);
        let what = if takes { What::Check } else { What::Peek };
        let limits = [self.limit.clone()];
        let groups = [Group { requests: 1, ask }];
        let answer = self.store.run(&decide(what, &limits, &groups)).unwrap();
        let reply = Reply::read(&answer, 1, 1).unwrap();
        let granted = &reply.groups[0];
        let after = granted.requests.checked_sub(1);
        let found = granted.limits[0].decision(self.limit.numbers.most, after, ask.permits());

        let now = self.local_now(takes);
        if !self.is_stored {
            self.local.refresh(now);
            self.written = self.now;
        }
        let (decision, taken) = self.local.ask(now, &ask, takes);
        let expected = self.in_ticks(decision);
        let numbers = self.limit.numbers;
        prop_assert_eq!(
            found,
            expected,
            "at {}: {:?} of {:?}, {:?}",
            self.now,
            ask,
            self.algorithm,
            numbers
        );
        self.scale.remaining = found.remaining;
        if let Some(wait) = found.retry_after() {
            self.scale.told = wait.as_micros() as u64;
            self.is_stored |= takes && numbers.first > 0;
        }
        if let Some(taken) = taken {
            self.is_stored = true;
            self.written = self
                .now
                .max(if self.is_bucket() { 0 } else { self.written });
            self.taken.push((taken, (ask.permits(), reply.marks[0])));
        }
        Ok(())
    }

    /// What the meter says, in ticks of the script, from Redis's time on.
    fn in_ticks(&self, decision: Decision) -> Decision {
        let behind = match self.limit.numbers.kind {
            Kind::Log if self.is_stored => self.written.saturating_sub(self.now),
            _ => 0,
        };
        let up = |wait: Duration| {
            let grain = Duration::from_micros(self.grain).as_nanos();
            let ticks = wait.as_nanos().div_ceil(grain);
            Duration::from_micros(ticks as u64 * self.grain)
        };
        let behind = Duration::from_micros(behind);
        let later = |wait: Duration| {
            if wait.is_zero() {
                wait
            } else {
                up(wait) + behind
            }
        };
        let verdict = match decision.verdict {
            Verdict::Allowed { delay } => Verdict::Allowed { delay: up(delay) },
            Verdict::Denied {
                retry: Retry::After(wait),
            } => Verdict::Denied {
                retry: Retry::After(later(wait)),
            },
            denied @ Verdict::Denied { .. } => denied,
        };
        Decision {
            verdict,
            reset_after: later(decision.reset_after),
            ..decision
        }
    }

    fn give_back(&mut self, which: usize) {
        let Some(at) = which.checked_rem(self.taken.len()) else {
            return;
        };
        let (taken, by) = self.taken.swap_remove(at);
        let before = self.store.dump(&self.limit.key);
        self.store
            .run(&give_back(std::slice::from_ref(&self.limit), &[by]))
            .unwrap();
        let after = self.store.dump(&self.limit.key);
        let writes = before != after;
        self.forward |= !writes || !self.is_bucket();
        let now = self.local_now(writes);
        self.local.undo(&taken, now);
        if self.limit.numbers.kind == Kind::Log && self.now < self.written && writes {
            // It may have been the last entry: the script goes back to the one before, the meter
            // stays. Neither has anything of it again.
            self.is_over = true;
        }
        if after.is_none() {
            // Nothing is taken any more.
            self.is_stored = false;
        }
        if self.is_bucket() && writes {
            self.written = self.now;
        }
    }

    /// Half as much, or twice.
    fn change(&mut self, which: usize) -> Result<(), TestCaseError> {
        let scaled = |n: u64| {
            if which.is_multiple_of(2) {
                n * 2
            } else {
                n.div_ceil(2)
            }
        };
        let new = match self.algorithm {
            Algorithm::TokenBucket(quota) => {
                if quota.initial_permits() != quota.burst_permits() || quota.burst_permits() == 0 {
                    return Ok(());
                }
                let quota = Quota::new(quota.permits(), quota.period());
                Algorithm::TokenBucket(quota.burst(scaled(self.limit.numbers.most)))
            }
            Algorithm::FixedWindow { permits, window } => Algorithm::FixedWindow {
                permits: scaled(permits),
                window: if which.is_multiple_of(3) {
                    window * 2
                } else {
                    window
                },
            },
            Algorithm::SlidingCounter { permits, window } => Algorithm::SlidingCounter {
                permits: scaled(permits),
                window: if which.is_multiple_of(3) {
                    window * 2
                } else {
                    window
                },
            },
            Algorithm::SlidingLog { permits, window } => Algorithm::SlidingLog {
                permits: scaled(permits),
                window,
            },
            _ => return Ok(()),
        };
        let Ok(numbers) = Numbers::of(&new) else {
            return Ok(());
        };
        let same_units =
            numbers.b == self.limit.numbers.b && numbers.tick == self.limit.numbers.tick;
        if new.validate().is_err() || !same_units || self.now < self.latest {
            return Ok(());
        }
        let now = self.local_now(false);
        self.local.change(&new, now);
        self.algorithm = new;
        self.limit.numbers = numbers;
        self.scale.most = numbers.most;
        self.scale.span = span_of(&numbers);
        // What it took by its old numbers is given back by other marks.
        self.taken.clear();
        // The script does not write what it turned over until something is taken.
        self.ask(Ask::ONE.forced(), true)
    }
}

fn micros(us: u64) -> Timestamp {
    Timestamp::from_nanos(us * 1_000)
}

/// What both hold exactly, forced debts and all: a part of what the script's numbers have room for.
fn has_room(algorithm: &Algorithm) -> bool {
    let numbers = Numbers::of(algorithm).unwrap();
    let units = u128::from(numbers.b.max(1)) * u128::from(numbers.most);
    units + u128::from(numbers.y) < 1 << 44 && span_of(&numbers) < 1 << 42
}

#[test]
fn the_script_answers_as_the_local_engine_does() {
    let store = Store::at_told_time();
    for kind in KINDS {
        let limits = algorithm(kind).prop_filter("room for debts", has_room);
        let start = 1_700_000_000_000_000..1_900_000_000_000_000_u64;
        let steps = prop::collection::vec(step(), 1..=40);
        let config = Config {
            failure_persistence: None,
            max_shrink_iters: 3_000,
            ..cases(60)
        };
        let run = |(algorithm, start, steps): (Algorithm, u64, Vec<Step>)| {
            let mut pair = Pair::new(&store, algorithm, start);
            steps.iter().try_for_each(|step| pair.step(step))
        };
        if let Err(error) = TestRunner::new(config).run(&(limits, start, steps), run) {
            panic!("{kind:?}: {error}");
        }
    }
}
