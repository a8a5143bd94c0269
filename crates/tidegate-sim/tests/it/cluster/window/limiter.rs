//! What users hold, of leased windows, over the model of Redis, in the paused time of tokio.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tidegate_redis::{LeaseState, LeasedLimiter, LeasedLimiterBuilder};

use super::super::limiter::{Modelled, milli};

/// Windows of a second with a thousand permits.
fn builder() -> LeasedLimiterBuilder {
    LeasedLimiter::windows("api", 1_000, Duration::from_secs(1))
}

/// Each asks so often each millisecond, and waits for its answer; how many pass.
async fn ask(nodes: &[&LeasedLimiter], each: u64, millis: u64) -> u64 {
    let mut passed = 0;
    for _ in 0..millis {
        for node in nodes {
            for _ in 0..each {
                passed += u64::from(node.check_async("alice", 1).await.is_allowed());
            }
        }
        milli().await;
    }
    passed
}

#[tokio::test(start_paused = true)]
async fn a_window_with_permits_left_refuses_nobody_who_waits_for_an_answer() {
    let redis = Modelled::new();
    let ((a, _), (b, _)) = (redis.node(builder()), redis.node(builder()));
    // Few at first, then many at once, into the next windows. Answers take a little time, too.
    for (each, millis) in [
        (1, 50),
        (0, 300),
        (2, 40),
        (0, 1_000),
        (1, 40),
        (3, 30),
        (0, 400),
    ] {
        let passed = ask(&[&a, &b], each, millis).await;
        assert_eq!(passed, 2 * each * millis, "{each} for {millis} ms");
    }
    let stats = a.stats();
    assert!(stats.calls < 60, "{stats:?}");
}

#[tokio::test(start_paused = true)]
async fn one_window_after_the_other_is_granted_once() {
    let redis = Modelled::new();
    let ((a, _), (b, _)) = (redis.node(builder()), redis.node(builder()));
    // What Redis's clock says at first is the beginning of a window.
    for _ in 0..3 {
        let before = tokio::time::Instant::now();
        let mut passed = 0;
        while before.elapsed() < Duration::from_millis(990) {
            passed += ask(&[&a, &b], 2, 1).await;
        }
        assert!((995..=1_000).contains(&passed), "{passed}");
        while before.elapsed() < Duration::from_secs(1) {
            tokio::time::advance(Duration::from_micros(100)).await;
        }
    }
    let stats = a.stats();
    assert!(stats.calls < 100, "{stats:?}");
}

#[tokio::test(start_paused = true)]
async fn a_reset_begins_a_window_anew_and_what_is_lent_of_it_is_worth_nothing_soon() {
    let redis = Modelled::new();
    let ((a, _), (b, _)) = (redis.node(builder()), redis.node(builder()));
    let used = ask(&[&a, &b], 20, 300).await;
    assert!((990..=1_000).contains(&used), "{used}");
    assert!(ask(&[&a, &b], 20, 50).await <= 1_000 - used);
    a.reset("alice").await.unwrap();
    let after = ask(&[&a, &b], 20, 500).await;
    assert!((990..=1_000).contains(&after), "{after}");
}

#[tokio::test(start_paused = true)]
async fn what_is_lent_until_the_window_ends_stays_however_long_nobody_asks_nor_answers() {
    let redis = Modelled::new();
    let long = LeasedLimiter::windows("api", 1_000, Duration::from_hours(1));
    let (limiter, _driver) = redis.node(long);
    assert_eq!(ask(&[&limiter], 1, 150).await, 150);
    redis.is_away.store(true, Ordering::Relaxed);
    // Until it is known that nothing answers.
    assert_eq!(ask(&[&limiter], 1, 50).await, 50);
    for _ in 0..10_000 {
        milli().await;
    }
    assert_eq!(limiter.stats().keys, 1);
    assert!(limiter.check("alice", 1).is_allowed());
}

#[tokio::test(start_paused = true)]
async fn without_redis_nobody_waits_long_and_nothing_is_minted() {
    let redis = Modelled::new();
    let (limiter, _driver) = redis.node(builder());
    assert_eq!(ask(&[&limiter], 1, 100).await, 100);
    redis.is_away.store(true, Ordering::Relaxed);
    let lent = ask(&[&limiter], 1, 500).await;
    assert!((1..=300).contains(&lent), "{lent}");
    ask(&[&limiter], 1, 500).await;
    let before = tokio::time::Instant::now();
    assert_eq!(ask(&[&limiter], 1, 200).await, 0);
    // 200 of them are the test's own.
    let waited = before.elapsed().as_millis() - 200;
    assert!(waited < 20, "{waited} ms");
    let state = limiter.key_stats("alice").unwrap().state;
    assert_eq!(state, LeaseState::Closed);
    redis.is_away.store(false, Ordering::Relaxed);
    ask(&[&limiter], 1, 600).await;
    assert_eq!(ask(&[&limiter], 1, 100).await, 100);
}
