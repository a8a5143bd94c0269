//! Limits of requests in flight as layers.

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use http_body_util::BodyExt;
use tidegate::{ConcurrencyLimiter, KeyedConcurrencyLimiter};
use tidegate_tower::{ConcurrencyLimit, LimitLayer};
use tokio::time::Instant;
use tower::{ServiceBuilder, ServiceExt};

use crate::{ask, get, hello, time};

// shows: A2
#[tokio::test]
async fn a_place_is_held_until_the_body_has_ended() {
    let limiter = Arc::new(ConcurrencyLimiter::new(1).unwrap());
    let limit = ConcurrencyLimit::new("slots", Arc::clone(&limiter));
    let service = ServiceBuilder::new()
        .layer(LimitLayer::new(limit))
        .service(hello());
    let response = service.clone().oneshot(get("/")).await.unwrap();
    assert_eq!(limiter.in_use(), 1, "the body has not been sent");
    assert_eq!(ask(&service, get("/")).await.status(), 429);
    assert_eq!(
        response.into_body().collect().await.unwrap().to_bytes(),
        "hello"
    );
    assert_eq!(limiter.in_use(), 0);
    let response = service.clone().oneshot(get("/")).await.unwrap();
    drop(response);
    assert_eq!(limiter.in_use(), 0, "the client has gone");
}

// shows: A2 (bounded waiting), A8 (queue)
#[tokio::test(start_paused = true)]
async fn who_waits_gets_the_place_of_its_key_or_gives_up_in_time() {
    let limiter = Arc::new(KeyedConcurrencyLimiter::new(1, 100).unwrap());
    let (_, clock, timer) = time();
    let by_path = |request: &Request<()>| Some(request.uri().path().to_owned());
    let limit = ConcurrencyLimit::keyed("slots", Arc::clone(&limiter), by_path);
    let layer = LimitLayer::new(limit.max_wait(Duration::from_secs(3), clock, timer));
    let service = ServiceBuilder::new().layer(layer).service(hello());
    let inside = service.clone().oneshot(get("/a")).await.unwrap();
    assert_eq!(ask(&service, get("/b")).await.status(), 200);
    let start = Instant::now();
    assert_eq!(ask(&service, get("/a")).await.status(), 429);
    assert_eq!(start.elapsed(), Duration::from_secs(3));

    let waits = tokio::spawn(service.clone().oneshot(get("/a")));
    tokio::task::yield_now().await;
    drop(inside);
    assert_eq!(waits.await.unwrap().unwrap().status(), 200);
    assert_eq!(limiter.in_use("/a"), 0);
}
