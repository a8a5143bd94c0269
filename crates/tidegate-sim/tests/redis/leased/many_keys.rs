//! Tens of thousands of keys on one node, each asked for now and then: over the endpoint and a
//! real Redis, which also goes away.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate::Quota;
use tidegate_redis::{Endpoint, EndpointConfig, LEASE, LeasedLimiter, State};
use tokio::task::JoinSet;

use crate::server::RedisServer;

const KEYS: u64 = 30_000;
/// Requests a second, all keys together: each is asked for every ten seconds.
const LOAD: u64 = 3_000;
/// How long until every key has been asked for.
const ALL: Duration = Duration::from_secs(KEYS / LOAD);

struct Node {
    endpoint: Arc<Endpoint>,
    limiter: LeasedLimiter,
    next: u64,
}

/// What came of requests in a stretch of time.
#[derive(Clone, Copy, Debug, Default)]
struct Came {
    asked: u64,
    refused: u64,
    /// Of Redis, answered.
    calls: u64,
    /// The most calls of Redis in a tenth of a second, per second.
    most: u64,
    seconds: f64,
}

impl Node {
    fn new(server: &RedisServer) -> Self {
        let config = EndpointConfig::single(&server.url()).unwrap();
        let endpoint = Arc::new(Endpoint::start(config, &[&LEASE]).unwrap());
        // So much that no key is ever at its limit here.
        let quota = Quota::per_second(100).burst(100);
        let builder = LeasedLimiter::builder("api", quota);
        let (limiter, driver) = builder.build(endpoint.clone()).unwrap();
        tokio::spawn(driver.run());
        Self {
            endpoint,
            limiter,
            next: 0,
        }
    }

    fn is_up(&self) -> bool {
        self.endpoint.health().state == State::Up
    }

    /// Asks for one key after the other for so long, at the load.
    async fn ask_for(&mut self, time: Duration) -> Came {
        let (start, before) = (Instant::now(), self.endpoint.health().counts.answered);
        let mut came = Came::default();
        let mut askers = JoinSet::new();
        let mut marks = vec![(start, before)];
        while start.elapsed() < time {
            let wanted = start.elapsed().as_micros() as u64 * LOAD / 1_000_000;
            while came.asked < wanted {
                let (limiter, key) = (self.limiter.clone(), self.next.to_string());
                self.next = (self.next + 1) % KEYS;
                came.asked += 1;
                askers.spawn(async move { limiter.check_async(&key, 1).await.is_denied() });
            }
            while let Some(refused) = askers.try_join_next() {
                came.refused += u64::from(refused.unwrap());
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
            if marks[marks.len() - 1].0.elapsed() >= Duration::from_millis(100) {
                marks.push((Instant::now(), self.endpoint.health().counts.answered));
            }
        }
        while let Some(refused) = askers.join_next().await {
            came.refused += u64::from(refused.unwrap());
        }
        let per_second = |pair: &[(Instant, u64)]| {
            let passed = (pair[1].0 - pair[0].0).as_micros() as u64;
            (pair[1].1 - pair[0].1) * 1_000_000 / passed
        };
        came.most = marks.windows(2).map(per_second).max().unwrap_or(0);
        came.calls = self.endpoint.health().counts.answered - before;
        came.seconds = start.elapsed().as_secs_f64();
        came
    }
}

/// The breaker opened 31 times in the first ten seconds, two of three requests were refused, and
/// after Redis had been away all of them: each of 30,000 keys asked by itself, 15 to 20 times for
/// each request.
// shows: C2
#[tokio::test]
async fn thirty_thousand_keys_on_one_node_and_a_redis_that_is_away_for_two_seconds() {
    let server = RedisServer::start();
    let mut node = Node::new(&server);
    let deadline = Instant::now() + Duration::from_secs(20);
    while !node.is_up() {
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let connects = node.endpoint.health().counts.connects;
    let normal = node.ask_for(ALL).await;
    println!("{normal:?}");
    assert!(node.is_up());
    let health = node.endpoint.health();
    assert_eq!(health.counts.connects, connects, "the breaker has opened");
    // One in a hundred is room for a busy machine.
    assert!(normal.refused * 100 <= normal.asked, "{normal:?}");
    // One to have it, one to rest, one to leave; and some that are late on a busy machine.
    assert!(normal.calls <= 4 * normal.asked, "{normal:?}");

    server.signal("-STOP");
    let away = node.ask_for(Duration::from_secs(2)).await;
    server.signal("-CONT");
    println!("{away:?}");
    // The breaker may need half a second to try again, and twice as long if it is unlucky.
    let deadline = Instant::now() + Duration::from_secs(20);
    while !node.is_up() {
        assert!(Instant::now() < deadline);
        let _ = node.ask_for(Duration::from_millis(50)).await;
    }
    let after = node.ask_for(Duration::from_secs(5)).await;
    println!("{after:?}");
    assert!(after.refused * 20 <= after.asked, "{after:?}");
    let per_second = |came: &Came| came.calls as f64 / came.seconds;
    assert!(per_second(&after) <= 2.0 * per_second(&normal), "{after:?}");
    assert!(after.most as f64 <= 3.0 * per_second(&normal), "{after:?}");
}
