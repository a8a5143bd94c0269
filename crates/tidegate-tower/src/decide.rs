//! Who decides whether a request may go ahead.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Request;
use tidegate::Decision;

/// Decides whether a request may go ahead: a limit of yours, or all that a policy says.
pub trait Decide<B> {
    /// What is held until the answer has been sent: places, or nothing (`()`).
    type Hold;
    /// The decision to come. Dropping it gives back what was taken for the request.
    type Deciding: Future<Output = Decided<Self::Hold>>;

    /// Decides on `request`, perhaps after it has waited.
    fn decide(&self, request: &Request<B>) -> Self::Deciding;
}

/// What was decided.
#[derive(Debug)]
pub enum Decided<H> {
    /// It may go ahead.
    Allowed {
        /// To be kept until its answer has been sent.
        hold: H,
        /// What the client is told; `None` where no limit applies.
        told: Option<Told>,
    },
    /// It may not.
    Refused(Told),
}

/// What a client is told: a limit, and what it said.
#[derive(Clone, Debug)]
pub struct Told {
    /// The limit's name.
    pub limit: Cow<'static, str>,
    /// What it said.
    pub decision: Decision,
}

/// A decision that is there at once, or comes.
pub struct Deciding<H>(State<H>);

enum State<H> {
    Now(Option<Decided<H>>),
    Later(Pin<Box<dyn Future<Output = Decided<H>> + Send>>),
}

impl<H> Deciding<H> {
    /// One that is there.
    pub const fn now(decided: Decided<H>) -> Self {
        Self(State::Now(Some(decided)))
    }

    /// One that comes.
    pub fn later(decided: impl Future<Output = Decided<H>> + Send + 'static) -> Self {
        Self(State::Later(Box::pin(decided)))
    }
}

impl<H> fmt::Debug for Deciding<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_now = matches!(self.0, State::Now(_));
        f.debug_struct("Deciding").field("now", &is_now).finish()
    }
}

impl<H: Unpin> Future for Deciding<H> {
    type Output = Decided<H>;

    /// # Panics
    /// When it is polled after it has ended.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Decided<H>> {
        match &mut self.0 {
            State::Now(decided) => Poll::Ready(decided.take().expect("polled after its end")),
            State::Later(decided) => decided.as_mut().poll(context),
        }
    }
}
