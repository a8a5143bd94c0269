//! A limit of one key, with a clock.

use core::num::NonZeroUsize;
use core::time::Duration;

#[cfg(feature = "tokio")]
use crate::acquire::acquire_async_within;
use crate::acquire::acquire_within;
use crate::check_all::Asked;
use crate::enforce::{Enforce, LimitRef, NO_KEY, Receipt, Single};
use crate::limit::{FromAlgorithm, first_meter};
use crate::meter::TokenBucket;
use crate::store::{OneKey, StripedKey};
use crate::{Algorithm, Ask, Clock, Decision, Quota, QuotaError, SystemClock, Timestamp};

/// One rate limit: for a whole service, or inside a struct of your own.
///
/// It is shared by reference (`Arc<Limiter>`, or a field) and needs no locking outside.
///
/// ```
/// # fn main() -> Result<(), tidegate::QuotaError> {
/// use std::time::Duration;
/// use tidegate::{Limiter, ManualClock, Quota, Timestamp};
///
/// let clock = ManualClock::new(Timestamp::from_secs(0));
/// let limiter = Limiter::with_clock(Quota::per_second(1).burst(2), clock.clone())?;
///
/// assert!(limiter.check().is_allowed());
/// assert!(limiter.check().is_allowed());
/// let denied = limiter.check();
/// assert_eq!(denied.retry_after(), Some(Duration::from_secs(1)));
///
/// clock.advance(Duration::from_secs(1));
/// assert!(limiter.check().is_allowed());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Limiter<C = SystemClock> {
    limit: Kind<C>,
    clock: C,
}

/// The usual limit directly, the others behind a pointer.
#[derive(Debug)]
enum Kind<C> {
    TokenBucket(Single<OneKey<TokenBucket<u64>>>),
    Striped(Single<StripedKey<u64, C>>),
    StripedWide(Box<Single<StripedKey<u128, C>>>),
    Other(Box<dyn Enforce>),
}

impl Limiter {
    /// A limit on the system's clock: a token bucket for a [`Quota`](crate::Quota), or any other
    /// [`Algorithm`] but a concurrency limit.
    ///
    /// # Errors
    /// [`QuotaError`] where the numbers make no limit, or the algorithm is a gate
    /// ([`ConcurrencyLimiter`](crate::ConcurrencyLimiter) hands out guards).
    pub fn new(limit: impl Into<Algorithm>) -> Result<Self, QuotaError> {
        Self::with_clock(limit, SystemClock::new())
    }

    /// The same limit for a place that many cores pass at once, each tens of thousands of times a
    /// second or more: a token bucket that lends each core a small part of what it has, so that
    /// they need not hand one word of memory to each other for every check.
    ///
    /// It never admits more than the limit, and refuses only when there is nothing left anywhere:
    /// before that, all that was lent is called back. What differs: an allowed check tells the
    /// `remaining` and `reset_after` of what its core holds ([`peek`](Self::peek) tells those of
    /// the limit); and what a core leaves unused for as long as the limit takes to fill wastes
    /// away, at most a quarter of the burst in that time. A burst below 32 permits for each core
    /// is not lent out: the limit is then an ordinary one.
    ///
    /// # Errors
    /// [`QuotaError`] where the numbers make no limit.
    pub fn striped(quota: Quota) -> Result<Self, QuotaError> {
        Self::striped_with_clock(quota, SystemClock::new())
    }
}

impl<C: Clock> Limiter<C> {
    /// The same on a clock of the caller's.
    ///
    /// # Errors
    /// As [`Limiter::new`].
    pub fn with_clock(limit: impl Into<Algorithm>, clock: C) -> Result<Self, QuotaError> {
        let algorithm = limit.into();
        algorithm.validate()?;
        let now = clock.now();
        let limit = match TokenBucket::<u64>::from_algorithm(&algorithm) {
            Some(meter) => Kind::TokenBucket(Single::new(OneKey::new(meter, now))),
            None => Kind::Other(other(&algorithm, now)?),
        };
        Ok(Self { limit, clock })
    }

    /// A [striped](Limiter::striped) limit on a clock of the caller's, of which all clones must
    /// tell the same time.
    ///
    /// # Errors
    /// As [`Limiter::striped`].
    pub fn striped_with_clock(quota: Quota, clock: C) -> Result<Self, QuotaError>
    where
        C: Clone,
    {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let limit = if TokenBucket::<u64>::fits(quota) {
            StripedKey::new(TokenBucket::new(quota)?, cores, clock.clone())
                .map(|store| Kind::Striped(Single::new(store)))
        } else {
            StripedKey::new(TokenBucket::new(quota)?, cores, clock.clone())
                .map(|store| Kind::StripedWide(Box::new(Single::new(store))))
        };
        match limit {
            Some(limit) => Ok(Self { limit, clock }),
            None => Self::with_clock(quota, clock),
        }
    }

    fn enforce(&self) -> &dyn Enforce {
        match &self.limit {
            Kind::TokenBucket(limit) => limit,
            Kind::Striped(limit) => limit,
            Kind::StripedWide(limit) => &**limit,
            Kind::Other(limit) => &**limit,
        }
    }

    /// Takes one permit if it is allowed now.
    #[inline]
    pub fn check(&self) -> Decision {
        self.check_at(self.clock.now(), &Ask::ONE).0
    }

    /// Takes what is asked if it is allowed, perhaps with a delay that the caller then waits.
    #[inline]
    pub fn check_ask(&self, ask: impl Into<Ask>) -> Decision {
        self.check_at(self.clock.now(), &ask.into()).0
    }

    /// Takes what is asked if it is allowed, with a receipt to give it back by.
    #[inline]
    pub fn reserve(&self, ask: impl Into<Ask>) -> (Decision, Option<Receipt>) {
        self.check_at(self.clock.now(), &ask.into())
    }

    /// The clock that it goes by.
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    #[expect(clippy::inline_always, reason = "measured: see `AtomicCell::check`")]
    #[inline(always)]
    fn check_at(&self, now: Timestamp, ask: &Ask) -> (Decision, Option<Receipt>) {
        match &self.limit {
            Kind::TokenBucket(limit) => limit.take(now, ask),
            Kind::Striped(limit) => limit.take_here(now, ask),
            Kind::StripedWide(limit) => limit.take_here(now, ask),
            Kind::Other(limit) => limit.check(NO_KEY, now, ask),
        }
    }

    /// What a check would answer. Takes nothing.
    pub fn peek(&self, ask: impl Into<Ask>) -> Decision {
        self.enforce().peek(NO_KEY, self.clock.now(), &ask.into())
    }

    /// Gives back what was taken.
    ///
    /// # Errors
    /// The receipt, where it is of another limiter.
    pub fn give_back(&self, receipt: Receipt) -> Result<(), Receipt> {
        self.enforce().give_back(receipt, self.clock.now())
    }

    /// Makes the limit as good as new: all of its permits are there again.
    pub fn reset(&self) {
        let reset = self.enforce().reset(NO_KEY, self.clock.now());
        debug_assert!(reset, "a rate has no guards");
    }

    /// Takes what is asked, blocking the thread until it is allowed. Denied only where it never
    /// can be.
    pub fn acquire(&self, ask: impl Into<Ask>) -> Decision {
        self.acquire_within(ask, Duration::MAX)
    }

    /// Takes what is asked, blocking the thread for at most `timeout`. Where the wait is longer
    /// than that, the answer is a denial, at once.
    ///
    /// Callers go in the order they came: what they wait for is taken when they come. Only with a
    /// two-window counter and Sentinel's warm-up, who wakes first goes first.
    pub fn acquire_within(&self, ask: impl Into<Ask>, timeout: Duration) -> Decision {
        let limit = || LimitRef::Borrowed(self.enforce());
        acquire_within(limit, NO_KEY, &self.clock, ask.into(), timeout)
    }

    /// Takes what is asked as soon as it is allowed, waiting in a tokio runtime (with its time
    /// enabled). Denied only where it never can be.
    ///
    /// Cancel safe: dropped while it waits, it gives back what it had reserved.
    #[cfg(feature = "tokio")]
    pub async fn acquire_async(&self, ask: impl Into<Ask>) -> Decision {
        self.acquire_async_within(ask, Duration::MAX).await
    }

    /// The same for at most `timeout`: where the wait is longer than that, the answer is a denial,
    /// at once.
    ///
    /// Cancel safe: dropped while it waits, it gives back what it had reserved.
    #[cfg(feature = "tokio")]
    pub async fn acquire_async_within(&self, ask: impl Into<Ask>, timeout: Duration) -> Decision {
        let limit = || LimitRef::Borrowed(self.enforce());
        acquire_async_within(limit, NO_KEY, &self.clock, ask.into(), timeout).await
    }

    /// This limit, to be asked among others in a [`check_all`](crate::check_all).
    pub fn ask(&self, ask: impl Into<Ask>) -> Asked<'_> {
        Asked::new(self.enforce(), NO_KEY, ask.into())
    }
}

fn other(algorithm: &Algorithm, now: Timestamp) -> Result<Box<dyn Enforce>, QuotaError> {
    fn single<M: FromAlgorithm>(algorithm: &Algorithm, now: Timestamp) -> Option<Box<dyn Enforce>> {
        Some(Box::new(Single::new(OneKey::new(
            M::from_algorithm(algorithm)?,
            now,
        ))))
    }
    if algorithm.is_gate() {
        return Err(QuotaError::NotARate);
    }
    first_meter!(single(algorithm, now)).ok_or(QuotaError::MixedAlgorithms)
}
