//! Waiting for rates and places as futures, in a runtime whose time stands still until all wait.

use std::sync::Arc;
use std::time::Duration;

use tidegate::{
    Algorithm, Ask, Clock, ConcurrencyLimiter, KeyedLimiter, Limiter, Quota, Timestamp, TokioClock,
};
use tokio::task::JoinSet;
use tokio::time::timeout;

const START: Timestamp = Timestamp::from_secs(1_700_000_000);

fn limiter(algorithm: impl Into<Algorithm>) -> (Arc<Limiter<TokioClock>>, TokioClock) {
    let clock = TokioClock::starting_at(START);
    let limiter = Limiter::with_clock(algorithm, clock).expect("valid");
    (Arc::new(limiter), clock)
}

/// When each of so many callers at once goes ahead, in whole milliseconds, in the order they came.
async fn all_at_once(algorithm: impl Into<Algorithm>, callers: usize) -> Vec<u128> {
    let (limiter, clock) = limiter(algorithm);
    let mut tasks = Vec::new();
    for _ in 0..callers {
        let limiter = Arc::clone(&limiter);
        tasks.push(tokio::spawn(async move {
            assert!(limiter.acquire_async(1).await.is_allowed());
            clock.now().since(START).as_millis()
        }));
    }
    let mut went = Vec::new();
    for task in tasks {
        went.push(task.await.expect("no panic"));
    }
    went
}

// shows: B10 (async), B3 (local)
#[tokio::test(start_paused = true)]
async fn twenty_callers_of_a_log_of_three_in_five_seconds_are_done_after_thirty() {
    // SEMANTICS case 15.
    let window = Duration::from_secs(5);
    let went = all_at_once(Algorithm::SlidingLog { permits: 3, window }, 20).await;
    let expected: Vec<u128> = (0..20).map(|n| n / 3 * 5_000).collect();
    assert!(
        went.iter()
            .zip(&expected)
            .all(|(went, at)| (*at..at + 2).contains(went)),
        "{went:?}"
    );
}

// shows: B10 (async), B4 (queue)
#[tokio::test(start_paused = true)]
async fn callers_of_a_bucket_go_ahead_in_the_order_they_came() {
    let went = all_at_once(Quota::per_second(10).burst(2), 6).await;
    let expected = [0, 0, 100, 200, 300, 400];
    assert!(
        went.iter()
            .zip(expected)
            .all(|(went, at)| (at..at + 2).contains(went)),
        "{went:?}"
    );
}

// shows: B10 (async), A7 (cost and peek and give back)
#[tokio::test(start_paused = true)]
async fn a_caller_that_gives_up_returns_what_it_had_reserved() {
    let (limiter, _) = limiter(Quota::per_second(1));
    assert!(limiter.check().is_allowed());
    let waits = limiter.acquire_async(1);
    assert!(timeout(Duration::from_millis(400), waits).await.is_err());
    let patient = Ask::ONE.within(Duration::from_secs(1));
    let delay = limiter.check_ask(patient).delay();
    // The permit that the first would have had.
    assert!(delay <= Duration::from_millis(600), "{delay:?}");
}

// shows: B10 (async)
#[tokio::test(start_paused = true)]
async fn one_that_would_wait_too_long_is_refused_at_once_and_takes_nothing() {
    let (limiter, clock) = limiter(Quota::per_minute(1));
    assert!(limiter.check().is_allowed());
    let second = Duration::from_secs(1);
    let refused = limiter.acquire_async_within(1, second).await;
    assert!(refused.is_denied());
    assert_eq!(clock.now(), START);
    let never = limiter.acquire_async(2).await;
    assert!(never.is_denied() && never.retry_after().is_none());
    let in_time = limiter
        .acquire_async_within(1, Duration::from_mins(1))
        .await;
    assert_eq!(in_time.delay(), Duration::from_mins(1));
}

// A counter that cannot reserve is asked again.
// shows: B10 (async), B2 (local)
#[tokio::test(start_paused = true)]
async fn a_counter_is_asked_again_when_it_said() {
    let clock = TokioClock::starting_at(START);
    let window = Duration::from_secs(10);
    let counter = Algorithm::SlidingCounter { permits: 2, window };
    let limiter = KeyedLimiter::builder(counter)
        .clock(clock)
        .build()
        .expect("valid");
    for _ in 0..2 {
        assert!(limiter.check("k").is_allowed());
    }
    let told = limiter.peek("k", 1).retry_after().expect("full");
    let minute = Duration::from_mins(1);
    assert!(
        limiter
            .acquire_async_within("k", 1, minute)
            .await
            .is_allowed()
    );
    let waited = clock.now().since(START);
    assert!(
        waited >= told && waited <= told + Duration::from_millis(2),
        "{waited:?} of {told:?}"
    );
}

// shows: A2 (bounded waiting), B8, B10 (async)
#[tokio::test(start_paused = true)]
async fn a_hundred_tasks_on_ten_places_never_meet_an_eleventh() {
    let limiter = ConcurrencyLimiter::new(10).expect("valid");
    let mut tasks = JoinSet::new();
    for _ in 0..100 {
        let limiter = limiter.clone();
        tasks.spawn(async move {
            let (_, permit) = limiter.acquire_async(1).await;
            let permit = permit.expect("all are served");
            let inside = limiter.in_use();
            tokio::time::sleep(Duration::from_millis(10)).await;
            drop(permit);
            inside
        });
    }
    let inside = tasks.join_all().await;
    assert_eq!(inside.iter().max(), Some(&10));
    assert_eq!(limiter.in_use(), 0);
}

// shows: A2 (bounded waiting), B10 (async)
#[tokio::test(start_paused = true)]
async fn a_timeout_around_a_wait_in_line_leaves_the_line() {
    let limiter = ConcurrencyLimiter::new(1).expect("valid").queue_length(1);
    let inside = limiter.try_acquire(1);
    let second = Duration::from_secs(1);
    assert!(timeout(second, limiter.acquire_async(1)).await.is_err());
    // There is room in the line again.
    let mut waits = Box::pin(limiter.acquire_async(1));
    assert!(timeout(second, &mut waits).await.is_err());
    drop(inside);
    assert!(waits.await.1.is_some());
}

// shows: B8
#[tokio::test(start_paused = true)]
async fn a_closed_limit_refuses_those_in_line_and_drains() {
    let limiter = ConcurrencyLimiter::new(1).expect("valid");
    let inside = limiter.try_acquire(1).1.expect("free").into_owned();
    let waits = tokio::spawn({
        let limiter = limiter.clone();
        async move { limiter.acquire_async(1).await.0.is_allowed() }
    });
    tokio::task::yield_now().await;
    limiter.close();
    assert!(!waits.await.expect("no panic"));
    assert!(limiter.acquire_async(1).await.0.is_denied());
    let second = Duration::from_secs(1);
    assert!(timeout(second, limiter.drained()).await.is_err());
    drop(inside);
    limiter.drained().await;
    limiter.set_max(1).expect("valid");
    assert!(limiter.try_acquire(1).1.is_some(), "open again");
}
