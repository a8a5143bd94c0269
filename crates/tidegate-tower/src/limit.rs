//! The layer: decides, and passes on or refuses.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{HeaderMap, Request, Response, StatusCode, Uri};
use pin_project_lite::pin_project;
use tidegate::{Clock, ConcurrencyLimiter, Permit, Timer};
use tidegate_http::headers;
use tower_layer::Layer;
use tower_service::Service;

use crate::answer::{Answer, Refused};
use crate::body::LimitBody;
use crate::decide::{Decide, Decided, Told};

/// Lets requests through that `D` allows, and answers the others.
///
/// Answers say what the limit says, in `RateLimit` and, where a request was refused, in
/// `Retry-After`; a refusal is 429 with a problem in JSON unless it is
/// [said otherwise](Self::on_limit). What a request holds (a place under a concurrency limit) is
/// held until the body of its answer has been sent.
///
/// ```
/// use std::convert::Infallible;
/// use std::sync::Arc;
///
/// use bytes::Bytes;
/// use http::{Request, Response};
/// use http_body_util::Full;
/// use tidegate::{KeyedLimiter, Quota};
/// use tidegate_tower::{LimitLayer, RateLimit};
/// use tower::{ServiceBuilder, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Arc::new(KeyedLimiter::builder(Quota::per_minute(1)).build()?);
/// let per_user = RateLimit::keyed("per-user", limiter, |request: &Request<Full<Bytes>>| {
///     request.headers().get("user-id").cloned()
/// });
/// let hello = service_fn(async |_: Request<Full<Bytes>>| {
///     Ok::<_, Infallible>(Response::new(Full::<Bytes>::from("hello")))
/// });
/// let service = ServiceBuilder::new().layer(LimitLayer::new(per_user)).service(hello);
///
/// let mut statuses = Vec::new();
/// for user in ["ann", "ann", "ben"] {
///     let request = Request::get("/").header("user-id", user).body(Full::default())?;
///     statuses.push(service.clone().oneshot(request).await?.status().as_u16());
/// }
/// assert_eq!(statuses, [200, 429, 200]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct LimitLayer<D> {
    decider: D,
    refusing: Arc<Refusing>,
}

/// How requests are refused.
#[derive(Clone, Debug)]
struct Refusing {
    answer: Answer,
    tarpit: Option<Tarpit>,
}

#[derive(Clone, Debug)]
struct Tarpit {
    delay: Duration,
    places: Arc<ConcurrencyLimiter>,
    clock: Arc<dyn Clock>,
    timer: Arc<dyn Timer>,
}

impl<D> LimitLayer<D> {
    /// A layer that asks `decider`.
    pub fn new(decider: D) -> Self {
        let answer = Answer::new(StatusCode::TOO_MANY_REQUESTS);
        Self {
            decider,
            refusing: Arc::new(Refusing {
                answer,
                tarpit: None,
            }),
        }
    }

    /// The same, where refused requests are answered like this.
    #[must_use]
    pub fn on_limit(mut self, answer: Answer) -> Self {
        Arc::make_mut(&mut self.refusing).answer = answer;
        self
    }

    /// The same, where refused requests are kept waiting for `delay` before they are answered: as
    /// many at once as there are `places`, and no more. It waits on `clock` and its `timer`.
    #[must_use]
    pub fn tarpit(
        mut self,
        delay: Duration,
        places: Arc<ConcurrencyLimiter>,
        clock: Arc<dyn Clock>,
        timer: Arc<dyn Timer>,
    ) -> Self {
        Arc::make_mut(&mut self.refusing).tarpit = Some(Tarpit {
            delay,
            places,
            clock,
            timer,
        });
        self
    }
}

impl<S, D: Clone> Layer<S> for LimitLayer<D> {
    type Service = LimitService<S, D>;

    fn layer(&self, inner: S) -> Self::Service {
        LimitService {
            inner,
            decider: self.decider.clone(),
            refusing: Arc::clone(&self.refusing),
        }
    }
}

/// A service behind a [`LimitLayer`].
#[derive(Clone, Debug)]
pub struct LimitService<S, D> {
    inner: S,
    decider: D,
    refusing: Arc<Refusing>,
}

impl<S, D, B, R> Service<Request<B>> for LimitService<S, D>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
    D: Decide<B>,
{
    type Response = Response<LimitBody<R, D::Hold>>;
    type Error = S::Error;
    type Future = LimitFuture<S, D::Deciding, Request<B>, D::Hold>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The one that has said that it is ready is the one that is called.
        let next = self.inner.clone();
        let ready = std::mem::replace(&mut self.inner, next);
        LimitFuture {
            step: Step::Decides {
                deciding: self.decider.decide(&request),
                request: Some((ready, request)),
            },
            refusing: Arc::clone(&self.refusing),
            allowed: None,
        }
    }
}

pin_project! {
    /// The answer to come of a [`LimitService`]. Dropping it gives back what was taken.
    pub struct LimitFuture<S, D, Q, H>
    where
        S: Service<Q>,
    {
        #[pin]
        step: Step<S, D, Q>,
        refusing: Arc<Refusing>,
        allowed: Option<(H, Option<Told>)>,
    }
}

pin_project! {
    #[project = StepProjection]
    enum Step<S, D, Q>
    where
        S: Service<Q>,
    {
        Decides { #[pin] deciding: D, request: Option<(S, Q)> },
        Waits { wait: Kept, response: Option<Response<Bytes>> },
        Calls { #[pin] called: S::Future },
    }
}

/// A refused request that is kept waiting.
struct Kept {
    _place: Permit<'static>,
    sleep: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl<S, D, B, R, H> Future for LimitFuture<S, D, Request<B>, H>
where
    S: Service<Request<B>, Response = Response<R>>,
    D: Future<Output = Decided<H>>,
{
    type Output = Result<Response<LimitBody<R, H>>, S::Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let mut this = self.as_mut().project();
            match this.step.as_mut().project() {
                StepProjection::Decides { deciding, request } => {
                    let decided = ready!(deciding.poll(context));
                    let (mut service, request) = request.take().expect("polled after its end");
                    match decided {
                        Decided::Allowed { hold, told } => {
                            *this.allowed = Some((hold, told));
                            let called = service.call(request);
                            this.step.set(Step::Calls { called });
                        }
                        Decided::Refused(told) => {
                            let response =
                                this.refusing
                                    .response(request.headers(), request.uri(), &told);
                            match this.refusing.keep() {
                                None => return Poll::Ready(Ok(response.map(LimitBody::own))),
                                Some(wait) => this.step.set(Step::Waits {
                                    wait,
                                    response: Some(response),
                                }),
                            }
                        }
                    }
                }
                StepProjection::Waits { wait, response } => {
                    ready!(wait.sleep.as_mut().poll(context));
                    let response = response.take().expect("polled after its end");
                    return Poll::Ready(Ok(response.map(LimitBody::own)));
                }
                StepProjection::Calls { called } => {
                    let answer = ready!(called.poll(context));
                    let (hold, told) = this.allowed.take().expect("polled after its end");
                    return Poll::Ready(answer.map(|mut response| {
                        if let Some(told) = &told {
                            say(told, response.headers_mut());
                        }
                        response.map(|body| LimitBody::held(body, hold))
                    }));
                }
            }
        }
    }
}

impl Refusing {
    fn response(&self, request: &HeaderMap, target: &Uri, told: &Told) -> Response<Bytes> {
        let refused = Refused {
            limit: &told.limit,
            decision: &told.decision,
        };
        let mut response = self.answer.response(request, target, refused);
        say(told, response.headers_mut());
        if let Some(seconds) = headers::retry_after(&told.decision) {
            response.headers_mut().entry(RETRY_AFTER).or_insert(seconds);
        }
        response
    }

    /// Keeps a refused request waiting, where that is wanted and there is room.
    fn keep(&self) -> Option<Kept> {
        let tarpit = self.tarpit.as_ref()?;
        let (_, place) = tarpit.places.try_acquire(1);
        let until = tarpit.clock.now().after(tarpit.delay);
        Some(Kept {
            _place: place?.into_owned(),
            sleep: tarpit.timer.sleep_until(until),
        })
    }
}

/// `RateLimit` is a list: what the service itself says stays.
fn say(told: &Told, headers: &mut HeaderMap) {
    headers.append(
        headers::RATE_LIMIT,
        headers::rate_limit(&told.limit, &told.decision),
    );
}
