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
    /// How long a message takes, microseconds.
    way: AtomicU64,
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
            way: AtomicU64::new(200),
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

    fn shares_of(&self, key: &str) -> i128 {
        let keys = self.keys.lock().unwrap();
        let of = |name: &Vec<u8>| name.windows(key.len()).any(|part| part == key.as_bytes());
        let found = keys.iter().filter(|(name, _)| of(name));
        found.map(|(_, key)| key.bucket.shares()).sum()
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
            let way = Duration::from_micros(self.way.load(Ordering::Relaxed));
            sleep(way).await;
            self.now.fetch_sub(1, Ordering::Relaxed);
            if self.is_away.load(Ordering::Relaxed) {
                sleep(budget.saturating_sub(way)).await;
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
            sleep(way).await;
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

/// More than could wait to say goodbye were kept for good, and never said it from then on.
#[tokio::test(start_paused = true)]
async fn keys_that_find_no_room_to_say_goodbye_are_forgotten() {
    const KEYS: usize = 24_000;
    let redis = Modelled::new();
    redis.way.store(5_000, Ordering::Relaxed);
    let (limiter, _driver) = redis.node(builder());
    for key in 0..KEYS {
        let _ = limiter.check(&key.to_string(), 1);
    }
    assert_eq!(limiter.stats().keys, KEYS);
    sleep(Duration::from_mins(1)).await;
    assert_eq!(limiter.stats().keys, 0);
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
async fn a_storm_of_new_keys_is_asked_for_turn_by_turn() {
    let redis = Modelled::new();
    let (limiter, _driver) = redis.node(builder());
    for key in 0..5_000 {
        let _ = limiter.check(&key.to_string(), 1);
    }
    // A call takes two of them here.
    for _ in 0..170 {
        milli().await;
    }
    let most = redis.most.load(Ordering::Relaxed);
    assert_eq!(most, 64, "calls at once");
    let has = |key: &u64| limiter.check(&key.to_string(), 1).is_allowed();
    assert_eq!((0..5_000).filter(has).count(), 5_000);
}

/// Every key asked by itself, and all of them at once when Redis was back.
#[tokio::test(start_paused = true)]
async fn while_redis_is_away_one_key_tries_for_all_and_then_those_that_are_asked_for_come_back() {
    let redis = Modelled::new();
    let (limiter, _driver) = redis.node(builder());
    let check = |key: u64| limiter.check(&key.to_string(), 1).is_allowed();
    for key in 0..2_000 {
        let _ = check(key);
    }
    for _ in 0..100 {
        milli().await;
    }
    redis.is_away.store(true, Ordering::Relaxed);
    let mut before = limiter.stats();
    for millis in 0..2_000 {
        for key in 0..20 {
            let _ = check((millis * 20 + key) % 2_000);
        }
        milli().await;
        if millis == 200 {
            // Three times those that were under way together, and who tried since.
            let failed = limiter.stats().failed - before.failed;
            assert!(failed <= 3 * 64 + 10, "{failed}");
            before = limiter.stats();
        }
    }
    let failed = limiter.stats().failed - before.failed;
    assert!((3..=40).contains(&failed), "{failed} in 1.8 s");
    redis.is_away.store(false, Ordering::Relaxed);
    let before = limiter.stats();
    let mut passed = 0;
    for millis in 0..1_500 {
        passed += u64::from(check(millis % 10)) + u64::from(check(millis % 10));
        milli().await;
    }
    // Half a second may pass before the next tries.
    assert!(passed > 1_800, "{passed}");
    // Ten keys: of the other 1,990 there is nothing to say.
    let calls = limiter.stats().calls - before.calls;
    assert!(calls < 10 * 61 + 20, "{calls}");
    for _ in 0..3_000 {
        milli().await;
    }
    assert_eq!(limiter.stats().keys, 0);
}

#[tokio::test(start_paused = true)]
async fn a_key_without_room_takes_that_of_the_one_that_is_idle_for_longest() {
    let redis = Modelled::new();
    let (limiter, _driver) = redis.node(builder().max_keys(1));
    ask(&[&limiter], 10, 100).await;
    assert!(redis.shares() > 0);
    assert!(limiter.check_async("bob", 1).await.is_allowed());
    assert!(limiter.key_stats("alice").is_none());
    for _ in 0..3 {
        milli().await;
    }
    // It has said goodbye: what is left is bob's.
    assert_eq!(redis.shares_of("alice"), 0);
    assert!(redis.shares() > 0);
    assert_eq!(limiter.stats().keys, 1);
}

#[tokio::test(start_paused = true)]
async fn who_is_in_use_stays_where_there_is_no_room() {
    let redis = Modelled::new();
    let (limiter, _driver) = redis.node(builder().max_keys(64));
    for round in 0..500_u64 {
        // Two that are asked for all the time, and others once each: a place is wanted every
        // 64 ms, and how long a key is idle is known to a refresh of 25 ms.
        for key in ["hot", "warm"] {
            let _ = limiter.check_async(key, 1).await;
        }
        let _ = limiter.check(&round.to_string(), 1);
        milli().await;
        assert!(limiter.stats().keys <= 64);
    }
    assert_eq!(limiter.key_stats("hot").unwrap().state, LeaseState::Leased);
    assert!(limiter.stats().keys > 40, "{:?}", limiter.stats());
    // They were never ousted, or there would be two of this node.
    assert_eq!(limiter.key_stats("warm").unwrap().nodes, 1);
    assert!(limiter.check("hot", 1).is_allowed() && limiter.check("warm", 1).is_allowed());
}

#[tokio::test(start_paused = true)]
async fn a_reset_fills_the_bucket_but_for_what_is_lent() {
    let redis = Modelled::new();
    let ((a, _), (b, _)) = (redis.node(builder()), redis.node(builder()));
    // More than there is: 2,000 at once, and 20 each millisecond.
    let used = ask(&[&a, &b], 200, 100).await;
    assert!(used <= 2_000 + 20 * 101, "{used}");
    let before = ask(&[&a, &b], 200, 100).await;
    assert!(before <= 2_500, "{before}");
    a.reset("alice").await.unwrap();
    let after = ask(&[&a, &b], 200, 100).await;
    assert!(
        (2_800..=2_000 + 20 * 101).contains(&after),
        "{after} after {before}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_limiter_that_leaves_gives_back_what_it_has_although_others_hold_it() {
    let redis = Modelled::new();
    let (limiter, driver) = redis.node(builder());
    for key in 0..500 {
        let _ = limiter.check(&key.to_string(), 1);
    }
    ask(&[&limiter], 15, 100).await;
    assert!(redis.shares() > 0);
    limiter.leave().await;
    driver.await.unwrap();
    assert_eq!(redis.shares(), 0);
    assert!(limiter.check_async("alice", 1).await.is_denied());
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
