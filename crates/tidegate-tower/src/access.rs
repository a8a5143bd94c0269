//! Who may come in.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use pin_project_lite::pin_project;
use tidegate_http::{PROBLEM_JSON, Problem};
use tower_layer::Layer;
use tower_service::Service;

use crate::body::LimitBody;

/// Lets requests in that `F` says may come in, and answers the others with 403 and a problem in
/// JSON.
///
/// ```
/// use std::net::SocketAddr;
///
/// use http::Request;
/// use tidegate_http::TrustedProxies as Networks;
/// use tidegate_tower::AccessLayer;
///
/// let office = Networks::new(["192.0.2.0/24".parse()?]);
/// let only_from_the_office = AccessLayer::new(move |request: &Request<()>| {
///     let peer = request.extensions().get::<SocketAddr>();
///     peer.is_some_and(|peer| office.contains(peer.ip()))
/// });
/// # let _ = only_from_the_office;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct AccessLayer<F> {
    may_come_in: F,
}

impl<F> AccessLayer<F> {
    /// A layer that asks `may_come_in`, a `Fn(&Request<B>) -> bool`.
    pub const fn new(may_come_in: F) -> Self {
        Self { may_come_in }
    }
}

impl<S, F: Clone> Layer<S> for AccessLayer<F> {
    type Service = AccessService<S, F>;

    fn layer(&self, inner: S) -> Self::Service {
        AccessService {
            inner,
            may_come_in: self.may_come_in.clone(),
        }
    }
}

/// A service behind an [`AccessLayer`].
#[derive(Clone, Copy, Debug)]
pub struct AccessService<S, F> {
    inner: S,
    may_come_in: F,
}

impl<S, F, B, R> Service<Request<B>> for AccessService<S, F>
where
    S: Service<Request<B>, Response = Response<R>>,
    F: Fn(&Request<B>) -> bool,
{
    type Response = Response<LimitBody<R, ()>>;
    type Error = S::Error;
    type Future = AccessFuture<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let may_come_in = (self.may_come_in)(&request);
        let called = may_come_in.then(|| self.inner.call(request));
        AccessFuture { called }
    }
}

pin_project! {
    /// The answer to come of an [`AccessService`].
    #[derive(Debug)]
    pub struct AccessFuture<F> {
        #[pin]
        called: Option<F>,
    }
}

impl<F, R, E> Future for AccessFuture<F>
where
    F: Future<Output = Result<Response<R>, E>>,
{
    type Output = Result<Response<LimitBody<R, ()>>, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().called.as_pin_mut() {
            None => Poll::Ready(Ok(forbidden().map(LimitBody::own))),
            Some(called) => called
                .poll(context)
                .map_ok(|response| response.map(|body| LimitBody::held(body, ()))),
        }
    }
}

fn forbidden() -> Response<Bytes> {
    let problem = Problem::of(StatusCode::FORBIDDEN);
    let mut response = Response::new(Bytes::from(problem.to_json()));
    *response.status_mut() = problem.status();
    let content_type = HeaderValue::from_static(PROBLEM_JSON);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}
