//! A place in line, as a future.

use core::future::Future;
use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::Arc;

use super::Waiter;
use super::waiter::LeftBehind;
use crate::enforce::{Enforce, Receipt};
use crate::key_hash::KeyHash;
use crate::{Ask, Decision, Timestamp};

/// What becomes of one who would wait.
#[derive(Debug)]
pub enum Joined {
    /// It need not, or no waiting helps.
    Decided(Decision, Option<Receipt>),
    /// It stands in line.
    Waiting(Arc<Waiter>),
}

/// Permits of a limit as soon as there are some, first come, first served.
///
/// The place in line is taken when this is first polled. The answer is a denial only where the
/// line is as long as it may be (told [`Retry::OnRelease`](crate::Retry::OnRelease)), or where no
/// waiting helps ([`Retry::Never`](crate::Retry::Never)). It needs no runtime. For a longest
/// wait, put your runtime's timeout around it.
///
/// Cancel safe: dropped, it leaves the line; what it was given in the last moment goes to the
/// next.
#[derive(Debug)]
#[must_use = "futures do nothing unless they are polled"]
pub struct Waiting {
    limit: Arc<dyn Enforce>,
    step: Step,
}

#[derive(Debug)]
enum Step {
    Asks { key: KeyHash, ask: Ask, length: u64 },
    Waits(Arc<Waiter>),
    Over,
}

impl Waiting {
    /// `ask` of a limit's key; a place in a line of at most `length` permits.
    pub const fn new(limit: Arc<dyn Enforce>, key: KeyHash, ask: Ask, length: u64) -> Self {
        let step = Step::Asks { key, ask, length };
        Self { limit, step }
    }
}

impl Future for Waiting {
    type Output = (Decision, Option<Receipt>);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Step::Asks { key, ask, length } = self.step {
            // Gates do not look at the time.
            match self.limit.join(key, Timestamp::EPOCH, &ask, length) {
                Joined::Decided(decision, receipt) => {
                    self.step = Step::Over;
                    return Poll::Ready((decision, receipt));
                }
                Joined::Waiting(waiter) => self.step = Step::Waits(waiter),
            }
        }
        let Step::Waits(waiter) = &self.step else {
            return Poll::Pending;
        };
        let Some(answer) = waiter.poll(context.waker()) else {
            return Poll::Pending;
        };
        self.step = Step::Over;
        Poll::Ready(answer)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Step::Waits(waiter) = mem::replace(&mut self.step, Step::Over) else {
            return;
        };
        match waiter.give_up() {
            LeftBehind::Place => self.limit.leave(&waiter),
            LeftBehind::Receipt(receipt) => {
                let returned = self.limit.give_back(receipt, Timestamp::EPOCH);
                debug_assert!(
                    returned.is_ok(),
                    "a receipt goes back to where it came from"
                );
            }
            LeftBehind::Nothing => {}
        }
    }
}
