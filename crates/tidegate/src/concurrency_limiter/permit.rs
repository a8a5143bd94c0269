//! Guards: permits that come back when they are dropped.

use std::sync::Arc;

use crate::enforce::{Enforce, Receipt};
use crate::{Decision, Timestamp};

/// Permits of a concurrency limit: dropping it gives them back, exactly once, also on a panic or
/// when a future is cancelled.
#[derive(Debug)]
#[must_use = "dropping it gives the permits back at once"]
pub struct Permit<'a> {
    limit: Holder<'a>,
    receipt: Option<Receipt>,
}

/// Where a guard gives back.
#[derive(Clone, Debug)]
pub(crate) enum Holder<'a> {
    Borrowed(&'a Arc<dyn Enforce>),
    Owned(Arc<dyn Enforce>),
}

impl Holder<'_> {
    pub(super) const fn limit(&self) -> &Arc<dyn Enforce> {
        match self {
            Self::Borrowed(limit) => limit,
            Self::Owned(limit) => limit,
        }
    }
}

impl<'a> Permit<'a> {
    /// A guard where the answer is yes.
    #[inline]
    pub(crate) fn of(
        limit: Holder<'a>,
        (decision, receipt): (Decision, Option<Receipt>),
    ) -> (Decision, Option<Self>) {
        let permit = decision.is_allowed().then_some(Permit { limit, receipt });
        (decision, permit)
    }

    /// The same permits in a guard that borrows nothing, to go with a task or a thread.
    pub fn into_owned(mut self) -> Permit<'static> {
        Permit {
            limit: Holder::Owned(Arc::clone(self.limit.limit())),
            receipt: self.receipt.take(),
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let Some(receipt) = self.receipt.take() else {
            return;
        };
        // Gates do not look at the time.
        let returned = self.limit.limit().give_back(receipt, Timestamp::EPOCH);
        debug_assert!(
            returned.is_ok(),
            "a receipt goes back to where it came from"
        );
    }
}
