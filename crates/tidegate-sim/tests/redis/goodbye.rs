//! A node that stops gives back at once what it has, as `tidegate serve` does it: it says goodbye,
//! and then everything that ran in it has ended.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate::{
    Algorithm, Ask, LeaseScheme, Quota, SharedAsk, SharedLimit, SharedStore, SharedTaken, Sharing,
};
use tidegate_redis::concurrency::{DOUBLE_WINDOW, NODE_SHARE, SLOTS};
use tidegate_redis::exact::EXACT;
use tidegate_redis::{Endpoint, EndpointConfig, LEASE, MEMBERS, RedisStore, State};
use tokio::runtime::Runtime;

use crate::server::RedisServer;

const DEADLINE: Duration = Duration::from_secs(20);

/// A store in a runtime of its own, which ends with it.
struct Node {
    runtime: Runtime,
    store: RedisStore,
}

impl Node {
    fn new(server: &RedisServer) -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().unwrap();
        let store = runtime.block_on(async {
            let config = EndpointConfig::single(&server.url()).unwrap();
            let scripts = [
                &EXACT,
                &LEASE,
                &NODE_SHARE,
                &SLOTS,
                &DOUBLE_WINDOW,
                &MEMBERS,
            ];
            let endpoint = Arc::new(Endpoint::start(config, &scripts).unwrap());
            let start = Instant::now();
            while endpoint.health().state != State::Up {
                assert!(start.elapsed() < DEADLINE);
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            RedisStore::new(endpoint, &tokio::runtime::Handle::current())
        });
        Self { runtime, store }
    }

    /// What was taken, if it was allowed; nothing where nobody answered.
    fn take(&self, limit: &Arc<SharedLimit>, permits: u64) -> Option<Box<dyn SharedTaken>> {
        let ask = SharedAsk {
            limit: Arc::clone(limit),
            key: b"alice".as_slice().into(),
            ask: Ask::new(permits),
        };
        let answers = self.runtime.block_on(self.store.check_all(vec![ask]));
        let decision = answers.decisions.into_iter().next()?.ok()?;
        answers.taken.filter(|_| decision.is_allowed())
    }

    /// Asks for single permits, more than there are, for so long: how many passed.
    fn ask_for(&self, limit: &Arc<SharedLimit>, time: Duration) -> u64 {
        let (start, mut passed) = (Instant::now(), 0);
        while start.elapsed() < time {
            let all = (0..10).filter(|_| self.take(limit, 1).is_some());
            passed += all.count() as u64;
            std::thread::park_timeout(Duration::from_millis(2));
        }
        passed
    }

    /// As `serve` ends. How long it took.
    fn stop(self) -> Duration {
        let start = Instant::now();
        self.runtime.block_on(self.store.leave());
        let took = start.elapsed();
        drop(self.store);
        self.runtime.shutdown_background();
        took
    }
}

fn limit(name: &str, algorithm: Algorithm, sharing: Sharing) -> Arc<SharedLimit> {
    Arc::new(SharedLimit {
        keys: Box::default(),
        version: 0,
        name: name.to_owned(),
        algorithm,
        sharing,
        on_its_own: true,
        max_keys: 1_000,
    })
}

/// Its share of the rate was kept back for three seconds: half of it was not used.
// shows: C2, C6 (a node stops)
#[test]
fn the_rate_of_a_node_that_stops_is_the_others_at_once() {
    let server = RedisServer::start();
    let [stays, stops] = [Node::new(&server), Node::new(&server)];
    let quota = Quota::per_second(1_000).burst(400);
    let sharing = Sharing::Leased(LeaseScheme::Strict);
    let limit = limit("rate", Algorithm::TokenBucket(quota), sharing);
    std::thread::scope(|scope| {
        let both = [&stays, &stops];
        for node in both {
            let limit = &limit;
            scope.spawn(move || node.ask_for(limit, Duration::from_secs(1)));
        }
    });
    let took = stops.stop();
    assert!(took < Duration::from_secs(1), "{took:?}");
    let start = Instant::now();
    let passed = stays.ask_for(&limit, Duration::from_millis(1_500));
    let all = start.elapsed().as_millis() as u64;
    println!("gave back in {took:?}; then {passed} of {all} passed");
    assert!(passed * 100 >= all * 85, "{passed} of {all}");
}

// shows: C4, C6 (a node stops)
#[test]
fn the_places_of_a_node_that_stops_are_the_others_at_once() {
    for sharing in [Sharing::NodeShare, Sharing::Slots, Sharing::DoubleWindow] {
        let server = RedisServer::start();
        let [stays, stops] = [Node::new(&server), Node::new(&server)];
        let limit = limit("places", Algorithm::Concurrency { max: 10 }, sharing);
        let held: Vec<_> = (0..10).map(|_| stops.take(&limit, 1)).collect();
        assert!(held.iter().all(Option::is_some), "{sharing:?}");
        assert!(stays.take(&limit, 1).is_none(), "{sharing:?}");
        drop(held);
        let took = stops.stop();
        assert!(took < Duration::from_secs(1), "{sharing:?}: {took:?}");
        let start = Instant::now();
        while stays.take(&limit, 10).is_none() {
            assert!(start.elapsed() < DEADLINE);
            std::thread::park_timeout(Duration::from_millis(1));
        }
        let free = start.elapsed();
        println!("{sharing:?}: gave back in {took:?}, all free after {free:?}");
        assert!(free < Duration::from_millis(500), "{sharing:?}: {free:?}");
    }
}

#[test]
fn a_node_that_stops_waits_no_longer_than_a_second_for_a_redis_that_is_away() {
    let server = RedisServer::start();
    let stops = Node::new(&server);
    let quota = Quota::per_second(1_000).burst(400);
    let sharing = Sharing::Leased(LeaseScheme::Strict);
    let rate = limit("rate", Algorithm::TokenBucket(quota), sharing);
    let places = limit(
        "places",
        Algorithm::Concurrency { max: 10 },
        Sharing::NodeShare,
    );
    let _ = stops.ask_for(&rate, Duration::from_millis(200));
    let held = stops.take(&places, 1);
    assert!(held.is_some());
    server.signal("-STOP");
    let took = stops.stop();
    assert!(took < Duration::from_millis(1_500), "{took:?}");
    server.signal("-CONT");
}

#[test]
fn a_leased_key_is_as_good_as_new_after_a_reset_and_places_are_not() {
    let server = RedisServer::start();
    let node = Node::new(&server);
    // One permit in ten seconds: what passes was there.
    let quota = Quota::per_hour(360).burst(100);
    let key = || b"alice".as_slice().into();
    for sharing in [
        Sharing::Leased(LeaseScheme::Strict),
        Sharing::Auto(LeaseScheme::Strict),
    ] {
        let limit = limit("rate", Algorithm::TokenBucket(quota), sharing);
        // However busy the machine is; and then some, so that it would be seen if more passed.
        let pass = || {
            let (start, mut passed) = (Instant::now(), 0);
            while passed < 95 && start.elapsed() < DEADLINE / 2 {
                passed += node.ask_for(&limit, Duration::from_millis(50));
            }
            passed + node.ask_for(&limit, Duration::from_millis(200))
        };
        let passed = pass();
        assert!((95..=103).contains(&passed), "{sharing:?}: {passed}");
        let reset = node.store.reset(Arc::clone(&limit), key());
        assert_eq!(node.runtime.block_on(reset), Ok(true));
        let passed = pass();
        assert!((95..=103).contains(&passed), "{sharing:?}: {passed}");
        // For the other way of sharing, which has the same bucket.
        let reset = node.store.reset(Arc::clone(&limit), key());
        assert_eq!(node.runtime.block_on(reset), Ok(true));
    }
    let window = limit(
        "window",
        Algorithm::FixedWindow {
            permits: 100,
            window: Duration::from_hours(24 * 365),
        },
        Sharing::Leased(LeaseScheme::Strict),
    );
    for _ in 0..2 {
        let passed = node.ask_for(&window, Duration::from_millis(500));
        assert!((95..=100).contains(&passed), "{passed} of a window");
        let reset = node.store.reset(Arc::clone(&window), key());
        assert_eq!(node.runtime.block_on(reset), Ok(true));
    }
    let places = limit("places", Algorithm::Concurrency { max: 1 }, Sharing::Slots);
    let held = node.take(&places, 1);
    let reset = node.store.reset(Arc::clone(&places), key());
    assert_eq!(node.runtime.block_on(reset), Ok(false));
    drop(held);
}

/// Each reload of a policy made every limiter anew, so that all leases were given back.
#[test]
fn a_limit_that_a_reload_leaves_as_it_was_keeps_its_lease() {
    let server = RedisServer::start();
    let node = Node::new(&server);
    let sharing = Sharing::Leased(LeaseScheme::Strict);
    let of = |rate, version| {
        let quota = Algorithm::TokenBucket(Quota::per_second(rate).burst(400));
        let mut limit = limit("rate", quota, sharing);
        Arc::make_mut(&mut limit).version = version;
        limit
    };
    // Who has leased something of it: a node's name is that of one limiter.
    let lessees = || {
        let keys = server.command(&["KEYS", "tgb*"]);
        let fields = keys.lines().flat_map(|key| {
            let fields = server.command(&["HKEYS", key]);
            fields.lines().map(ToOwned::to_owned).collect::<Vec<_>>()
        });
        let mut lessees: Vec<_> = fields.filter(|field| field != "b").collect();
        lessees.sort();
        lessees
    };
    // As a reload does: each policy has limits of its own.
    let reload = |limit: &Arc<SharedLimit>| node.store.define(vec![Arc::clone(limit)]);
    let first = of(1_000, 1);
    reload(&first);
    assert!(node.take(&first, 1).is_some());
    let before = lessees();
    assert_eq!(before.len(), 1);
    let second = of(1_000, 2);
    reload(&second);
    drop(first);
    assert!(node.take(&second, 1).is_some());
    assert_eq!(lessees(), before);
    // Other numbers are another bucket.
    let third = of(2_000, 3);
    reload(&third);
    drop(second);
    assert!(node.take(&third, 1).is_some());
    assert!(lessees().iter().any(|lessee| !before.contains(lessee)));
}
