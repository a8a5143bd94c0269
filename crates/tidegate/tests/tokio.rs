//! Waiting for rates and places as futures, in a runtime whose time stands still until all wait.

use std::sync::Arc;
use std::time::Duration;

use tidegate::{
    Algorithm, Ask, Clock, ConcurrencyLimiter, Definition, KeyedConcurrencyLimiter, KeyedLimiter,
    Limiter, Limits, LimitsError, Quota, Retry, Timestamp, TokioClock,
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
    // Also where the wait is but little longer.
    let nearly = Duration::from_millis(59_999);
    assert!(limiter.acquire_async_within(1, nearly).await.is_denied());
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

fn keyed(algorithm: impl Into<Algorithm>) -> (KeyedLimiter<TokioClock>, TokioClock) {
    let clock = TokioClock::starting_at(START);
    let built = KeyedLimiter::builder(algorithm).clock(clock).build();
    (built.expect("valid"), clock)
}

fn named(algorithm: impl Into<Algorithm>) -> (Arc<Limits<TokioClock>>, TokioClock) {
    let clock = TokioClock::starting_at(START);
    let limits = Limits::with_clock(clock);
    limits
        .define("l", Definition::new(algorithm))
        .expect("valid");
    (Arc::new(limits), clock)
}

const SECOND: Duration = Duration::from_secs(1);

// shows: B10 (async), A7 (cost and peek and give back)
#[tokio::test(start_paused = true)]
async fn a_caller_of_a_key_that_gives_up_returns_what_it_had_reserved() {
    let (limiter, clock) = keyed(Quota::per_second(1));
    assert!(limiter.acquire_async("k", 1).await.is_allowed());
    assert_eq!(clock.now(), START, "it was there");
    let waits = limiter.acquire_async("k", 1);
    assert!(timeout(SECOND / 2, waits).await.is_err());
    // The permit that the first would have had, and no key's but this one's.
    assert_eq!(limiter.peek("other", 1).remaining, 1);
    assert!(limiter.acquire_async("k", 1).await.is_allowed());
    let waited = clock.now().since(START);
    assert!(
        waited >= SECOND && waited <= SECOND + SECOND / 100,
        "{waited:?}"
    );
    let never = limiter.acquire_async("k", 2).await;
    assert_eq!(never.retry(), Some(Retry::Never));
}

// shows: B10 (async), B11 (from the library), A7 (cost and peek and give back)
#[tokio::test(start_paused = true)]
async fn a_caller_of_a_name_that_gives_up_returns_what_it_had_reserved() {
    let (limits, clock) = named(Quota::per_second(1));
    let first = limits.acquire_async("l", "k", 1).await;
    assert!(first.expect("defined").is_allowed());
    let waits = limits.acquire_async("l", "k", 1);
    assert!(timeout(SECOND / 2, waits).await.is_err());
    let refused = limits.acquire_async_within("l", "k", 1, SECOND / 4).await;
    assert!(refused.expect("defined").is_denied());
    let second = limits.acquire_async("l", "k", 1).await;
    assert!(second.expect("defined").is_allowed());
    let waited = clock.now().since(START);
    assert!(
        waited >= SECOND && waited <= SECOND + SECOND / 100,
        "{waited:?}"
    );
    let unknown = limits.acquire_async("none", "k", 1).await;
    assert!(matches!(unknown, Err(LimitsError::Unknown(_))));
}

// A counter that cannot reserve is asked again: as it is then.
// shows: B10 (async), B11 (from the library), F4
#[tokio::test(start_paused = true)]
async fn who_waits_for_a_name_that_changes_is_asked_as_it_is_then() {
    let counter = |permits| Algorithm::SlidingCounter {
        permits,
        window: Duration::from_secs(10),
    };
    let (limits, clock) = named(counter(2));
    assert!(limits.check_ask("l", "k", 2).expect("defined").is_allowed());
    let waits = tokio::spawn({
        let limits = Arc::clone(&limits);
        async move { limits.acquire_async("l", "k", 1).await }
    });
    tokio::task::yield_now().await;
    // Two of one are used: it takes longer than what it was told first.
    let told = limits.peek("l", "k", 1).expect("defined").retry_after();
    limits
        .define("l", Definition::new(counter(1)))
        .expect("valid");
    let longer = limits.peek("l", "k", 1).expect("defined").retry_after();
    assert!(longer > told);
    let decision = waits.await.expect("no panic").expect("defined");
    assert_eq!((decision.is_allowed(), decision.limit), (true, 1));
    let waited = clock.now().since(START);
    assert!(Some(waited) >= longer, "{waited:?} of {longer:?}");
}

// shows: A2 (bounded waiting), B10 (async)
#[tokio::test(start_paused = true)]
async fn who_has_waited_too_long_for_a_place_leaves_the_line() {
    let limiter = ConcurrencyLimiter::new(2).expect("valid").queue_length(2);
    let inside = limiter.try_acquire(1).1;
    let (denied, none) = limiter.acquire_async_within(2, SECOND).await;
    assert!(denied.is_on_release() && none.is_none());
    // What is free when it is too late is what it would have been told of before.
    assert_eq!(denied.remaining, 1);
    // There is room in the line again, and nobody in it.
    let mut waits = Box::pin(limiter.acquire_async_within(2, SECOND));
    assert!(timeout(SECOND / 2, &mut waits).await.is_err());
    assert!(limiter.try_acquire(1).0.is_on_release(), "somebody waits");
    drop(waits);
    assert!(limiter.try_acquire(1).0.is_allowed(), "it has left");
    let ((), waits) = tokio::join!(
        async { drop(inside) },
        limiter.acquire_async_within(2, SECOND)
    );
    assert!(waits.1.is_some());
}

// shows: A2 (bounded waiting), B10 (async), F4 (places)
#[tokio::test(start_paused = true)]
async fn who_has_waited_too_long_is_asked_under_the_numbers_that_hold_then() {
    let keyed = KeyedConcurrencyLimiter::new(3, 10).expect("valid");
    let (limits, _) = named(Algorithm::Concurrency { max: 3 });
    let mut inside = Vec::new();
    for _ in 0..2 {
        inside.push(keyed.try_acquire("k", 1).1.expect("free").into_owned());
        let permit = limits.try_acquire_permit("l", "k", 1).expect("defined").1;
        inside.push(permit.expect("free"));
    }
    let ((of_key, _), of_name, ()) = tokio::join!(
        keyed.acquire_async_within("k", 2, SECOND),
        limits.acquire_permit_async_within("l", "k", 2, SECOND),
        async {
            // They stand in line by now; under the first numbers both would fit in the end.
            keyed.set_max(2).expect("valid");
            let two = Definition::new(Algorithm::Concurrency { max: 2 });
            limits.define("l", two).expect("valid");
            inside.truncate(2);
        }
    );
    assert!(of_key.is_on_release() && of_name.expect("defined").0.is_on_release());
    assert_eq!(keyed.in_use("k"), 1);
    assert_eq!(limits.in_use("l", "k"), Ok(1));
}

// shows: A2 (bounded waiting), B10 (async), B11 (from the library)
#[tokio::test(start_paused = true)]
async fn who_waits_for_places_by_name_goes_in_as_it_came_and_leaves_nothing_behind() {
    let (limits, _) = named(Algorithm::Concurrency { max: 2 });
    let permit = |permits| {
        let limits = Arc::clone(&limits);
        async move { limits.acquire_permit_async("l", "k", permits).await }
    };
    let inside = permit(2).await.expect("defined").1;
    // Nobody has taken a place in line before it is looked at.
    let unpolled = permit(1);
    let mut tasks = Vec::new();
    let (told, mut order) = tokio::sync::mpsc::unbounded_channel();
    for number in 0..4 {
        let (wait, told) = (permit(1 + number % 2), told.clone());
        tasks.push(tokio::spawn(async move {
            let permit = wait.await.expect("defined").1;
            told.send(number).expect("somebody looks");
            drop(permit);
        }));
        tokio::task::yield_now().await;
    }
    tasks.remove(1).abort();
    tokio::task::yield_now().await;
    drop(inside);
    for expected in [0, 2, 3] {
        assert_eq!(order.recv().await, Some(expected));
    }
    assert!(unpolled.await.expect("defined").1.is_some());
    assert_eq!(limits.in_use("l", "k"), Ok(0));
    // Dropped with somebody in line: that one is told so.
    let inside = permit(2).await.expect("defined").1;
    let waits = tokio::spawn(permit(1));
    tokio::task::yield_now().await;
    limits.remove("l");
    let (told, none) = waits
        .await
        .expect("no panic")
        .expect("defined when it came");
    assert_eq!((told.retry(), none.is_none()), (Some(Retry::Never), true));
    assert!(matches!(permit(1).await, Err(LimitsError::Unknown(_))));
    drop(inside);
}
