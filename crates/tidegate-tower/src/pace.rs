//! Who says when bytes may pass.

use core::hash::Hash;
use core::time::Duration;
use std::sync::Arc;

use tidegate::{Ask, Clock, Decision, KeyedLimiter, Limiter, Receipt, Retry, Timestamp};

/// Who says when the bytes of one body may pass: for [`Pacing`](crate::Pacing), which asks for
/// one piece at a time.
pub trait Pace {
    /// What time it is.
    fn now(&self) -> Timestamp;

    /// Most bytes of the next piece; at least 1.
    fn most(&mut self, now: Timestamp) -> u64;

    /// Takes so many bytes for a piece, no more than [`most`](Self::most) has just said, and says
    /// after what time it may pass. It then [passes](Self::passed), or is
    /// [given back](Self::give_back).
    ///
    /// # Errors
    /// Nothing was taken, and asking again makes sense after this time.
    fn take(&mut self, bytes: u64, now: Timestamp) -> Result<Duration, Duration>;

    /// The piece that was taken has passed.
    fn passed(&mut self);

    /// The piece that was taken will not pass.
    fn give_back(&mut self, now: Timestamp);

    /// Nothing is there that could pass.
    fn idle(&mut self) {}
}

/// A rate limit whose permits are bytes.
pub trait ByteLimit {
    /// What time it is.
    fn now(&self) -> Timestamp;
    /// Takes what is asked, perhaps with a delay.
    fn reserve(&self, ask: Ask) -> (Decision, Option<Receipt>);
    /// What [`reserve`](Self::reserve) would answer.
    fn peek(&self, ask: Ask) -> Decision;
    /// Gives back what was reserved.
    fn give_back(&self, receipt: Receipt);
}

impl<C: Clock> ByteLimit for Arc<Limiter<C>> {
    fn now(&self) -> Timestamp {
        self.clock().now()
    }

    fn reserve(&self, ask: Ask) -> (Decision, Option<Receipt>) {
        Limiter::reserve(self, ask)
    }

    fn peek(&self, ask: Ask) -> Decision {
        Limiter::peek(self, ask)
    }

    fn give_back(&self, receipt: Receipt) {
        let returned = Limiter::give_back(self, receipt);
        debug_assert!(
            returned.is_ok(),
            "a receipt goes back to where it came from"
        );
    }
}

/// One key of a limiter.
#[derive(Clone, Debug)]
pub struct OfKey<K, C> {
    limiter: Arc<KeyedLimiter<C>>,
    key: K,
}

impl<K: Hash, C: Clock> ByteLimit for OfKey<K, C> {
    fn now(&self) -> Timestamp {
        self.limiter.clock().now()
    }

    fn reserve(&self, ask: Ask) -> (Decision, Option<Receipt>) {
        self.limiter.reserve(&self.key, ask)
    }

    fn peek(&self, ask: Ask) -> Decision {
        self.limiter.peek(&self.key, ask)
    }

    fn give_back(&self, receipt: Receipt) {
        let returned = self.limiter.give_back(receipt);
        debug_assert!(
            returned.is_ok(),
            "a receipt goes back to where it came from"
        );
    }
}

/// Paces one body by a rate limit in bytes, which other bodies share: of a token bucket's rate
/// and burst, in every interval of length *t* at most `burst + rate * t` bytes pass in all.
///
/// Pieces are at most the burst. What a body takes goes in the order it is asked for, so that the
/// bodies of one key take turns.
#[derive(Debug)]
pub struct LimiterPace<L> {
    limit: L,
    burst: u64,
    /// Bytes that are still free.
    free: u64,
    /// What was reserved for the piece that was taken.
    receipt: Option<Receipt>,
}

impl<C: Clock> LimiterPace<Arc<Limiter<C>>> {
    /// By a limiter that all bodies share.
    pub fn shared(limiter: Arc<Limiter<C>>) -> Self {
        Self::of(limiter)
    }
}

impl<K: Hash, C: Clock> LimiterPace<OfKey<K, C>> {
    /// By a key of a limiter.
    pub fn keyed(limiter: Arc<KeyedLimiter<C>>, key: K) -> Self {
        Self::of(OfKey { limiter, key })
    }
}

impl<L: ByteLimit> LimiterPace<L> {
    /// By this limit.
    pub fn of(limit: L) -> Self {
        // A burst of 0 lets nothing pass: each piece of 1 byte is asked for again and again.
        let burst = limit.peek(Ask::new(0)).limit.max(1);
        Self {
            limit,
            burst,
            free: 0,
            receipt: None,
        }
    }

    /// The same, from after the first `bytes` of the body on: these pass at once, uncounted.
    #[must_use]
    pub fn after(self, bytes: u64) -> Self {
        Self {
            free: bytes,
            ..self
        }
    }
}

impl<L: ByteLimit> Pace for LimiterPace<L> {
    fn now(&self) -> Timestamp {
        self.limit.now()
    }

    fn most(&mut self, _now: Timestamp) -> u64 {
        // What is free does not wait together with what is not.
        if self.free > 0 { self.free } else { self.burst }
    }

    fn take(&mut self, bytes: u64, _now: Timestamp) -> Result<Duration, Duration> {
        /// When to look again at a limit that lets nothing pass.
        const NEVER: Duration = Duration::from_secs(1);
        if self.free > 0 {
            self.free = self.free.saturating_sub(bytes);
            return Ok(Duration::ZERO);
        }
        let ask = Ask::new(bytes).within(Duration::MAX);
        let (decision, receipt) = self.limit.reserve(ask);
        self.receipt = receipt;
        match decision.retry() {
            None => Ok(decision.delay()),
            Some(Retry::After(wait)) => Err(wait),
            Some(Retry::Never | Retry::OnRelease) => Err(NEVER),
        }
    }

    fn passed(&mut self) {
        self.receipt = None;
    }

    fn give_back(&mut self, _now: Timestamp) {
        if let Some(receipt) = self.receipt.take() {
            self.limit.give_back(receipt);
        }
    }
}
