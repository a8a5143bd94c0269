//! What library users hold, over the endpoint and a real Redis that goes away.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate::Quota;
use tidegate_redis::{Endpoint, EndpointConfig, LEASE, LeaseState, LeasedLimiter};

use crate::server::RedisServer;

const RATE: u64 = 20_000;
const BURST: u64 = 2_000;
/// How long to wait for something that must come.
const DEADLINE: Duration = Duration::from_secs(20);

fn node(server: &RedisServer) -> LeasedLimiter {
    let config = EndpointConfig::single(&server.url()).unwrap();
    let endpoint = Endpoint::start(config, &[&LEASE]).unwrap();
    let quota = Quota::per_second(RATE).burst(BURST);
    let builder = LeasedLimiter::builder("api", quota);
    let (limiter, driver) = builder.build(Arc::new(endpoint)).unwrap();
    tokio::spawn(driver.run());
    limiter
}

fn state(node: &LeasedLimiter) -> Option<LeaseState> {
    node.key_stats("alice").map(|stats| stats.state)
}

/// What passed since the start, and that it is not too much.
struct Passed {
    start: Instant,
    permits: u64,
}

impl Passed {
    /// All nodes ask for more than there is, until something holds.
    async fn ask_until(&mut self, nodes: &[&LeasedLimiter], holds: impl Fn(u64) -> bool) {
        let (deadline, before) = (Instant::now() + DEADLINE, self.permits);
        while !holds(self.permits - before) {
            assert!(Instant::now() < deadline, "{nodes:?}");
            for node in nodes {
                let allowed = |_: &u32| node.check("alice", 1).is_allowed();
                self.permits += (0..50).filter(allowed).count() as u64;
            }
            let millis = self.start.elapsed().as_micros() as u64 / 1000 + 1;
            let most = BURST + RATE * millis / 1000;
            assert!(self.permits <= most, "{} of {most}", self.permits);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

#[tokio::test]
async fn two_nodes_and_a_redis_that_goes_away_and_comes_back() {
    let mut server = RedisServer::start();
    let nodes = [node(&server), node(&server)];
    let nodes: Vec<&LeasedLimiter> = nodes.iter().collect();
    let mut passed = Passed {
        start: Instant::now(),
        permits: 0,
    };
    passed
        .ask_until(&nodes, |permits| permits > 3 * BURST)
        .await;
    let both = |is: LeaseState| nodes.iter().all(|node| state(node) == Some(is));
    assert!(
        nodes
            .iter()
            .all(|node| node.key_stats("alice").unwrap().nodes == 2)
    );

    server.signal("-STOP");
    passed
        .ask_until(&nodes, |_| both(LeaseState::Minting))
        .await;
    // Both mint, and together no more than the rate: that is asserted while they do.
    passed
        .ask_until(&nodes, |permits| permits > BURST / 4)
        .await;
    server.signal("-CONT");
    passed.ask_until(&nodes, |_| both(LeaseState::Leased)).await;
    passed.ask_until(&nodes, |permits| permits > BURST).await;

    // With its memory gone, too, it goes on: at most what was lost is admitted again.
    server.start_again();
    passed.start -= Duration::from_millis(1000 * BURST / RATE);
    passed.ask_until(&nodes, |_| both(LeaseState::Leased)).await;
    passed.ask_until(&nodes, |permits| permits > BURST).await;
    let stats = nodes[0].stats();
    assert!(stats.failed > 0 && stats.calls > stats.failed, "{stats:?}");
}
