//! Nodes of different policies.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate::{
    Algorithm, Ask, Decision, LeaseScheme, Quota, SharedAsk, SharedLimit, SharedStore, Sharing,
    SystemClock,
};
use tidegate_node::Node;
use tidegate_redis::{
    Answer, AutoLimiter, DefinedBy, Endpoint, RedisStore, Scheme, ScriptCall, Scripts,
};

use super::{DEADLINE, endpoint, hourly, until};
use crate::server::RedisServer;

/// A node that defines one limit.
struct Defines {
    store: RedisStore,
    limit: Arc<SharedLimit>,
}

fn limit(version: u64, quota: Quota, sharing: Sharing) -> Arc<SharedLimit> {
    Arc::new(SharedLimit {
        max_keys: 1_000,
        name: "l".to_owned(),
        algorithm: Algorithm::TokenBucket(quota),
        sharing,
        keys: Box::default(),
        version,
        on_its_own: false,
    })
}

/// Waits for Redis for as long as it takes on a busy machine: what is told here is who defines
/// what, not what becomes of a call that is late.
#[derive(Debug)]
struct Patient(Arc<Endpoint>);

impl Scripts for Patient {
    fn call(&self, call: ScriptCall, _: Duration) -> Answer<'_> {
        self.0.call(call, DEADLINE)
    }
}

impl Defines {
    async fn start(server: &RedisServer, version: u64, quota: Quota) -> Self {
        Self::sharing(server, version, quota, Sharing::Exact).await
    }

    async fn sharing(server: &RedisServer, version: u64, quota: Quota, sharing: Sharing) -> Self {
        let runtime = tokio::runtime::Handle::current();
        let store = RedisStore::new(Arc::new(Patient(endpoint(server).await)), &runtime);
        let limit = limit(version, quota, sharing);
        let mut node = Self {
            store,
            limit: Arc::clone(&limit),
        };
        node.reload(limit);
        node
    }

    fn reload(&mut self, limit: Arc<SharedLimit>) {
        self.store.define(vec![Arc::clone(&limit)]);
        self.limit = limit;
    }

    fn ask(&self, permits: u64) -> SharedAsk {
        SharedAsk {
            limit: Arc::clone(&self.limit),
            key: Box::from(&b"k"[..]),
            ask: Ask::new(permits),
        }
    }

    async fn take(&self, permits: u64) -> Decision {
        let mut answers = self.store.check_all(vec![self.ask(permits)]).await;
        answers.decisions.remove(0).unwrap()
    }

    async fn peek(&self) -> Decision {
        self.store.peek(self.ask(0)).await.unwrap()
    }

    async fn until_it_counts(&self, limit: u64) {
        let deadline = Instant::now() + super::DEADLINE;
        while self.peek().await.limit != limit {
            assert!(
                Instant::now() < deadline,
                "{limit}: {:?}",
                self.peek().await
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn by(&self) -> Option<DefinedBy> {
        let all = self.store.defined_elsewhere();
        assert!(all.iter().all(|(name, _)| name == "l"));
        all.first().map(|(_, by)| *by)
    }
}

fn stored(server: &RedisServer) -> String {
    server.command(&["GET", "tgd:{nodes}:l"])
}

// shows: C6, B11 (versions)
#[tokio::test]
async fn while_nodes_differ_all_count_as_the_newest_version_says_and_used_stays_used() {
    let server = RedisServer::start();
    let mut old = Defines::start(&server, 1, hourly(100)).await;
    assert!(old.take(60).await.is_allowed());
    let new = Defines::start(&server, 2, hourly(200)).await;
    old.until_it_counts(200).await;
    assert_eq!(old.by(), Some(DefinedBy::Newer));
    assert_eq!((new.by(), new.peek().await.limit), (None, 200));
    assert!(
        old.take(100).await.is_allowed(),
        "more than it defines itself"
    );
    assert!(new.take(41).await.is_denied());
    assert!(new.take(40).await.is_allowed());
    // A reload that changes nothing about it does not count by its own numbers for a while.
    old.reload(limit(1, hourly(100), Sharing::Exact));
    assert_eq!(old.peek().await.limit, 200);
    // One that comes back with the old policy changes nothing for the others.
    let again = Defines::start(&server, 1, hourly(100)).await;
    again.until_it_counts(200).await;
    assert!(stored(&server).starts_with("0000000000000002:"));
    assert_eq!(new.peek().await.limit, 200);
}

// shows: C6, B11 (versions)
#[tokio::test]
async fn of_one_version_the_stricter_holds_whoever_comes_first_until_it_is_gone() {
    for strict_first in [true, false] {
        let server = RedisServer::start();
        let quotas = if strict_first { [50, 100] } else { [100, 50] };
        let mut nodes = Vec::new();
        for permits in quotas {
            nodes.push(Defines::start(&server, 0, hourly(permits)).await);
            assert!(nodes[0].take(1).await.is_allowed());
        }
        for node in &nodes {
            node.until_it_counts(50).await;
        }
        let (strict, loose) = if strict_first { (0, 1) } else { (1, 0) };
        assert_eq!(nodes[strict].by(), None);
        until("told", || nodes[loose].by() == Some(DefinedBy::Stricter)).await;
        let warned = |event: &String| event.contains("the stricter one holds");
        assert!(crate::events::caught().iter().any(warned));
        // Nobody has the stricter one any more: at once, not when it would be forgotten.
        let start = Instant::now();
        nodes[strict].reload(limit(0, hourly(100), Sharing::Exact));
        for node in &nodes {
            node.until_it_counts(100).await;
        }
        until("own", || nodes[loose].by().is_none()).await;
        assert!(start.elapsed() < Duration::from_secs(10));
    }
}

#[tokio::test]
async fn a_node_that_is_alone_counts_by_its_new_numbers_at_once_and_unlike_ones_stay_apart() {
    let server = RedisServer::start();
    let mut node = Defines::start(&server, 0, hourly(50)).await;
    until("told", || stored(&server).len() > 10).await;
    let before = stored(&server);
    assert!(node.take(30).await.is_allowed());
    node.reload(limit(0, hourly(100), Sharing::Exact));
    assert_eq!(node.peek().await.remaining, 70);
    until("told anew", || stored(&server) != before).await;
    assert_eq!((node.by(), node.peek().await.limit), (None, 100));
    // Keys of an override are defined apart.
    let mut of_some = SharedLimit::clone(&node.limit);
    of_some.keys = Box::from(&b"\x01alice"[..]);
    of_some.algorithm = Algorithm::TokenBucket(hourly(5));
    let all = vec![Arc::clone(&node.limit), Arc::new(of_some)];
    node.store.define(all);
    until("both", || {
        server.command(&["KEYS", "tgd:*"]).lines().count() == 2
    })
    .await;
    assert_eq!((node.by(), node.peek().await.limit), (None, 100));
}

#[tokio::test]
async fn what_a_node_does_not_know_it_neither_counts_by_nor_overwrites() {
    let server = RedisServer::start();
    let later = "0000000000000009:0000000000000001:00000000000000ff00000000000000ff";
    server.command(&["SET", "tgd:{nodes}:l", later, "EX", "100"]);
    let mut node = Defines::start(&server, 8, hourly(50)).await;
    until("told", || node.by() == Some(DefinedBy::Unknown)).await;
    assert_eq!(node.peek().await.limit, 50);
    assert_eq!(stored(&server).trim(), later);
    // One without an order to the other is the newer node's to say.
    node.reload(limit(10, hourly(60), Sharing::Exact));
    until("its own", || node.by().is_none()).await;
    assert_eq!(node.peek().await.limit, 60);
    assert!(stored(&server).starts_with("000000000000000a:"));
}

#[tokio::test]
async fn a_redis_that_lost_the_definitions_is_told_them_again() {
    let server = RedisServer::start();
    let old = Defines::start(&server, 1, hourly(100)).await;
    let new = Defines::start(&server, 2, hourly(200)).await;
    old.until_it_counts(200).await;
    server.command(&["FLUSHALL"]);
    until("told again", || {
        stored(&server).starts_with("0000000000000002:")
    })
    .await;
    old.until_it_counts(200).await;
    assert_eq!(new.by(), None);
}

// shows: C2 (nodes that differ), B11 (versions)
#[tokio::test]
async fn a_lease_becomes_one_of_the_newest_version() {
    let server = RedisServer::start();
    let leased = Sharing::Leased(LeaseScheme::Strict);
    let old = Defines::sharing(&server, 1, Quota::per_second(1_000).burst(1_000), leased).await;
    let _new = Defines::sharing(&server, 2, Quota::per_second(2_000).burst(4_000), leased).await;
    old.until_it_counts(4_000).await;
    // And one that is exact with the older version is leased, too.
    let exact = Defines::start(&server, 1, hourly(100)).await;
    exact.until_it_counts(4_000).await;
}

/// Of numbers that Redis counts in microseconds, and of others that it counts in milliseconds: what
/// either had left there the other took for a bucket of long ago, which is full.
// shows: C2 (nodes that differ)
#[tokio::test]
async fn nodes_of_other_numbers_do_not_fill_a_leased_bucket_up() {
    let server = RedisServer::start();
    let mut limiters = Vec::new();
    for permits in [86_400_000, 86_399_999] {
        let quota = Quota::per_day(permits).burst(10_000_000);
        let scripts = endpoint(&server).await;
        let (limiter, driver) = AutoLimiter::new("l", quota, Scheme::Strict, scripts).unwrap();
        tokio::spawn(driver.run());
        limiters.push(limiter);
    }
    // 1,000 come back in a second. Each node has a bucket with the numbers that it knows.
    let mut passed = 0;
    for _ in 0..10 {
        for limiter in &limiters {
            passed += usize::from(limiter.check("k", 9_000_000).await.unwrap().is_allowed());
        }
    }
    assert_eq!(passed, 2);
}

#[tokio::test]
async fn a_reload_says_that_a_limit_is_kept_elsewhere_and_begins_anew() {
    let server = RedisServer::start();
    let store = RedisStore::new(endpoint(&server).await, &tokio::runtime::Handle::current());
    let of = |store: &str| {
        let limit = format!("moved: {{ rate: 1000/s{store} }}");
        let text = format!(
            "limits: {{ {limit}, stays: {{ rate: 9/s, store: exact }} }}\nredis: {{ url: \"redis://h\" }}\n"
        );
        tidegate_policy::parse("p.yaml", &text).unwrap().policy
    };
    let clock = Arc::new(SystemClock::new());
    let node = Node::with_store(of(", store: exact"), clock, Arc::new(store)).unwrap();
    for (store, told) in [
        (
            ", store: leased",
            "limit=\"moved\" from=\"exact\" to=\"leased\"",
        ),
        ("", "limit=\"moved\" from=\"leased\" to=\"local\""),
    ] {
        node.reload(of(store)).unwrap();
        node.reload(of(store)).unwrap();
        let mut events = crate::events::caught();
        events.retain(|event| event.contains("begins anew") && event.contains(told));
        assert_eq!(events.len(), 1, "{:?}", crate::events::caught());
        assert!(
            !crate::events::caught()
                .iter()
                .any(|event| event.contains("stays"))
        );
    }
}
