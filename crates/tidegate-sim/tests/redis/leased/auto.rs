//! A limit whose keys are leased when that is worth it, over the endpoint and a real Redis.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate::Quota;
use tidegate_redis::{AutoLimiter, Endpoint, EndpointConfig, LEASE, Scheme};

use crate::server::RedisServer;

const RATE: u64 = 2_000;
const BURST: u64 = 1_000;
const DEADLINE: Duration = Duration::from_secs(20);

fn node(server: &RedisServer) -> (AutoLimiter, Arc<Endpoint>) {
    let config = EndpointConfig::single(&server.url()).unwrap();
    let endpoint = Arc::new(Endpoint::start(config, &[&LEASE]).unwrap());
    let quota = Quota::per_second(RATE).burst(BURST);
    let scheme = Scheme::Strict;
    let (limiter, driver) = AutoLimiter::new("api", quota, scheme, endpoint.clone()).unwrap();
    tokio::spawn(driver.run());
    (limiter, endpoint)
}

async fn until_it_answers(limiter: &AutoLimiter) {
    let deadline = Instant::now() + DEADLINE;
    while limiter.check("first", 1).await.is_err() {
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn calls(endpoint: &Endpoint) -> u64 {
    endpoint.health().counts.calls
}

// shows: C2
#[tokio::test]
async fn a_key_is_leased_while_it_is_hot_and_asked_for_in_redis_while_it_is_not() {
    let server = RedisServer::start();
    let (limiter, endpoint) = node(&server);
    until_it_answers(&limiter).await;

    // A few requests: each asks Redis, and is answered as one bucket would.
    let before = calls(&endpoint);
    for taken in 1..=5 {
        let decision = limiter.check("cold", 1).await.unwrap();
        assert!(decision.is_allowed());
        assert!(decision.remaining >= BURST - taken, "{decision:?}");
    }
    assert_eq!(calls(&endpoint) - before, 5);
    let never = limiter.check("cold", BURST + 1).await.unwrap();
    assert!(never.is_denied() && never.retry_after().is_none());

    // Many: after a while hardly any does, and no more passes than burst and rate.
    let (start, mut passed) = (Instant::now(), 0);
    let deadline = start + DEADLINE;
    loop {
        let before = calls(&endpoint);
        for _ in 0..200 {
            passed += u64::from(
                limiter
                    .check("hot", 1)
                    .await
                    .is_ok_and(|is| is.is_allowed()),
            );
        }
        let millis = start.elapsed().as_micros() as u64 / 1_000 + 1;
        assert!(
            passed <= BURST + RATE * millis / 1_000,
            "{passed} in {millis} ms"
        );
        if calls(&endpoint) - before < 20 {
            break;
        }
        assert!(Instant::now() < deadline, "it is never leased");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // A node that asks in Redis counts on the same bucket.
    let (other, _its_endpoint) = node(&server);
    until_it_answers(&other).await;
    let decision = other.check("hot", 1).await.unwrap();
    assert!(decision.remaining < BURST, "{decision:?}");
}

#[tokio::test]
async fn without_redis_a_cold_key_has_no_answer() {
    let mut server = RedisServer::start();
    let (limiter, _endpoint) = node(&server);
    until_it_answers(&limiter).await;
    server.kill();
    assert!(limiter.check("cold", 1).await.is_err());
}
