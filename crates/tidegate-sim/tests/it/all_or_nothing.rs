//! Promise 5: several limits are charged all, or none; a denial names the one with the longest
//! wait, an allowance the one with the least remaining.

use core::time::Duration;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use tidegate::{
    Algorithm, Ask, Asked, CheckAllError, ConcurrencyLimiter, Enforce, Enforcer, KeyHash,
    KeyHasher, KeyedLimiter, Limiter, MAX_LIMITS_PER_CHECK, ManualClock, OnChange, Quota, Receipt,
    Retry, Timestamp, check_all, check_all_with_receipts,
};
use tidegate_sim::oracle::{Oracle, Request, Ticket, oracle_of};
use tidegate_sim::strategy::{self, Allowed, Step, cases, scale};

use crate::door::keyed;

type Outcome = Result<(), TestCaseError>;

const START: Timestamp = Timestamp::from_secs(1_700_000_000);

fn hash(key: &str) -> KeyHash {
    KeyHasher::with_keys(9, 10).hash(key)
}

/// Several limits and their oracles, asked together. One of them may be a gate.
#[derive(Debug)]
struct Several {
    limits: Vec<(Algorithm, Enforcer, Box<dyn Oracle>)>,
    inside: Vec<(usize, Receipt, Ticket)>,
    now: u64,
}

impl Several {
    fn new(algorithms: &[Algorithm]) -> Self {
        let limit = |algorithm: &Algorithm| {
            let oracle = oracle_of(algorithm, START.as_nanos());
            (*algorithm, keyed(algorithm, 100), oracle)
        };
        Self {
            limits: algorithms.iter().map(limit).collect(),
            inside: Vec::new(),
            now: START.as_nanos(),
        }
    }

    fn step(&mut self, step: &Step) -> Outcome {
        let first = &self.limits[0];
        self.now = step.time.from(self.now, scale(&first.0), 0);
        let permits = step.size.permits(&*first.2, self.now);
        let request = Request::at(self.now, permits);
        let expected: Vec<bool> = self
            .limits
            .iter()
            .map(|(_, _, oracle)| oracle.delay_of(request).is_some())
            .collect();
        let all = expected.iter().all(|one| *one);
        let asks: Vec<Asked<'_>> = self
            .limits
            .iter()
            .map(|(_, limit, _)| Asked::new(&**limit, hash("key"), Ask::new(permits)))
            .collect();
        let now = Timestamp::from_nanos(self.now);
        let answers = check_all_with_receipts(&asks, now).expect("different limits");
        for (at, (answer, expected)) in answers.into_iter().zip(expected).enumerate() {
            prop_assert_eq!(answer.decision.is_allowed(), expected, "limit {}", at);
            let took = answer.receipt.is_some();
            prop_assert_eq!(took, all && permits > 0, "limit {} took", at);
            let (algorithm, _, oracle) = &mut self.limits[at];
            if let Some(receipt) = answer.receipt {
                let ticket = oracle.take(request);
                if algorithm.is_gate() {
                    self.inside.push((at, receipt, ticket));
                }
            }
        }
        self.nothing_else_was_taken()
    }

    /// What remains of each limit is what its oracle says, whoever denied.
    fn nothing_else_was_taken(&mut self) -> Outcome {
        for (algorithm, limit, oracle) in &self.limits {
            let now = Timestamp::from_nanos(self.now);
            let peeked = limit.peek(hash("key"), now, &Ask::ONE);
            prop_assert_eq!(
                peeked.remaining,
                oracle.remaining(self.now),
                "{:?}",
                algorithm
            );
        }
        // Now and then somebody leaves.
        if self.now.is_multiple_of(3) {
            for (at, receipt, ticket) in self.inside.drain(..) {
                let (_, limit, oracle) = &mut self.limits[at];
                limit.give_back(receipt, START).expect("its own");
                oracle.give_back(self.now, ticket);
            }
        }
        Ok(())
    }
}

fn any_limit() -> BoxedStrategy<Algorithm> {
    prop_oneof![
        2 => strategy::token_bucket(),
        1 => strategy::fixed_window(),
        1 => strategy::sliding_log(),
        1 => strategy::concurrency(),
    ]
    .boxed()
}

proptest! {
    #![proptest_config(cases(500))]

    // proves: A6
    #[test]
    fn all_limits_are_charged_or_none(
        algorithms in prop::collection::vec(any_limit(), 1..6),
        steps in strategy::schedule(40, Allowed::default()),
    ) {
        let mut several = Several::new(&algorithms);
        for step in &steps {
            several.step(step)?;
        }
    }

    // proves: A6
    #[test]
    fn who_waits_as_long_as_is_told_passes_all(
        quotas in prop::collection::vec(strategy::quota(), 1..5),
        permits in prop::collection::vec(1..10_u64, 1..30),
    ) {
        let limits: Vec<_> = quotas.iter().map(|quota| keyed(&(*quota).into(), 10)).collect();
        let mut now = START;
        for permits in permits {
            let asks: Vec<_> = limits
                .iter()
                .map(|limit| Asked::new(&**limit, hash("k"), Ask::new(permits)))
                .collect();
            let checked = check_all(&asks, now).expect("different limits");
            let told = *checked.told().expect("limits").1;
            match told.retry() {
                None => {
                    let least = checked.decisions().map(|one| one.remaining).min();
                    prop_assert_eq!(Some(told.remaining), least);
                }
                Some(Retry::After(wait)) => {
                    drop(checked);
                    let waits = asks.iter().map(|asked| {
                        asked.peek(now).retry_after()
                    });
                    prop_assert_eq!(waits.max().flatten(), Some(wait));
                    if now.after(wait) == Timestamp::MAX {
                        return Ok(());
                    }
                    let early = now.after_nanos(wait.as_nanos() as u64 - 1);
                    prop_assert!(!check_all(&asks, early).expect("different").is_allowed());
                    now = now.after(wait);
                    prop_assert!(check_all(&asks, now).expect("different").is_allowed());
                }
                Some(_) => prop_assert!(quotas.iter().any(|one| one.burst_permits() < permits)),
            }
        }
    }
}

fn limiter(quota: Quota) -> Limiter<ManualClock> {
    Limiter::with_clock(quota, ManualClock::new(START)).expect("valid")
}

// shows: A6
#[test]
fn a_denial_names_the_longest_wait_and_an_allowance_the_least_remaining() {
    let second = limiter(Quota::per_second(1));
    let minute = limiter(Quota::per_minute(1).burst(2));
    let hour = limiter(Quota::per_hour(5));
    let asks = [hour.ask(1), second.ask(1), minute.ask(1)];
    let (at, told) = (check_all(&asks, START).expect("three").told())
        .map(|(at, told)| (at, *told))
        .expect("three");
    assert_eq!((at, told.limit, told.remaining), (1, 1, 0));
    // The second would wait 1 s, the minute nothing: 1 s is told.
    let denied = check_all(&asks, START).expect("three");
    let (at, told) = denied.told().expect("three");
    assert_eq!((at, told.retry_after()), (1, Some(Duration::from_secs(1))));
    assert_eq!(denied.decisions().filter(|one| one.is_denied()).count(), 1);
    drop(denied);
    let later = START.after(Duration::from_secs(1));
    assert!(check_all(&asks, later).expect("three").is_allowed());
    // Both wait: 1 s and 59 s.
    let denied = check_all(&asks, later).expect("three");
    let (at, told) = denied.told().expect("three");
    assert_eq!((at, told.retry_after()), (2, Some(Duration::from_secs(59))));
}

// shows: A6
#[test]
fn checks_that_cannot_be_decided_take_nothing() {
    let a = limiter(Quota::per_day(10));
    let b = limiter(Quota::per_day(10));
    let twice = check_all(&[a.ask(1), b.ask(1), a.ask(1)], START);
    let twice = twice.expect_err("one limit twice");
    assert_eq!(twice, CheckAllError::SameLimit(0, 2));
    let told = twice.to_string();
    assert!(told.starts_with("limits 0 and 2 of one check"), "{told}");
    let many: Vec<_> = (0..=MAX_LIMITS_PER_CHECK)
        .map(|_| limiter(Quota::per_day(10)))
        .collect();
    let asks: Vec<_> = many.iter().map(|limit| limit.ask(1)).collect();
    let too_many = check_all(&asks, START).expect_err("one too many");
    assert_eq!(too_many, CheckAllError::TooMany(asks.len()));
    assert_eq!(too_many.to_string(), "33 limits in one check: at most 32");
    for limit in many.iter().chain([&a, &b]) {
        assert_eq!(limit.peek(Ask::ONE).remaining, 10);
    }
    let most = check_all(&asks[1..], START).expect("as many as may be");
    assert!(most.is_allowed());
    let none = check_all(&[], START).expect("no limits");
    assert!(none.is_allowed() && none.told().is_none());
}

// shows: A6, F4 (a store that is taken over little by little)
#[test]
fn a_check_of_several_knows_what_a_store_has_yet_to_take_over() {
    let quota = Quota::per_day(10);
    let window = Algorithm::FixedWindow {
        permits: 10,
        window: Duration::from_hours(24),
    };
    let key = hash("key");
    let (old, new) = (keyed(&quota.into(), 100), keyed(&window, 100));
    assert!(old.check(key, START, &Ask::new(7)).0.is_allowed());
    new.succeed(old.drain().expect("no gate"), START, OnChange::KeepUsed);
    let other = limiter(quota);
    let limit: &dyn Enforce = &*new;
    let ask = Ask::new(4);
    let asks = [Asked::new(limit, key, ask), other.ask(1)];
    let checked = check_all(&asks, START).expect("two limits");
    assert!(!checked.is_allowed(), "seven of ten are used");
    assert_eq!(other.peek(Ask::ONE).remaining, 10);
}

// shows: A6
#[test]
fn threads_that_name_limits_in_any_order_neither_meet_in_a_circle_nor_overdraw() {
    const EACH: u64 = 20_000;
    let users = KeyedLimiter::builder(Quota::per_day(9_000));
    let users = users.clock(ManualClock::new(START)).build().expect("valid");
    let (all, other) = (
        limiter(Quota::per_day(15_000)),
        limiter(Quota::per_day(1 << 30)),
    );
    let gate = ConcurrencyLimiter::new(2).expect("valid");
    let passed = [AtomicU64::new(0), AtomicU64::new(0)];
    thread::scope(|scope| {
        for who in 0..2 {
            let (users, all, other) = (&users, &all, &other);
            let (gate, passed) = (&gate, &passed[who]);
            scope.spawn(move || {
                let mut asks = [users.ask(&who, 1), all.ask(1), other.ask(1), gate.ask(1)];
                for turn in 0..EACH {
                    asks.rotate_left(1 + who);
                    if turn % 2 == 0 {
                        asks.swap(0, 2);
                    }
                    let checked = check_all(&asks, START).expect("four limits");
                    passed.fetch_add(u64::from(checked.is_allowed()), Ordering::Relaxed);
                }
            });
        }
    });
    let passed = passed.map(AtomicU64::into_inner);
    let sum: u64 = passed.iter().sum();
    assert_eq!(sum, 15_000);
    assert!(passed.iter().all(|one| *one <= 9_000));
    assert_eq!(all.peek(Ask::ONE).remaining, 0);
    assert_eq!(other.peek(Ask::ONE).remaining, (1 << 30) - 15_000);
    for (who, passed) in passed.iter().enumerate() {
        let remaining = users.peek(&who, Ask::ONE).remaining;
        assert_eq!(remaining, 9_000 - passed);
    }
    assert_eq!(gate.peek(1).remaining, 2);
}
