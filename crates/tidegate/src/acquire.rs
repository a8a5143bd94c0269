//! Waiting for at most so long: until a rate lets one through, or in line for permits that have to
//! come back; blocking the thread, or as a future.

use core::future::Future;
use core::time::Duration;

use crate::clock::block_on_for;
use crate::enforce::LimitRef;
use crate::key_hash::KeyHash;
use crate::{Ask, Clock, Decision, Retry, Timestamp, Verdict};

/// One call that waits, and for how long at most.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    came: Timestamp,
    timeout: Duration,
}

/// What an answer means for one who waits.
enum Next {
    /// There is nothing to wait for (any more).
    Over,
    /// It has what it wants, after this time.
    GoesAhead(Duration),
    /// A limit that could not reserve: it comes again after this time.
    ComesAgain(Duration),
}

impl Attempt {
    fn rest(&self, now: Timestamp) -> Duration {
        self.timeout.saturating_sub(now.since(self.came))
    }

    /// `peek` says what would be answered to one that does not wait. The refusal of one that does
    /// says when the same offer to wait will do: in less than `rest` perhaps, again and again,
    /// where a limit that can reserve has refused it because the wait is longer.
    fn next(decision: &Decision, rest: Duration, peek: impl FnOnce() -> Decision) -> Next {
        match decision.retry() {
            None if decision.delay().is_zero() => Next::Over,
            None => Next::GoesAhead(decision.delay()),
            Some(Retry::After(_)) => match peek().verdict {
                Verdict::Denied {
                    retry: Retry::After(wait),
                } if wait <= rest => Next::ComesAgain(wait),
                Verdict::Denied { .. } => Next::Over,
                // Somebody has given back meanwhile.
                Verdict::Allowed { .. } => Next::ComesAgain(Duration::ZERO),
            },
            Some(_) => Next::Over,
        }
    }
}

/// Checks until it is allowed, sleeping what each answer says, for at most `timeout` in all; of a
/// `limit` that is looked up whenever it is asked.
pub(crate) fn acquire_within<'a>(
    limit: impl Fn() -> LimitRef<'a>,
    key: KeyHash,
    clock: &impl Clock,
    ask: Ask,
    timeout: Duration,
) -> Decision {
    let at_once = ask.within(Duration::ZERO);
    let came = clock.now();
    let attempt = Attempt { came, timeout };
    loop {
        let now = clock.now();
        let rest = attempt.rest(now);
        let limit = limit();
        let (decision, _keeps_it) = limit.check(key, now, &ask.within(rest));
        match Attempt::next(&decision, rest, || limit.peek(key, now, &at_once)) {
            Next::Over => return decision,
            Next::GoesAhead(delay) => {
                clock.sleep(delay);
                return decision;
            }
            Next::ComesAgain(wait) => clock.sleep(wait),
        }
    }
}

/// Takes what is free `now`, or waits `in_line` for what has to come back, blocking the thread. Who
/// has waited too long takes what is free then, or is told how things are then.
pub(crate) fn acquire_in_line<P, F>(
    now: impl Fn() -> (Decision, P),
    in_line: impl FnOnce() -> F,
    timeout: Duration,
) -> (Decision, P)
where
    F: Future<Output = (Decision, P)> + Unpin,
{
    let at_once = now();
    if !at_once.0.is_on_release() {
        return at_once;
    }
    block_on_for(in_line(), timeout).unwrap_or_else(now)
}

#[cfg(feature = "tokio")]
pub(crate) use self::in_tokio::{acquire_async_within, acquire_in_line_async};

#[cfg(feature = "tokio")]
mod in_tokio {
    use tokio::time::{sleep, timeout};

    use super::{Attempt, Clock, Duration, Future, Next};
    use crate::enforce::{LimitRef, Receipt};
    use crate::key_hash::KeyHash;
    use crate::{Ask, Decision};

    /// [`acquire_within`](super::acquire_within) in a tokio runtime. Dropped while it waits, it
    /// gives back what it had reserved.
    pub(crate) async fn acquire_async_within<'a, C: Clock>(
        limit: impl Fn() -> LimitRef<'a>,
        key: KeyHash,
        clock: &C,
        ask: Ask,
        timeout: Duration,
    ) -> Decision {
        let at_once = ask.within(Duration::ZERO);
        let came = clock.now();
        let attempt = Attempt { came, timeout };
        loop {
            let now = clock.now();
            let rest = attempt.rest(now);
            let limit = limit();
            let (decision, receipt) = limit.check(key, now, &ask.within(rest));
            match Attempt::next(&decision, rest, || limit.peek(key, now, &at_once)) {
                Next::Over => return decision,
                Next::GoesAhead(delay) => {
                    let mut reserved = Reserved {
                        limit,
                        clock,
                        receipt,
                    };
                    sleep(delay).await;
                    reserved.receipt = None;
                    return decision;
                }
                Next::ComesAgain(wait) => sleep(wait).await,
            }
        }
    }

    /// [`acquire_in_line`](super::acquire_in_line) in a tokio runtime. Dropped while it waits, it
    /// leaves the line.
    pub(crate) async fn acquire_in_line_async<P, F>(
        now: impl Fn() -> (Decision, P),
        in_line: F,
        longest: Duration,
    ) -> (Decision, P)
    where
        F: Future<Output = (Decision, P)>,
    {
        // One that need not wait is answered at its first look.
        let answer = timeout(longest, in_line).await;
        answer.unwrap_or_else(|_too_late| now())
    }

    /// What a caller has taken that does not go ahead yet.
    struct Reserved<'a, C: Clock> {
        limit: LimitRef<'a>,
        clock: &'a C,
        receipt: Option<Receipt>,
    }

    impl<C: Clock> Drop for Reserved<'_, C> {
        fn drop(&mut self) {
            if let Some(receipt) = self.receipt.take() {
                let returned = self.limit.give_back(receipt, self.clock.now());
                debug_assert!(
                    returned.is_ok(),
                    "a receipt goes back to where it came from"
                );
            }
        }
    }
}
