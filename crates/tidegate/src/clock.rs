//! What time it is: the only place here that reads a clock, or sleeps.
#![expect(
    clippy::disallowed_methods,
    reason = "this is the edge that hands time to the rest"
)]

use core::fmt::Debug;
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicU64, Ordering};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::{Arc, OnceLock};
use std::task::Wake;
use std::thread::{self, Thread};
use std::time::{Instant, SystemTime};

use crate::Timestamp;
use crate::time::nanos;

/// A source of time, and of waiting.
///
/// Times never decrease within one clock.
pub trait Clock: Debug + Send + Sync {
    /// What time it is.
    fn now(&self) -> Timestamp;

    /// Blocks the calling thread until `duration` has passed on this clock.
    fn sleep(&self, duration: Duration);
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }

    fn sleep(&self, duration: Duration) {
        (**self).sleep(duration);
    }
}

/// The operating system's clock: Unix time when the process first asked, and monotonic from
/// there, so that a step of the system's clock neither grants nor holds back anything.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    start: (Instant, Timestamp),
}

impl SystemClock {
    /// The clock of this process; all of them agree.
    pub fn new() -> Self {
        static START: OnceLock<(Instant, Timestamp)> = OnceLock::new();
        let start = *START.get_or_init(|| {
            let since_epoch = SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or_default();
            (Instant::now(), Timestamp::from_nanos(nanos(since_epoch)))
        });
        Self { start }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> Timestamp {
        let (start, unix) = self.start;
        let passed = start.elapsed();
        unix.after_nanos(passed.as_secs() * 1_000_000_000 + u64::from(passed.subsec_nanos()))
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

/// A clock that stands still until it is told otherwise: for tests and simulations.
///
/// Sleeping advances it. Clones are the same clock.
#[derive(Clone, Debug, Default)]
pub struct ManualClock {
    nanos: Arc<AtomicU64>,
}

impl ManualClock {
    /// A clock that stands at `now`.
    pub fn new(now: Timestamp) -> Self {
        Self {
            nanos: Arc::new(AtomicU64::new(now.as_nanos())),
        }
    }

    /// Moves on by `duration`.
    pub fn advance(&self, duration: Duration) {
        self.nanos.fetch_add(nanos(duration), Ordering::SeqCst);
    }

    /// Moves on to `now`; stays where it is if that has passed.
    pub fn set(&self, now: Timestamp) {
        self.nanos.fetch_max(now.as_nanos(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.nanos.load(Ordering::SeqCst))
    }

    fn sleep(&self, duration: Duration) {
        self.advance(duration);
    }
}

/// The time of the tokio runtime: the system's, or, in a runtime whose time is paused (tests),
/// what that says.
#[cfg(feature = "tokio")]
#[derive(Clone, Copy, Debug)]
pub struct TokioClock {
    start: (tokio::time::Instant, Timestamp),
}

#[cfg(feature = "tokio")]
impl TokioClock {
    /// A clock that reads `now` at this moment.
    pub fn starting_at(now: Timestamp) -> Self {
        Self {
            start: (tokio::time::Instant::now(), now),
        }
    }

    /// A clock that goes on from the system's time.
    pub fn new() -> Self {
        Self::starting_at(SystemClock::new().now())
    }
}

#[cfg(feature = "tokio")]
impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(feature = "tokio")]
impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        let (start, unix) = self.start;
        unix.after(start.elapsed())
    }

    fn sleep(&self, duration: Duration) {
        thread::sleep(duration);
    }
}

/// Waits for a future, blocking the thread for at most `timeout`; `None` where that was too short.
pub(crate) fn block_on_for<F: Future + Unpin>(
    mut future: F,
    timeout: Duration,
) -> Option<F::Output> {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let deadline = Instant::now().checked_add(timeout);
    loop {
        if let Poll::Ready(answer) = Pin::new(&mut future).poll(&mut context) {
            return Some(answer);
        }
        match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
            None => thread::park(),
            Some(Duration::ZERO) => return None,
            Some(rest) => thread::park_timeout(rest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_clocks_agree_and_never_go_back() {
        let (a, b) = (SystemClock::new(), SystemClock::new());
        let first = a.now();
        let second = b.now();
        assert!(second >= first);
        assert!(second.since(first) < Duration::from_mins(1));
        // After 2024, before the range ends.
        assert!(first > Timestamp::from_secs(1_704_000_000) && first < Timestamp::MAX);
    }

    #[test]
    fn a_manual_clock_moves_only_forward() {
        let clock = ManualClock::new(Timestamp::from_secs(5));
        clock.set(Timestamp::from_secs(1));
        assert_eq!(clock.now(), Timestamp::from_secs(5));
        clock.clone().sleep(Duration::from_secs(2));
        assert_eq!(clock.now(), Timestamp::from_secs(7));
    }
}
