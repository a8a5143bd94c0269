//! Waiting until a rate lets one through: blocking the thread, or as a future.

use core::time::Duration;

use crate::{Clock, Decision, Retry, Timestamp};

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

    fn next(decision: &Decision, rest: Duration) -> Next {
        match decision.retry() {
            None if decision.delay().is_zero() => Next::Over,
            None => Next::GoesAhead(decision.delay()),
            Some(Retry::After(wait)) if wait <= rest => Next::ComesAgain(wait),
            Some(_) => Next::Over,
        }
    }
}

/// Checks until it is allowed, sleeping what each answer says, for at most `timeout` in all.
pub(crate) fn acquire_within(
    clock: &impl Clock,
    timeout: Duration,
    mut check: impl FnMut(Timestamp, Duration) -> Decision,
) -> Decision {
    let came = clock.now();
    let attempt = Attempt { came, timeout };
    loop {
        let now = clock.now();
        let rest = attempt.rest(now);
        let decision = check(now, rest);
        match Attempt::next(&decision, rest) {
            Next::Over => return decision,
            Next::GoesAhead(delay) => {
                clock.sleep(delay);
                return decision;
            }
            Next::ComesAgain(wait) => clock.sleep(wait),
        }
    }
}

#[cfg(feature = "tokio")]
pub(crate) use self::in_tokio::acquire_async_within;

#[cfg(feature = "tokio")]
mod in_tokio {
    use tokio::time::sleep;

    use super::{Attempt, Clock, Duration, Next};
    use crate::enforce::{Enforce, Receipt};
    use crate::key_hash::KeyHash;
    use crate::{Ask, Decision};

    /// The same in a tokio runtime. Dropped while it waits, it gives back what it had reserved.
    pub(crate) async fn acquire_async_within<C: Clock>(
        limit: &dyn Enforce,
        key: KeyHash,
        clock: &C,
        ask: Ask,
        timeout: Duration,
    ) -> Decision {
        let came = clock.now();
        let attempt = Attempt { came, timeout };
        loop {
            let now = clock.now();
            let rest = attempt.rest(now);
            let (decision, receipt) = limit.check(key, now, &ask.within(rest));
            match Attempt::next(&decision, rest) {
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

    /// What a caller has taken that does not go ahead yet.
    struct Reserved<'a, C: Clock> {
        limit: &'a dyn Enforce,
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
