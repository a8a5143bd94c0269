//! The layers around a service, as their users have them.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod access;
mod concurrency;
mod rate;

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use tidegate::{Clock, Timer, TokioClock, TokioTimer};
use tower::{Service, ServiceExt, service_fn};

/// A service that says hello.
fn hello()
-> impl Service<Request<()>, Response = Response<Full<Bytes>>, Error = Infallible, Future: Send>
+ Clone
+ Send {
    service_fn(async |_: Request<()>| Ok(Response::new(Full::from("hello"))))
}

/// A clock that tokio can hold still, and its timer.
fn time() -> (TokioClock, Arc<dyn Clock>, Arc<dyn Timer>) {
    let clock = TokioClock::new();
    let shared: Arc<dyn Clock> = Arc::new(clock);
    let timer = Arc::new(TokioTimer::new(Arc::clone(&shared)));
    (clock, shared, timer)
}

/// What `service` answers, once its body is there.
async fn ask<S, B>(service: &S, request: Request<()>) -> Response<Bytes>
where
    S: Service<Request<()>, Response = Response<B>, Error = Infallible> + Clone,
    B: http_body::Body<Data = Bytes, Error = Infallible>,
{
    let response = service.clone().oneshot(request).await.unwrap();
    let (head, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Response::from_parts(head, body)
}

fn get(path: &str) -> Request<()> {
    Request::get(path).body(()).unwrap()
}
