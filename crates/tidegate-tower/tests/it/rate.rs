//! Rates as layers.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http::header::{LOCATION, RETRY_AFTER};
use http::{HeaderValue, Request, StatusCode};
use tidegate::{ConcurrencyLimiter, KeyedLimiter, Limiter, Quota};
use tidegate_tower::{Answer, LimitLayer, RateLimit};
use tokio::time::Instant;
use tower::{ServiceBuilder, ServiceExt};

use crate::{ask, get, hello, time};

fn one_a_second() -> Quota {
    Quota::per_second(1)
}

// shows: A8 (reject and redirect), B10
#[tokio::test(start_paused = true)]
async fn who_is_over_the_limit_is_answered_as_is_said() {
    let (clock, ..) = time();
    let limiter = Arc::new(Limiter::with_clock(one_a_second(), clock).unwrap());
    let limit = RateLimit::new("all", limiter);
    let plain = ServiceBuilder::new()
        .layer(LimitLayer::new(limit.clone()))
        .service(hello());
    let allowed = ask(&plain, get("/")).await;
    assert_eq!(allowed.body(), "hello");
    assert_eq!(allowed.headers()["ratelimit"], r#""all";r=0;t=1"#);
    let refused = ask(&plain, get("/")).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()[RETRY_AFTER], "1");
    assert_eq!(refused.headers()["ratelimit"], r#""all";r=0;t=1"#);

    let to_page = Answer::redirect(StatusCode::FOUND, "/busy?from={uri}")
        .header(RETRY_AFTER, HeaderValue::from_static("9"));
    let redirecting = ServiceBuilder::new()
        .layer(LimitLayer::new(limit).on_limit(to_page))
        .service(hello());
    let refused = ask(&redirecting, get("/a b".replace(' ', "+").as_str())).await;
    assert_eq!(refused.status(), 302);
    assert_eq!(refused.headers()[LOCATION], "/busy?from=%2Fa%2Bb");
    assert_eq!(refused.headers()[RETRY_AFTER], "9");
}

// shows: A8 (queue), B10
#[tokio::test(start_paused = true)]
async fn who_may_wait_goes_on_in_turn_and_who_gives_up_gives_back() {
    let (clock, shared, timer) = time();
    let limiter = KeyedLimiter::builder(one_a_second()).clock(clock).build();
    let by_path = |request: &Request<()>| Some(request.uri().path().to_owned());
    let limit = RateLimit::keyed("per-path", Arc::new(limiter.unwrap()), by_path).max_wait(
        Duration::from_secs(2),
        shared,
        timer,
    );
    let service = ServiceBuilder::new()
        .layer(LimitLayer::new(limit))
        .service(hello());
    let start = Instant::now();
    assert_eq!(ask(&service, get("/a")).await.status(), 200);
    assert_eq!(ask(&service, get("/b")).await.status(), 200);
    assert_eq!(start.elapsed(), Duration::ZERO);

    let mut gives_up = Box::pin(service.clone().oneshot(get("/a")));
    let look = poll_fn(|context| Poll::Ready(gives_up.as_mut().poll(context).is_pending()));
    assert!(look.await, "it waits for its turn");
    let behind = tokio::spawn(service.clone().oneshot(get("/a")));
    tokio::task::yield_now().await;
    let third = service.clone().oneshot(get("/a")).await.unwrap();
    assert_eq!(third.status(), 429, "two seconds are taken");
    drop(gives_up);
    let next = service.clone().oneshot(get("/a")).await.unwrap();
    assert_eq!(next.status(), 200);
    assert!(start.elapsed() <= Duration::from_secs(2));
    assert_eq!(behind.await.unwrap().unwrap().status(), 200);
    // What has been waited for stays paid for.
    let start = Instant::now();
    assert_eq!(ask(&service, get("/a")).await.status(), 200);
    assert_eq!(start.elapsed(), Duration::from_secs(1));
}

// shows: A8 (tarpit)
#[tokio::test(start_paused = true)]
async fn a_tarpit_keeps_so_many_waiting_and_no_more() {
    let (clock, shared, timer) = time();
    let limiter = Arc::new(Limiter::with_clock(Quota::per_hour(1), clock).unwrap());
    let places = Arc::new(ConcurrencyLimiter::new(1).unwrap());
    let delay = Duration::from_secs(5);
    let layer = LimitLayer::new(RateLimit::new("all", limiter));
    let layer = layer.tarpit(delay, Arc::clone(&places), shared, timer);
    let service = ServiceBuilder::new().layer(layer).service(hello());
    let start = Instant::now();
    assert_eq!(ask(&service, get("/")).await.status(), 200);
    let kept = tokio::spawn(service.clone().oneshot(get("/")));
    tokio::task::yield_now().await;
    assert_eq!(ask(&service, get("/")).await.status(), 429, "it is full");
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(kept.await.unwrap().unwrap().status(), 429);
    assert_eq!(start.elapsed(), delay);
    assert_eq!(places.in_use(), 0);
}
