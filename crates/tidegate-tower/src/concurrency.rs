//! A number of requests in flight as a decider.

use std::borrow::Cow;
use std::fmt;
use std::future::poll_fn;
use std::hash::Hash;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http::Request;
use tidegate::{
    Acquire, Ask, Clock, ConcurrencyLimiter, Decision, KeyedConcurrencyLimiter, Permit, Timer,
};

use crate::decide::{Decide, Decided, Deciding, Told};
use crate::rate::Together;
use crate::wait::Wait;

/// A limit of requests in flight: a place is held from the decision until the answer's body has
/// been sent, or the client has gone.
///
/// Without a [`max_wait`](Self::max_wait) a request for which there is no place is refused; with
/// one it waits in the limiter's line, and a client that goes away leaves that.
pub struct ConcurrencyLimit<L, K> {
    name: Cow<'static, str>,
    limiter: Arc<L>,
    key: K,
    wait: Option<Wait>,
}

/// Places, which come back when it is dropped; `None` for a request that is not limited.
pub type Places = Option<Permit<'static>>;

impl ConcurrencyLimit<ConcurrencyLimiter, Together> {
    /// One limit for all requests; `name` is what clients are told.
    pub fn new(name: impl Into<Cow<'static, str>>, limiter: Arc<ConcurrencyLimiter>) -> Self {
        Self {
            name: name.into(),
            limiter,
            key: Together,
            wait: None,
        }
    }
}

impl<K> ConcurrencyLimit<KeyedConcurrencyLimiter, K> {
    /// A limit for each key that `key` finds in requests (those in which it finds none are not
    /// limited); `name` is what clients are told.
    pub fn keyed(
        name: impl Into<Cow<'static, str>>,
        limiter: Arc<KeyedConcurrencyLimiter>,
        key: K,
    ) -> Self {
        Self {
            name: name.into(),
            limiter,
            key,
            wait: None,
        }
    }
}

impl<L, K> ConcurrencyLimit<L, K> {
    /// The same, where requests wait in line for up to `longest`, on `clock` and its `timer`.
    #[must_use]
    pub fn max_wait(self, longest: Duration, clock: Arc<dyn Clock>, timer: Arc<dyn Timer>) -> Self {
        let wait = Some(Wait {
            longest,
            clock,
            timer,
        });
        Self { wait, ..self }
    }

    fn follow(
        &self,
        (decision, permit): (Decision, Option<Permit<'_>>),
        in_line: impl FnOnce() -> Acquire<'static>,
    ) -> Deciding<Places> {
        let name = self.name.clone();
        let permit = permit.map(Permit::into_owned);
        match &self.wait {
            Some(wait) if permit.is_none() => {
                let in_line = in_line();
                let too_late = wait.sleep(wait.longest);
                Deciding::later(async move {
                    let (mut in_line, mut too_late) = (pin!(in_line), too_late);
                    let answer = poll_fn(|context| match in_line.as_mut().poll(context) {
                        Poll::Ready(answer) => Poll::Ready(answer),
                        Poll::Pending => too_late.as_mut().poll(context).map(|()| (decision, None)),
                    });
                    let (decision, permit) = answer.await;
                    decided(name, decision, permit)
                })
            }
            _ => Deciding::now(decided(name, decision, permit)),
        }
    }
}

fn decided(
    limit: Cow<'static, str>,
    decision: Decision,
    permit: Option<Permit<'static>>,
) -> Decided<Places> {
    let told = Told { limit, decision };
    match permit {
        None => Decided::Refused(told),
        hold => Decided::Allowed {
            hold,
            told: Some(told),
        },
    }
}

impl<B> Decide<B> for ConcurrencyLimit<ConcurrencyLimiter, Together> {
    type Hold = Places;
    type Deciding = Deciding<Places>;

    fn decide(&self, _: &Request<B>) -> Deciding<Places> {
        let answer = self.limiter.try_acquire(Ask::ONE);
        self.follow(answer, || self.limiter.acquire_owned(Ask::ONE))
    }
}

impl<B, F, K> Decide<B> for ConcurrencyLimit<KeyedConcurrencyLimiter, F>
where
    F: Fn(&Request<B>) -> Option<K>,
    K: Hash,
{
    type Hold = Places;
    type Deciding = Deciding<Places>;

    fn decide(&self, request: &Request<B>) -> Deciding<Places> {
        let Some(key) = (self.key)(request) else {
            return Deciding::now(Decided::Allowed {
                hold: None,
                told: None,
            });
        };
        let answer = self.limiter.try_acquire(&key, Ask::ONE);
        self.follow(answer, || self.limiter.acquire_owned(&key, Ask::ONE))
    }
}

impl<L, K: Clone> Clone for ConcurrencyLimit<L, K> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            limiter: Arc::clone(&self.limiter),
            key: self.key.clone(),
            wait: self.wait.clone(),
        }
    }
}

impl<L, K> fmt::Debug for ConcurrencyLimit<L, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConcurrencyLimit")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
