//! Nodes that define a limit differently, on a real Redis: one definition holds for all.

mod library;
mod nodes;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate::Quota;
use tidegate_redis::exact::EXACT;
use tidegate_redis::{DEFINE, Endpoint, EndpointConfig, LEASE, MEMBERS, State};

use crate::server::RedisServer;

/// How long a test waits for what has to happen.
const DEADLINE: Duration = Duration::from_secs(30);

/// A connection of its own, as another process would have.
async fn endpoint(server: &RedisServer) -> Arc<Endpoint> {
    let config = EndpointConfig::single(&server.url()).unwrap();
    let scripts = [&EXACT, &LEASE, &MEMBERS, &DEFINE];
    let endpoint = Arc::new(Endpoint::start(config, &scripts).unwrap());
    until("Redis is reached", || endpoint.health().state == State::Up).await;
    endpoint
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !is_so() {
        assert!(Instant::now() < deadline, "not seen in time: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// So many an hour: hardly any comes back while a test runs.
fn hourly(permits: u64) -> Quota {
    Quota::per_hour(permits)
}
