//! The script and its model: the same calls, the same answers, the same state.

use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use tidegate::Algorithm;
use tidegate_redis::Subject;
use tidegate_redis::exact::{Asked, Group, Kind, Numbers, Reply, What, decide, forget, give_back};
use tidegate_sim::redis_model::{RedisModel, Value};
use tidegate_sim::strategy::cases;

use super::cases::{Act, Case, Scale, case, span_of};
use super::store::{GRACE_MS, Store};

/// Runs cases through the script of this store and the model, until they differ.
pub(crate) fn differs(store: &Store, config: Config) -> Result<(), String> {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let run = |case: Case| Pair::new(store, &case).run(&case);
    runner.run(&case(), run).map_err(|error| error.to_string())
}

#[test]
fn the_script_does_what_its_model_does() {
    let store = Store::at_told_time();
    let config = Config {
        failure_persistence: None,
        max_shrink_iters: 3_000,
        ..cases(300)
    };
    if let Err(why) = differs(&store, config) {
        panic!("{why}");
    }
}

/// Some limits of one slot, in Redis and in the model.
struct Pair<'a> {
    store: &'a Store,
    model: RedisModel,
    limits: Vec<Asked>,
    /// The numbers that a change would give them.
    others: Vec<Numbers>,
    now: u64,
    scale: Scale,
    taken: Vec<Vec<(u64, i64)>>,
}

impl<'a> Pair<'a> {
    fn new(store: &'a Store, case: &Case) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let subject = format!("case{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let of = |algorithm: &Algorithm| Numbers::of(algorithm).unwrap();
        let asked = (0..).zip(&case.limits).map(|(at, (first, _))| Asked {
            key: format!("tg:{{{}}}:{at}", Subject::from(&*subject).as_str()).into_bytes(),
            numbers: of(first),
        });
        let limits: Vec<_> = asked.collect();
        let mut pair = Self {
            store,
            model: RedisModel::default(),
            others: case.limits.iter().map(|(_, other)| of(other)).collect(),
            limits,
            now: case.start,
            scale: Scale {
                span: 1,
                most: 0,
                remaining: 0,
                told: 0,
                tick: 1,
            },
            taken: Vec::new(),
        };
        pair.rescale();
        pair
    }

    fn rescale(&mut self) {
        let smallest = self.limits.iter().min_by_key(|limit| limit.numbers.most);
        let numbers = smallest.unwrap().numbers;
        self.scale.span = span_of(&numbers);
        self.scale.most = numbers.most;
        self.scale.tick = numbers.tick;
    }

    fn run(&mut self, case: &Case) -> Result<(), TestCaseError> {
        for step in &case.steps {
            self.now = step.time.from(self.now, self.scale);
            self.store.set_time(self.now);
            match &step.act {
                Act::Check(wishes) => {
                    let can_grow = |ask: &_| Group::can_grow(ask, &self.limits);
                    let groups = wishes.iter().map(|wish| wish.group(self.scale, can_grow));
                    let groups: Vec<_> = groups.collect();
                    self.decide(What::Check, &groups)?;
                }
                Act::Peek(wish) => {
                    let ask = wish.ask(self.scale);
                    self.decide(What::Peek, &[Group { requests: 1, ask }])?;
                }
                Act::GiveBack(which) => {
                    if let Some(at) = which.checked_rem(self.taken.len()) {
                        let taken = self.taken.swap_remove(at);
                        self.model.give_back(self.now, &self.limits, &taken);
                        self.call(&give_back(&self.limits, &taken))?;
                    }
                }
                Act::Forget => {
                    self.model.forget(&self.limits);
                    self.call(&forget(&self.limits))?;
                }
                Act::Change(which) => {
                    let at = which % self.limits.len();
                    std::mem::swap(&mut self.limits[at].numbers, &mut self.others[at]);
                    self.rescale();
                }
            }
            self.compare_states()?;
        }
        Ok(())
    }

    fn call(&self, call: &tidegate_redis::ScriptCall) -> Result<Vec<i64>, TestCaseError> {
        let answer = self.store.run(call);
        answer.map_err(|error| TestCaseError::fail(error.to_string()))
    }

    fn decide(&mut self, what: What, groups: &[Group]) -> Result<(), TestCaseError> {
        let expected = self.model.decide(self.now, what, &self.limits, groups);
        let answer = self.call(&decide(what, &self.limits, groups))?;
        prop_assert_eq!(
            &answer,
            &expected,
            "at {}: {:?} of {:?}",
            self.now,
            groups,
            self.limits
        );
        let reply = Reply::read(&answer, self.limits.len(), groups.len())
            .map_err(|error| TestCaseError::fail(error.to_string()))?;
        for (group, granted) in groups.iter().zip(&reply.groups) {
            let permits = granted.requests * group.ask.permits();
            if what == What::Check && permits > 0 {
                let taken = reply.marks.iter().map(|mark| (permits, *mark));
                self.taken.push(taken.collect());
            }
            let said = &granted.limits;
            self.scale.remaining = said.iter().map(|said| said.remaining).min().unwrap_or(0);
            let told = said.iter().filter_map(|said| match said.retry {
                Some(tidegate::Retry::After(wait)) => Some(wait.as_micros() as u64),
                _ => None,
            });
            self.scale.told = told.max().unwrap_or(self.scale.told);
        }
        Ok(())
    }

    /// What Redis keeps, and for how long, is what the model does.
    fn compare_states(&self) -> Result<(), TestCaseError> {
        for Asked { key, numbers } in &self.limits {
            let kept = self.model.get(key);
            let pttl = self.store.pttl(key);
            let Some(kept) = kept else {
                prop_assert_eq!(pttl, -2, "there should be no state of {:?}", numbers);
                continue;
            };
            let (found, expected) = match &kept.value {
                Value::List(entries) => {
                    prop_assert_eq!(numbers.kind, Kind::Log);
                    (format!("{:?}", self.store.log(key)), format!("{entries:?}"))
                }
                text @ Value::Text(..) => (self.store.text(key), text.text().unwrap()),
            };
            prop_assert_eq!(found, expected, "the state of {:?}", numbers);
            // Time of the test passes meanwhile, and lists keep theirs when something goes back.
            let ttl = i64::try_from(kept.ttl_ms).unwrap() + GRACE_MS;
            let in_time = ttl - 60_000..=ttl;
            prop_assert!(
                in_time.contains(&pttl),
                "{} of {}: {:?}",
                pttl,
                ttl,
                numbers
            );
        }
        Ok(())
    }
}
