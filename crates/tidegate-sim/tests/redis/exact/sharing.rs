//! Callers of one node share calls, remember denials, and lose nothing when they give up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tidegate::{Algorithm, Ask, Limit, Quota, Retry};
use tidegate_redis::exact::{CheckFailed, Exact};
use tidegate_redis::{Answer, ExactLimiter, ScriptCall, Scripts, Subject, Unavailable};
use tokio::sync::Semaphore;
use tokio::task::yield_now;

use super::store::Store;

/// How long a test waits for what has to happen.
const DEADLINE: Duration = Duration::from_secs(10);

/// A Redis that answers when the test says so, and counts what it is asked.
#[derive(Debug)]
struct Gated {
    store: Store,
    gate: Semaphore,
    begun: AtomicUsize,
    calls: AtomicUsize,
    is_down: std::sync::atomic::AtomicBool,
}

impl Gated {
    fn open() -> Arc<Self> {
        let gated = Self::shut();
        gated.gate.add_permits(Semaphore::MAX_PERMITS / 2);
        gated
    }

    fn shut() -> Arc<Self> {
        let store = Store::at_told_time();
        store.set_time(1_800_000_000_000_000);
        Arc::new(Self {
            store,
            gate: Semaphore::new(0),
            begun: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
            is_down: false.into(),
        })
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    async fn reaches(count: &AtomicUsize, calls: usize) {
        let deadline = Instant::now() + DEADLINE;
        while count.load(Ordering::SeqCst) < calls {
            assert!(Instant::now() < deadline, "no {calls} calls: {count:?}");
            yield_now().await;
        }
    }

    /// Until so many calls have begun in all.
    async fn has_begun(&self, calls: usize) {
        Self::reaches(&self.begun, calls).await;
    }

    /// Until so many calls were answered in all, and what follows from that has happened.
    async fn has_answered(&self, calls: usize) {
        Self::reaches(&self.calls, calls).await;
        for _ in 0..20 {
            yield_now().await;
        }
    }
}

impl Scripts for Gated {
    fn call(&self, call: ScriptCall, budget: Duration) -> Answer<'_> {
        Box::pin(async move {
            self.begun.fetch_add(1, Ordering::SeqCst);
            self.gate.acquire().await.unwrap().forget();
            let answer = if self.is_down.load(Ordering::SeqCst) {
                Err(Unavailable::TimedOut(budget))
            } else {
                self.store.call(call, budget).await
            };
            self.calls.fetch_add(1, Ordering::SeqCst);
            answer
        })
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().build().unwrap().block_on(future)
}

fn limiter(exact: &Exact, name: &str, algorithm: impl Into<Algorithm>) -> ExactLimiter {
    exact
        .limiter(&Limit::new(name, algorithm.into()).unwrap())
        .unwrap()
}

/// So many a day: none comes back while a test runs.
fn daily(permits: u64) -> Quota {
    Quota::per_day(permits)
}

#[test]
fn callers_share_a_call_and_are_answered_in_order() {
    block_on(async {
        let redis = Gated::shut();
        let limit = ExactLimiter::new(redis.clone(), "l", daily(70)).unwrap();
        let mut callers = Vec::new();
        for _ in 0..100 {
            let limit = limit.clone();
            callers.push(tokio::spawn(async move {
                limit.check("alice", 1).await.unwrap()
            }));
        }
        redis.has_begun(1).await;
        redis.gate.add_permits(100);
        let mut remaining = Vec::new();
        for caller in callers {
            let decision = caller.await.unwrap();
            remaining.push(decision.is_allowed().then_some(decision.remaining));
        }
        let expected: Vec<_> = (0..100).map(|at: u64| 69_u64.checked_sub(at)).collect();
        assert_eq!(remaining, expected);
        assert!(
            redis.calls() <= 2,
            "{} calls for 100 callers",
            redis.calls()
        );
    });
}

#[test]
fn who_gives_up_takes_nothing() {
    block_on(async {
        let redis = Gated::shut();
        let limit = ExactLimiter::new(redis.clone(), "l", daily(10)).unwrap();
        let ask = |permits| {
            let limit = limit.clone();
            tokio::spawn(async move { limit.check("alice", permits).await.unwrap() })
        };
        // The first is in flight, the second waits for the next call: both give up.
        let first = ask(4);
        redis.has_begun(1).await;
        let (second, third) = (ask(4), ask(2));
        for _ in 0..20 {
            yield_now().await;
        }
        first.abort();
        second.abort();
        for _ in 0..20 {
            yield_now().await;
        }
        redis.gate.add_permits(100);
        assert_eq!(
            third.await.unwrap().remaining,
            4,
            "the first is taken, the second never was"
        );
        redis.has_answered(3).await;
        assert_eq!(limit.peek("alice", 0).await.unwrap().remaining, 8);
    });
}

#[test]
fn an_answer_that_nobody_takes_is_given_back() {
    block_on(async {
        let redis = Gated::open();
        let limit = ExactLimiter::new(redis.clone(), "l", daily(10)).unwrap();
        let mut check = Box::pin(limit.check("alice", 4));
        // It joins, the call is made and answered; and then it is dropped.
        let once = std::future::poll_fn(|context| {
            assert!(check.as_mut().poll(context).is_pending());
            std::task::Poll::Ready(())
        });
        once.await;
        redis.has_answered(1).await;
        drop(check);
        redis.has_answered(2).await;
        assert_eq!(limit.peek("alice", 0).await.unwrap().remaining, 10);
    });
}

#[test]
fn a_denial_is_remembered_until_something_comes_back() {
    block_on(async {
        let redis = Gated::open();
        let limit = ExactLimiter::new(redis.clone(), "l", daily(3)).unwrap();
        let (allowed, receipt) = limit.check_with_receipt("alice", 3).await.unwrap();
        assert!(allowed.is_allowed());
        let denied = limit.check("alice", 1).await.unwrap();
        assert_eq!(denied.retry_after(), Some(Duration::from_hours(8)));
        assert_eq!(redis.calls(), 2);
        for _ in 0..100 {
            let again = limit.check("alice", 1).await.unwrap();
            assert!(again.is_denied() && again.retry_after() <= denied.retry_after());
        }
        assert_eq!(redis.calls(), 2);
        // Others, other asks and what is forced are asked.
        assert!(limit.check("bob", 1).await.unwrap().is_allowed());
        assert_eq!(
            limit.check("alice", 4).await.unwrap().retry(),
            Some(Retry::Never)
        );
        assert_eq!(redis.calls(), 4);

        limit.give_back(receipt.unwrap()).await.unwrap();
        assert!(limit.check("alice", 1).await.unwrap().is_allowed());
        assert!(limit.check("alice", 3).await.unwrap().is_denied());
        limit.reset("alice").await.unwrap();
        assert_eq!(limit.check("alice", 3).await.unwrap().remaining, 0);
        assert!(
            limit
                .check("alice", Ask::new(5).forced())
                .await
                .unwrap()
                .is_allowed()
        );
    });
}

#[test]
fn limits_of_several_subjects_are_charged_all_or_none() {
    block_on(async {
        let redis = Gated::open();
        let exact = Exact::new(redis.clone());
        let per_user = limiter(&exact, "user", daily(5));
        let per_user_hour = limiter(&exact, "user-window", daily(4));
        let in_all = limiter(&exact, "all", daily(3));
        let list = |user: &str| {
            let user = Subject::from(user);
            let all = Subject::from("everybody");
            [
                (&per_user, user.clone()),
                (&in_all, all),
                (&per_user_hour, user),
            ]
        };
        let checked = exact.check_all(&list("alice"), 2).await.unwrap();
        assert!(checked.is_allowed());
        let remaining: Vec<_> = checked
            .decisions()
            .map(|(_, said)| said.remaining)
            .collect();
        assert_eq!(remaining, [3, 1, 2]);
        assert_eq!(checked.told().map(|(place, _)| place), Some(1));
        assert_eq!(redis.calls(), 2, "one for each subject");

        let refused = exact.check_all(&list("bob"), 2).await.unwrap();
        assert!(!refused.is_allowed());
        assert_eq!(refused.told().map(|(place, _)| place), Some(1));
        // What bob's own limits had granted comes back.
        redis.has_answered(5).await;
        assert_eq!(per_user.peek("bob", 0).await.unwrap().remaining, 5);
        assert_eq!(per_user_hour.peek("bob", 0).await.unwrap().remaining, 4);
        assert_eq!(in_all.peek("everybody", 0).await.unwrap().remaining, 1);

        for receipt in checked.into_receipts() {
            exact.give_back(receipt).await.unwrap();
        }
        assert_eq!(in_all.peek("everybody", 0).await.unwrap().remaining, 3);
        let twice = [
            (&per_user, Subject::from("a")),
            (&per_user, Subject::from("a")),
        ];
        let error = exact.check_all(&twice, 1).await.unwrap_err();
        assert!(matches!(error, CheckFailed::List(_)), "{error:?}");
    });
}

#[test]
fn who_waits_is_told_when_redis_does_not_answer() {
    block_on(async {
        let redis = Gated::open();
        redis.is_down.store(true, Ordering::SeqCst);
        let exact = Exact::new(redis.clone());
        let limit = limiter(&exact, "l", daily(5));
        let error = limit.check("alice", 1).await.unwrap_err();
        assert!(matches!(error, Unavailable::TimedOut(_)), "{error:?}");
        let list = [(&limit, Subject::from("alice"))];
        assert!(exact.check_all(&list, 1).await.is_err());
        redis.is_down.store(false, Ordering::SeqCst);
        assert_eq!(limit.check("alice", 1).await.unwrap().remaining, 4);
    });
}

#[test]
fn without_a_runtime_it_says_so() {
    let redis = Gated::open();
    let limit = ExactLimiter::new(redis, "l", daily(5));
    // A limiter is made anywhere.
    let limit = limit.unwrap();
    let mut check = Box::pin(limit.check("alice", 1));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(answer) = check.as_mut().poll(&mut context) else {
        panic!("it waits for nobody");
    };
    assert!(matches!(answer, Err(Unavailable::Server(_))));
}

#[test]
fn who_is_over_a_limit_takes_nothing_from_the_others() {
    block_on(async {
        let redis = Gated::open();
        let exact = Exact::new(redis.clone());
        let per_user = limiter(&exact, "user", daily(1));
        let in_all = limiter(&exact, "all", daily(100));
        let list = [
            (&in_all, Subject::from("everybody")),
            (&per_user, Subject::from("alice")),
        ];
        assert!(exact.check_all(&list, 1).await.unwrap().is_allowed());
        assert!(!exact.check_all(&list, 1).await.unwrap().is_allowed());
        // Two calls each, and what everybody's limit granted the second time was given back.
        redis.has_answered(5).await;
        for _ in 0..1_000 {
            let refused = exact.check_all(&list, 1).await.unwrap();
            assert_eq!(
                refused.told().map(|(place, said)| (place, said.limit)),
                Some((1, 1))
            );
            assert_eq!(
                refused.decisions().count(),
                1,
                "the other one was not asked"
            );
        }
        assert_eq!(redis.calls(), 5);
        assert_eq!(in_all.peek("everybody", 0).await.unwrap().remaining, 99);
    });
}

/// Callers that give up at any moment, on two threads: what they were granted comes back, all of
/// it and once.
#[test]
fn nothing_is_lost_or_given_back_twice_whenever_callers_give_up() {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_time().build().unwrap();
    runtime.block_on(async {
        const LIMIT: u64 = 1_000_000;
        let redis = Gated::open();
        let limit = ExactLimiter::new(redis.clone(), "l", daily(LIMIT)).unwrap();
        let mut used = 0;
        for round in 0..200_u64 {
            let callers: Vec<_> = (0..20)
                .map(|caller| {
                    let limit = limit.clone();
                    let permits = 1 + (round + caller) % 3;
                    tokio::spawn(async move {
                        let decision = limit.check("alice", permits).await.unwrap();
                        assert!(decision.is_allowed());
                        permits
                    })
                })
                .collect();
            for (at, caller) in callers.into_iter().enumerate() {
                if at % 2 == 0 {
                    caller.abort();
                }
                // One that was ready when it was aborted has its answer, and keeps it.
                used += caller.await.unwrap_or(0);
            }
        }
        let deadline = Instant::now() + DEADLINE;
        loop {
            let remaining = limit.peek("alice", 0).await.unwrap().remaining;
            if remaining == LIMIT - used {
                break;
            }
            assert!(
                Instant::now() < deadline,
                "{remaining} remain, and {used} are used"
            );
            yield_now().await;
        }
    });
}
