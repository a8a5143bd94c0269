//! A place in line, as a future that ends in a guard.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::Arc;

use super::permit::{Holder, Permit};
use crate::enforce::Enforce;
use crate::key_hash::KeyHash;
use crate::keyed_concurrency_limiter::KeyedConcurrencyLimiter;
use crate::queue::Waiting;
use crate::{Ask, Decision};

/// Permits as soon as there are some; see
/// [`ConcurrencyLimiter::acquire_async`](crate::ConcurrencyLimiter::acquire_async).
#[derive(Debug)]
#[must_use = "futures do nothing unless they are polled"]
pub struct Acquire<'a> {
    holder: Holder<'a>,
    step: Step<'a>,
}

#[derive(Debug)]
enum Step<'a> {
    /// Of many keys: it has not been polled, and asks under the numbers that hold when it is.
    Asks(&'a KeyedConcurrencyLimiter, KeyHash, Ask),
    Waits(Waiting),
}

impl<'a> Acquire<'a> {
    /// `ask` of a limit's key, in a line of at most so many permits.
    pub(crate) fn new(holder: Holder<'a>, key: KeyHash, ask: Ask, length: u64) -> Self {
        let waiting = Waiting::new(Arc::clone(holder.limit()), key, ask, length);
        Self::waiting(holder, waiting)
    }

    pub(crate) const fn waiting(holder: Holder<'a>, waiting: Waiting) -> Self {
        let step = Step::Waits(waiting);
        Self { holder, step }
    }

    pub(crate) const fn keyed(
        limiter: &'a KeyedConcurrencyLimiter,
        holder: &'a Arc<dyn Enforce>,
        key: KeyHash,
        ask: Ask,
    ) -> Self {
        Self {
            holder: Holder::Borrowed(holder),
            step: Step::Asks(limiter, key, ask),
        }
    }
}

impl<'a> Future for Acquire<'a> {
    type Output = (Decision, Option<Permit<'a>>);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Step::Asks(limiter, key, ask) = self.step {
            self.step = Step::Waits(limiter.waiting(key, ask));
        }
        match &mut self.step {
            Step::Asks(..) => Poll::Pending,
            Step::Waits(waiting) => {
                let answer = Pin::new(waiting).poll(context);
                answer.map(|answer| Permit::of(self.holder.clone(), answer))
            }
        }
    }
}
