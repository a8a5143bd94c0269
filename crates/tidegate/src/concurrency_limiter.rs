//! At most so many in flight, as guards.

mod acquire;
mod permit;

use core::future::Future;
use core::time::Duration;
use std::sync::Arc;

pub use self::acquire::Acquire;
pub(crate) use self::permit::Holder;
pub use self::permit::Permit;
use crate::acquire::acquire_in_line;
#[cfg(feature = "tokio")]
use crate::acquire::acquire_in_line_async;
use crate::check_all::Asked;
use crate::clock::block_on_for;
use crate::enforce::{Enforce, NO_KEY};
use crate::gate::Concurrency;
use crate::queue::DEFAULT_QUEUE_LENGTH;
use crate::store::{OneGate, Vacated};
use crate::{Ask, Decision, QuotaError, Timestamp};

/// At most `max` permits out at a time: a semaphore, a bulkhead.
///
/// ```
/// # fn main() -> Result<(), tidegate::QuotaError> {
/// use tidegate::ConcurrencyLimiter;
///
/// let limiter = ConcurrencyLimiter::new(1)?;
/// let (_, first) = limiter.try_acquire(1);
/// let first = first.expect("one place is free");
/// assert!(limiter.try_acquire(1).0.is_denied());
/// drop(first);
/// assert!(limiter.try_acquire(1).0.is_allowed());
/// # Ok(())
/// # }
/// ```
///
/// Callers may wait, blocking their thread or as a future, in one line: first come, first
/// served, the higher [priority](Ask::priority) first. While somebody waits, nobody who comes
/// later gets in before, not even one who asks for less. Clones are the same limit.
#[derive(Clone, Debug)]
pub struct ConcurrencyLimiter {
    gate: Arc<OneGate>,
    /// The same, as guards hold it.
    shared: Arc<dyn Enforce>,
    queue_length: u64,
}

impl ConcurrencyLimiter {
    /// A limit of `max` places; 0 lets nobody in.
    ///
    /// # Errors
    /// [`QuotaError`] where there are more than [`Quota::MAX_PERMITS`](crate::Quota).
    pub fn new(max: u64) -> Result<Self, QuotaError> {
        let gate = Arc::new(OneGate::new(&Concurrency::new(max)?));
        Ok(Self {
            shared: Arc::clone(&gate) as Arc<dyn Enforce>,
            gate,
            queue_length: DEFAULT_QUEUE_LENGTH,
        })
    }

    /// The same with a line of at most so many permits ([`DEFAULT_QUEUE_LENGTH`] unless this is
    /// said): callers that would wait beyond it are refused at once.
    #[must_use]
    pub fn queue_length(self, permits: u64) -> Self {
        Self {
            queue_length: permits,
            ..self
        }
    }

    /// Takes the permits if they are free, with a guard that gives them back.
    #[inline]
    pub fn try_acquire(&self, ask: impl Into<Ask>) -> (Decision, Option<Permit<'_>>) {
        Permit::of(Holder::Borrowed(&self.shared), self.gate.take(&ask.into()))
    }

    /// What [`try_acquire`](Self::try_acquire) would answer. Takes nothing.
    pub fn peek(&self, ask: impl Into<Ask>) -> Decision {
        self.gate.peek(NO_KEY, Timestamp::EPOCH, &ask.into())
    }

    /// Takes the permits, blocking the thread until they are free. Refused only where the line is
    /// full, or no waiting helps: there are not so many places, or the limit is
    /// [closed](Self::close).
    pub fn acquire(&self, ask: impl Into<Ask>) -> (Decision, Option<Permit<'_>>) {
        self.acquire_within(ask, Duration::MAX)
    }

    /// Takes the permits, blocking the thread for at most `timeout`: whatever is free then is
    /// taken.
    pub fn acquire_within(
        &self,
        ask: impl Into<Ask>,
        timeout: Duration,
    ) -> (Decision, Option<Permit<'_>>) {
        let ask = ask.into();
        let in_line = || self.acquire_async(ask);
        acquire_in_line(|| self.try_acquire(ask), in_line, timeout)
    }

    /// The permits as soon as they are free, as a future on any runtime. It takes its place in
    /// line when it is first polled, and is refused as [`acquire`](Self::acquire) is.
    ///
    /// Cancel safe: dropped (by a timeout, say) it leaves the line and takes nothing.
    pub fn acquire_async(&self, ask: impl Into<Ask>) -> Acquire<'_> {
        let holder = Holder::Borrowed(&self.shared);
        Acquire::new(holder, NO_KEY, ask.into(), self.queue_length)
    }

    /// The same as a future, and a guard, that borrow nothing.
    ///
    /// Cancel safe: dropped, it leaves the line and takes nothing.
    pub fn acquire_owned(&self, ask: impl Into<Ask>) -> Acquire<'static> {
        let holder = Holder::Owned(Arc::clone(&self.shared));
        Acquire::new(holder, NO_KEY, ask.into(), self.queue_length)
    }

    /// The same for at most `timeout`, in a tokio runtime (with its time enabled): whatever is free
    /// then is taken.
    ///
    /// Cancel safe: dropped while it waits, it leaves the line and takes nothing.
    #[cfg(feature = "tokio")]
    pub async fn acquire_async_within(
        &self,
        ask: impl Into<Ask>,
        timeout: Duration,
    ) -> (Decision, Option<Permit<'_>>) {
        let ask = ask.into();
        let in_line = self.acquire_async(ask);
        acquire_in_line_async(|| self.try_acquire(ask), in_line, timeout).await
    }

    /// This limit, to be asked among others in a [`check_all`](crate::check_all).
    pub fn ask(&self, ask: impl Into<Ask>) -> Asked<'_> {
        Asked::new(&*self.gate, NO_KEY, ask.into())
    }

    /// Changes how many places there are, at once and while they are held: who is inside stays,
    /// also where there are more than places now, and who waits goes in where there are more.
    ///
    /// # Errors
    /// [`QuotaError`] where there are more than [`Quota::MAX_PERMITS`](crate::Quota). The old
    /// number stays then.
    pub fn set_max(&self, max: u64) -> Result<(), QuotaError> {
        self.gate.set_max(&Concurrency::new(max)?);
        Ok(())
    }

    /// Lets nobody in any more: callers are refused for good, those in line too, and those
    /// inside finish. [`drained`](Self::drained) says when they have. [`set_max`](Self::set_max)
    /// opens it again.
    pub fn close(&self) {
        self.gate.set_max(&Concurrency::of(0));
    }

    /// How many permits are out.
    pub fn in_use(&self) -> u64 {
        self.gate.in_use()
    }

    /// Completes when nobody is inside, as a future on any runtime. For a limit that has been
    /// [closed](Self::close): into an open one callers go on coming, and the moment when nobody is
    /// inside may pass unseen.
    ///
    /// Cancel safe: dropped, it leaves nothing behind.
    pub fn drained(&self) -> impl Future<Output = ()> + Unpin + Send + use<> {
        Vacated::of(&self.gate)
    }

    /// Blocks the thread until nobody is inside, for at most `timeout`; false where somebody
    /// still is. As [`drained`](Self::drained), for a limit that has been closed.
    pub fn drained_within(&self, timeout: Duration) -> bool {
        block_on_for(self.drained(), timeout).is_some()
    }
}
