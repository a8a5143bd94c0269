//! A rate as a decider.

use std::borrow::Cow;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use tidegate::{Ask, Clock, Decision, KeyedLimiter, Limiter, Receipt, Timer};

use crate::decide::{Decide, Decided, Deciding, Told};
use crate::wait::Wait;

/// A rate limit: `K` says by which key a request is counted.
///
/// One whose `key` says `None` is not limited. Without a [`max_wait`](Self::max_wait) a request
/// that is over the limit is refused; with one it waits for its turn, and a client that gives up
/// gives back what was taken for it.
pub struct RateLimit<L, K> {
    name: Cow<'static, str>,
    limiter: Arc<L>,
    key: K,
    wait: Option<Wait>,
}

/// All requests are counted as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Together;

impl<C: Clock> RateLimit<Limiter<C>, Together> {
    /// One limit for all requests; `name` is what clients are told.
    pub fn new(name: impl Into<Cow<'static, str>>, limiter: Arc<Limiter<C>>) -> Self {
        Self {
            name: name.into(),
            limiter,
            key: Together,
            wait: None,
        }
    }
}

impl<C: Clock, K> RateLimit<KeyedLimiter<C>, K> {
    /// A limit for each key that `key` finds in requests; `name` is what clients are told.
    pub fn keyed(
        name: impl Into<Cow<'static, str>>,
        limiter: Arc<KeyedLimiter<C>>,
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

impl<L, K> RateLimit<L, K> {
    /// The same, where requests wait for their turn for up to `longest` on `timer`, which goes with
    /// the limiter's clock, `clock`.
    #[must_use]
    pub fn max_wait(self, longest: Duration, clock: Arc<dyn Clock>, timer: Arc<dyn Timer>) -> Self {
        let wait = Some(Wait {
            longest,
            clock,
            timer,
        });
        Self { wait, ..self }
    }

    fn ask(&self) -> Ask {
        let wait = self.wait.as_ref().map(|wait| wait.longest);
        Ask::ONE.within(wait.unwrap_or_default())
    }

    /// What follows from an answer: `give_back` undoes it, if the client does not wait.
    fn follow(
        &self,
        (decision, receipt): (Decision, Option<Receipt>),
        give_back: impl FnOnce(Receipt) + Send + 'static,
    ) -> Deciding<()> {
        let told = Told {
            limit: self.name.clone(),
            decision,
        };
        if decision.is_denied() {
            return Deciding::now(Decided::Refused(told));
        }
        let allowed = Decided::Allowed {
            hold: (),
            told: Some(told),
        };
        let delay = decision.delay();
        let Some(wait) = self.wait.as_ref().filter(|_| !delay.is_zero()) else {
            return Deciding::now(allowed);
        };
        let sleep = wait.sleep(delay);
        let reserved = Reserved(receipt.map(|receipt| (receipt, give_back)));
        Deciding::later(async move {
            sleep.await;
            reserved.keep();
            allowed
        })
    }
}

/// Permits that somebody waits for: given back if the wait is given up.
struct Reserved<F: FnOnce(Receipt)>(Option<(Receipt, F)>);

impl<F: FnOnce(Receipt)> Reserved<F> {
    /// The wait is over.
    fn keep(mut self) {
        self.0 = None;
    }
}

impl<F: FnOnce(Receipt)> Drop for Reserved<F> {
    fn drop(&mut self) {
        if let Some((receipt, give_back)) = self.0.take() {
            give_back(receipt);
        }
    }
}

impl<B, C: Clock + 'static> Decide<B> for RateLimit<Limiter<C>, Together> {
    type Hold = ();
    type Deciding = Deciding<()>;

    fn decide(&self, _: &Request<B>) -> Deciding<()> {
        let answer = self.limiter.reserve(self.ask());
        let limiter = Arc::clone(&self.limiter);
        self.follow(answer, move |receipt| {
            // It came from there.
            let _ = limiter.give_back(receipt);
        })
    }
}

impl<B, C, F, K> Decide<B> for RateLimit<KeyedLimiter<C>, F>
where
    C: Clock + 'static,
    F: Fn(&Request<B>) -> Option<K>,
    K: Hash,
{
    type Hold = ();
    type Deciding = Deciding<()>;

    fn decide(&self, request: &Request<B>) -> Deciding<()> {
        let Some(key) = (self.key)(request) else {
            return Deciding::now(Decided::Allowed {
                hold: (),
                told: None,
            });
        };
        let answer = self.limiter.reserve(&key, self.ask());
        let limiter = Arc::clone(&self.limiter);
        self.follow(answer, move |receipt| {
            // It came from there.
            let _ = limiter.give_back(receipt);
        })
    }
}

impl<L, K: Clone> Clone for RateLimit<L, K> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            limiter: Arc::clone(&self.limiter),
            key: self.key.clone(),
            wait: self.wait.clone(),
        }
    }
}

impl<L, K> fmt::Debug for RateLimit<L, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
