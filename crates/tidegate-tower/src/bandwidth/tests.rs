//! The layer around a service that sends back what it gets, on tokio's paused time.

use core::convert::Infallible;
use core::time::Duration;

use bytes::Bytes;
use http_body::Body;
use http_body_util::{BodyExt, Full};
use tidegate::{KeyedLimiter, Quota, TokioClock, TokioTimer};
use tokio::time::Instant;

use super::*;
use crate::pace::{LimiterPace, OfKey};

/// Sends back what it gets, when it has got all of it.
#[derive(Clone)]
struct Echo;

impl<B> Service<Request<B>> for Echo
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: core::fmt::Debug,
{
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        Box::pin(async move {
            let body = request.into_body().collect().await.unwrap();
            Ok(Response::new(Full::new(body.to_bytes())))
        })
    }
}

type UserPace = LimiterPace<OfKey<http::HeaderValue, TokioClock>>;

/// 100 KB/s for each user.
fn layer(direction: Direction) -> BandwidthLayer<impl Fn(&Parts) -> Option<UserPace> + Clone> {
    let clock = TokioClock::new();
    let bytes = Quota::per_second(100_000).burst(5_000);
    let limiter = KeyedLimiter::builder(bytes).clock(clock).build();
    let limiter = Arc::new(limiter.unwrap());
    let timer = Arc::new(TokioTimer::new(Arc::new(clock)));
    BandwidthLayer::new(timer, move |request: &Parts| {
        let user = request.headers.get("user")?.clone();
        Some(LimiterPace::keyed(Arc::clone(&limiter), user))
    })
    .direction(direction)
}

/// How long it takes `user` to send so much and get it back.
async fn there_and_back(
    service: &mut BandwidthService<Echo, impl Fn(&Parts) -> Option<UserPace>>,
    user: Option<&str>,
    bytes: usize,
) -> Duration {
    let start = Instant::now();
    let mut request = Request::new(Full::new(Bytes::from(vec![b'x'; bytes])));
    if let Some(user) = user {
        request.headers_mut().insert("user", user.parse().unwrap());
    }
    let response = service.call(request).await.unwrap();
    let body = response.into_body().collect().await.unwrap();
    assert_eq!(body.to_bytes().len(), bytes);
    start.elapsed()
}

#[track_caller]
fn is_about(took: Duration, millis: u64) {
    // tokio's timer ticks in milliseconds.
    let over = took.checked_sub(Duration::from_millis(millis));
    assert!(
        over.is_some_and(|over| over <= Duration::from_millis(3)),
        "{took:?} in place of {millis} ms"
    );
}

// shows: A3 (layer)
#[tokio::test(start_paused = true)]
async fn a_service_of_ones_own_has_a_bandwidth_for_each_user() {
    for (direction, counted) in [
        (Direction::Responses, 100_000),
        (Direction::Requests, 100_000),
        (Direction::Both, 200_000),
    ] {
        let mut service = layer(direction).layer(Echo);
        let due = (counted - 5_000) / 100;
        let ann = there_and_back(&mut service, Some("ann"), 100_000).await;
        is_about(ann, due);
        let (mut for_ben, mut for_cid) = (service.clone(), service.clone());
        let (ben, cid) = tokio::join!(
            there_and_back(&mut for_ben, Some("ben"), 100_000),
            there_and_back(&mut for_cid, Some("cid"), 100_000),
        );
        is_about(ben, due);
        is_about(cid, due);
        // Who has no key here is not held back.
        is_about(there_and_back(&mut service, None, 100_000).await, 0);
    }
}

#[test]
fn futures_and_bodies_are_send() {
    fn is_send<T: Send>(_: &T) {}
    let mut service = layer(Direction::Both).layer(Echo);
    is_send(&service);
    is_send(&service.call(Request::new(Full::<Bytes>::default())));
}
