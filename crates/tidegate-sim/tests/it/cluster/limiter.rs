//! What users hold, with its driver, over the model of Redis, in the paused time of tokio.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate::{Clock, Decision, Quota, Timestamp};
use tidegate_redis::{
    Answer, LeaseState, LeasedLimiter, LeasedLimiterBuilder, ScriptCall, Scripts, Unavailable,
};
use tidegate_sim::cluster_sim::key::SharedKey;
use tokio::task::JoinHandle;
use tokio::time::{Instant, advance, sleep};

use super::quota;

const REDIS_START: u64 = 1_790_000_000_000_000;
const WAY: Duration = Duration::from_micros(200);

/// The time of tokio, which tests let pass.
#[derive(Clone, Copy, Debug)]
struct Paused(Instant);

impl Clock for Paused {
    fn now(&self) -> Timestamp {
        Timestamp::from_secs(1_000).after(self.0.elapsed())
    }

    fn sleep(&self, _: Duration) {}
}

/// A Redis that runs the model.
#[derive(Debug)]
pub(super) struct Modelled {
    start: Instant,
    keys: Mutex<BTreeMap<Vec<u8>, SharedKey>>,
    pub(super) is_away: AtomicBool,
    /// Calls that are under way, and the most there ever were.
    now: AtomicU64,
    most: AtomicU64,
}

impl Modelled {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            start: Instant::now(),
            keys: Mutex::default(),
            is_away: AtomicBool::new(false),
            now: AtomicU64::new(0),
            most: AtomicU64::new(0),
        })
    }

    pub(super) fn node(
        self: &Arc<Self>,
        builder: LeasedLimiterBuilder,
    ) -> (LeasedLimiter, JoinHandle<()>) {
        let builder = builder.clock(Arc::new(Paused(self.start)));
        let (limiter, driver) = builder.build(Arc::clone(self) as Arc<dyn Scripts>).unwrap();
        (limiter, tokio::spawn(driver.run()))
    }

    fn shares(&self) -> i128 {
        self.keys
            .lock()
            .unwrap()
            .values()
            .map(|key| key.bucket.shares())
            .sum()
    }
}

impl Scripts for Modelled {
    fn call(&self, call: ScriptCall, budget: Duration) -> Answer<'_> {
        Box::pin(async move {
            let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
            self.most.fetch_max(now, Ordering::Relaxed);
            sleep(WAY).await;
            self.now.fetch_sub(1, Ordering::Relaxed);
            if self.is_away.load(Ordering::Relaxed) {
                sleep(budget.saturating_sub(WAY)).await;
                return Err(Unavailable::TimedOut(budget));
            }
            let micros = REDIS_START + self.start.elapsed().as_micros() as u64;
            let answer = {
                let mut keys = self.keys.lock().unwrap();
                keys.entry(call.keys[0].clone())
                    .or_default()
                    .call(micros, &call)
                    .to_vec()
            };
            sleep(WAY).await;
            Ok(answer)
        })
    }
}

fn builder() -> LeasedLimiterBuilder {
    LeasedLimiter::builder("api", quota())
}

/// Lets a millisecond pass, and everything in it happen.
pub(super) async fn milli() {
    for _ in 0..4 {
        advance(Duration::from_micros(250)).await;
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
    }
}

/// Asks for so many single permits each millisecond, and counts those that pass.
async fn ask(nodes: &[&LeasedLimiter], each: u64, millis: u64) -> u64 {
    let mut passed = 0;
    for _ in 0..millis {
        for node in nodes {
            let allowed = |_: &u64| node.check("alice", 1).is_allowed();
            passed += (0..each).filter(allowed).count() as u64;
        }
        milli().await;
    }
    passed
}

fn state(node: &LeasedLimiter) -> Option<LeaseState> {
    node.key_stats("alice").map(|stats| stats.state)
}

#[tokio::test(start_paused = true)]
async fn a_first_request_waits_for_the_first_answer() {
    let redis = Modelled::new();
    let (limiter, _driver) = redis.node(builder());
    assert!(limiter.check_async("alice", 1).await.is_allowed());
    // From here on it is local.
    let decision: Decision = limiter.check("alice", 1);
    assert!(decision.is_allowed());
    // Where Redis is away it waits no longer than its budget.
    redis.is_away.store(true, Ordering::Relaxed);
    let before = Instant::now();
    assert!(limiter.check_async("bob", 1).await.is_denied());
    assert!(
        before.elapsed() <= Duration::from_millis(17),
        "{:?}",
        before.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn two_nodes_share_one_bucket_and_use_it_whole() {
    let redis = Modelled::new();
    let ((a, _), (b, _)) = (redis.node(builder()), redis.node(builder()));
    let passed = ask(&[&a, &b], 25, 1_000).await;
    assert!((20_600..=22_020).contains(&passed), "{passed}");
    let stats = a.stats();
    assert!((35..=55).contains(&stats.calls), "{stats:?}");
    assert!(stats.calls_per_1000() < 2.5, "{stats:?}");
    assert_eq!((stats.keys, stats.failed), (1, 0));
    assert_eq!(a.key_stats("alice").unwrap().nodes, 2);
}

#[tokio::test(start_paused = true)]
async fn a_node_without_redis_mints_its_share_for_a_while_and_comes_back() {
    let redis = Modelled::new();
    let ((a, _), (b, _)) = (redis.node(builder()), redis.node(builder()));
    ask(&[&a, &b], 15, 500).await;
    redis.is_away.store(true, Ordering::Relaxed);
    ask(&[&a, &b], 15, 300).await;
    assert_eq!(state(&a), Some(LeaseState::Minting));
    // Both shares together are the rate.
    let passed = ask(&[&a, &b], 15, 1_000).await;
    assert!((19_000..=20_000).contains(&passed), "{passed}");
    ask(&[&a, &b], 15, 1_800).await;
    assert_eq!(state(&a), Some(LeaseState::Closed));
    assert_eq!(ask(&[&a, &b], 15, 100).await, 0);
    redis.is_away.store(false, Ordering::Relaxed);
    ask(&[&a, &b], 15, 600).await;
    assert_eq!(state(&a), Some(LeaseState::Leased));
    let passed = ask(&[&a, &b], 15, 500).await;
    assert!((9_400..=12_020).contains(&passed), "{passed}");
    let stats = a.stats();
    assert!(stats.failed > 5 && stats.failed < 60, "{stats:?}");
}

#[tokio::test(start_paused = true)]
async fn keys_that_nobody_asks_for_are_given_back_and_forgotten() {
    let redis = Modelled::new();
    let (limiter, _driver) = redis.node(builder());
    for key in 0..100 {
        let _ = limiter.check_async(&key.to_string(), 1).await;
    }
    assert_eq!(limiter.stats().keys, 100);
    assert!(redis.shares() > 0);
    for _ in 0..2_000 {
        milli().await;
    }
    assert_eq!(limiter.stats().keys, 0);
    assert_eq!(redis.shares(), 0);
    // And are there again when somebody does.
    assert!(limiter.check_async("7", 1).await.is_allowed());
}

#[tokio::test(start_paused = true)]
async fn keys_are_bounded_and_the_least_asked_for_goes_first() {
    let redis = Modelled::new();
    let (limiter, _driver) = redis.node(builder().max_keys(1));
    ask(&[&limiter], 10, 100).await;
    assert!(limiter.key_stats("alice").is_some());
    assert!(limiter.check_async("bob", 1).await.is_allowed());
    assert!(limiter.key_stats("alice").is_none());
    assert_eq!(limiter.stats().keys, 1);
}

#[tokio::test(start_paused = true)]
async fn a_storm_of_new_keys_is_asked_for_turn_by_turn() {
    let redis = Modelled::new();
    let (limiter, _driver) = redis.node(builder());
    for key in 0..5_000 {
        let _ = limiter.check(&key.to_string(), 1);
    }
    for _ in 0..50 {
        milli().await;
    }
    let most = redis.most.load(Ordering::Relaxed);
    assert!(most <= 1_024, "{most} calls at once");
    let has = |key: &u64| limiter.check(&key.to_string(), 1).is_allowed();
    assert_eq!((0..5_000).filter(has).count(), 5_000);
}

#[tokio::test(start_paused = true)]
async fn a_limiter_that_is_dropped_gives_back_what_it_has() {
    let redis = Modelled::new();
    let (limiter, driver) = redis.node(builder());
    ask(&[&limiter], 15, 100).await;
    assert!(redis.shares() > 0);
    drop(limiter);
    driver.await.unwrap();
    assert_eq!(redis.shares(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_quota_that_cannot_be_leased_is_refused() {
    let small = LeasedLimiter::builder("api", Quota::per_minute(5));
    let error = small.build(Modelled::new()).unwrap_err();
    assert!(error.to_string().contains("exact"), "{error}");
}
