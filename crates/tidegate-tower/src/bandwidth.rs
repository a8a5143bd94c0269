//! Bandwidth limits as a layer.

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::sync::Arc;

use http::request::Parts;
use http::{Request, Response};
use pin_project_lite::pin_project;
use tidegate::Timer;
use tower_layer::Layer;
use tower_service::Service;

use crate::pace::Pace;
use crate::paced_body::PacedBody;

/// Which bodies are held back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// What clients are sent.
    #[default]
    Responses,
    /// What clients send.
    Requests,
    /// Either.
    Both,
}

/// Holds bodies back to a bandwidth, of any service that speaks HTTP in bodies of `http-body`.
///
/// A function says who paces the bodies of a request: a [`LimiterPace`](crate::LimiterPace) for a
/// limiter whose permits are bytes, anything else that is a [`Pace`], or `None` to let them pass.
/// It is called once for each body that is held back. Pieces pass smoothly, as they may: with a
/// burst of 50 ms of the rate, twenty times a second. While one waits, nothing is asked of the
/// other side.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use bytes::Bytes;
/// use http::request::Parts;
/// use http_body_util::Full;
/// use tidegate::{KeyedLimiter, Quota, TokioClock, TokioTimer};
/// use tidegate_tower::{BandwidthLayer, Direction, LimiterPace};
/// use tower_layer::Layer;
///
/// // 100 KB/s for each user, in both directions together, in pieces of at most 5 KB.
/// let clock = TokioClock::new();
/// let bytes = Quota::per_second(100_000).burst(5_000);
/// let per_user = Arc::new(KeyedLimiter::builder(bytes).clock(clock.clone()).build()?);
/// let timer = Arc::new(TokioTimer::new(Arc::new(clock)));
/// let layer = BandwidthLayer::new(timer, move |request: &Parts| {
///     let user = request.headers.get("user-id")?.clone();
///     // The first megabyte of each body is free.
///     Some(LimiterPace::keyed(Arc::clone(&per_user), user).after(1_000_000))
/// })
/// .direction(Direction::Both);
///
/// # #[derive(Clone)]
/// # struct Files;
/// # impl<B> tower_service::Service<http::Request<B>> for Files {
/// #     type Response = http::Response<Full<Bytes>>;
/// #     type Error = std::convert::Infallible;
/// #     type Future = std::future::Ready<Result<Self::Response, Self::Error>>;
/// #     fn poll_ready(
/// #         &mut self,
/// #         _: &mut std::task::Context<'_>,
/// #     ) -> std::task::Poll<Result<(), Self::Error>> {
/// #         std::task::Poll::Ready(Ok(()))
/// #     }
/// #     fn call(&mut self, _: http::Request<B>) -> Self::Future {
/// #         std::future::ready(Ok(http::Response::default()))
/// #     }
/// # }
/// let mut files = layer.layer(Files);
/// # let request = http::Request::new(Full::<Bytes>::default());
/// # let _ = tower_service::Service::call(&mut files, request);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct BandwidthLayer<F> {
    pace: F,
    timer: Arc<dyn Timer>,
    direction: Direction,
}

impl<F> BandwidthLayer<F> {
    /// Responses, paced by what `pace` says; waiting on `timer`, which goes with the clock of what
    /// paces.
    pub fn new(timer: Arc<dyn Timer>, pace: F) -> Self {
        let direction = Direction::default();
        Self {
            pace,
            timer,
            direction,
        }
    }

    /// The same for these bodies.
    #[must_use]
    pub fn direction(self, direction: Direction) -> Self {
        Self { direction, ..self }
    }
}

impl<S, F: Clone> Layer<S> for BandwidthLayer<F> {
    type Service = BandwidthService<S, F>;

    fn layer(&self, inner: S) -> BandwidthService<S, F> {
        let layer = self.clone();
        BandwidthService { inner, layer }
    }
}

impl<F> fmt::Debug for BandwidthLayer<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BandwidthLayer")
            .field("direction", &self.direction)
            .finish_non_exhaustive()
    }
}

/// A service whose bodies are held back; see [`BandwidthLayer`].
#[derive(Clone, Debug)]
pub struct BandwidthService<S, F> {
    inner: S,
    layer: BandwidthLayer<F>,
}

impl<S, F, P, B, R> Service<Request<B>> for BandwidthService<S, F>
where
    S: Service<Request<PacedBody<B, P>>, Response = Response<R>>,
    F: Fn(&Parts) -> Option<P>,
    P: Pace,
{
    type Response = Response<PacedBody<R, P>>;
    type Error = S::Error;
    type Future = BandwidthFuture<S::Future, P>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (parts, body) = request.into_parts();
        let BandwidthLayer {
            pace,
            timer,
            direction,
        } = &self.layer;
        let paced = |but: Direction| {
            let pace = (*direction != but).then(|| pace(&parts)).flatten();
            pace.map(|pace| (pace, Arc::clone(timer)))
        };
        let (upload, download) = (paced(Direction::Responses), paced(Direction::Requests));
        let body = wrapped(body, upload);
        BandwidthFuture {
            future: self.inner.call(Request::from_parts(parts, body)),
            download,
        }
    }
}

fn wrapped<B, P: Pace>(body: B, paced: Option<(P, Arc<dyn Timer>)>) -> PacedBody<B, P> {
    match paced {
        Some((pace, timer)) => PacedBody::new(body, pace, timer),
        None => PacedBody::unpaced(body),
    }
}

pin_project! {
    /// The response of [`BandwidthService`].
    pub struct BandwidthFuture<F, P> {
        #[pin]
        future: F,
        download: Option<(P, Arc<dyn Timer>)>,
    }
}

impl<F, P, R, E> Future for BandwidthFuture<F, P>
where
    F: Future<Output = Result<Response<R>, E>>,
    P: Pace,
{
    type Output = Result<Response<PacedBody<R, P>>, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let response = ready!(this.future.poll(context));
        let download = this.download.take();
        Poll::Ready(response.map(|response| response.map(|body| wrapped(body, download))))
    }
}

impl<F, P> fmt::Debug for BandwidthFuture<F, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BandwidthFuture").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
