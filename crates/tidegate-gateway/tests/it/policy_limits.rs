//! The limits of a policy around a service that is no gateway.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use tidegate::{Clock, Timer, TokioClock, TokioTimer};
use tidegate_gateway::PolicyLimits;
use tidegate_node::Node;
use tidegate_tower::LimitLayer;
use tokio::time::Instant;
use tower::{Layer, ServiceExt, service_fn};

use crate::gateway::parse;

const POLICY: &str = "
limits:
  per-client: { rate: 1/h, key: [client_ip] }
  slots: { concurrency: 1, on_limit: { queue: { max_wait: 5s } } }
  paced: { rate: 1/s, burst: 1, on_limit: { queue: { max_wait: 5s } } }
upstreams: { none: { builtin: echo } }
gateway:
  trusted_proxies: [10.0.0.0/8]
  routes:
    - { id: once, match: { path: /once }, upstream: none, limits: per-client }
    - { id: slot, match: { path: /slot }, upstream: none, limits: slots }
    - { id: paced, match: { path: /paced }, upstream: none, limits: paced }
";

fn request(path: &str, forwarded: &str) -> Request<()> {
    let request = Request::get(path).header("x-forwarded-for", forwarded);
    request.body(()).unwrap()
}

// shows: A2, A5, A8 (queue)
#[tokio::test(start_paused = true)]
async fn the_route_of_a_request_says_what_it_is_held_to() {
    let clock: Arc<dyn Clock> = Arc::new(TokioClock::new());
    let timer: Arc<dyn Timer> = Arc::new(TokioTimer::new(Arc::clone(&clock)));
    let node = Node::new(parse(POLICY), clock).unwrap();
    let peer = |_: &Request<()>| Some(IpAddr::from([10, 0, 0, 1]));
    let layer = LimitLayer::new(PolicyLimits::new(node, timer, peer));
    let hello = service_fn(async |_: Request<()>| {
        Ok::<_, Infallible>(Response::new(Full::<Bytes>::from("hello")))
    });
    let service = layer.layer(hello);
    let ask = async |path, from| service.clone().oneshot(request(path, from)).await.unwrap();

    assert_eq!(ask("/once", "192.0.2.1").await.status(), 200);
    assert_eq!(ask("/once", "192.0.2.2").await.status(), 200);
    let refused = ask("/once", "192.0.2.1").await;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["retry-after"], "3600");
    let free = ask("/elsewhere", "192.0.2.1").await;
    assert_eq!(
        (free.status(), free.headers().get("ratelimit")),
        (200.try_into().unwrap(), None)
    );

    let inside = ask("/slot", "-").await;
    let waits = tokio::spawn(service.clone().oneshot(request("/slot", "-")));
    tokio::task::yield_now().await;
    assert!(!waits.is_finished(), "there is one place");
    assert_eq!(
        inside.into_body().collect().await.unwrap().to_bytes(),
        "hello"
    );
    assert_eq!(waits.await.unwrap().unwrap().status(), 200);

    let start = Instant::now();
    for _ in 0..3 {
        assert_eq!(ask("/paced", "-").await.status(), 200);
    }
    assert_eq!(start.elapsed(), Duration::from_secs(2));
}
