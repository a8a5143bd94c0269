//! What was taken of limits in Redis, and goes back.

use tidegate::SharedTaken;
use tokio::runtime::Handle;

use super::check::{Leased, Spent};
use crate::concurrency::SharedPermit;
use crate::exact::{Exact, ExactReceipt};

/// What a request took. Dropped before it is [kept](Self::keep), it goes back.
#[derive(Debug)]
pub(super) struct Taken {
    exact: Exact,
    runtime: Handle,
    pub(super) receipts: Vec<ExactReceipt>,
    pub(super) leases: Vec<Leased>,
    pub(super) spent: Vec<Spent>,
    /// Each gives itself back.
    pub(super) places: Vec<SharedPermit>,
    is_kept: bool,
}

impl Taken {
    pub(super) fn new(exact: Exact, runtime: Handle) -> Self {
        Self {
            exact,
            runtime,
            receipts: Vec::new(),
            leases: Vec::new(),
            spent: Vec::new(),
            places: Vec::new(),
            is_kept: false,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.receipts.is_empty()
            && self.leases.is_empty()
            && self.spent.is_empty()
            && self.places.is_empty()
    }

    /// From here on only [`give_back`](SharedTaken::give_back) gives back what rates took.
    pub(super) fn keep(mut self) -> Self {
        self.is_kept = true;
        self
    }

    fn send_back(&mut self) {
        self.leases.drain(..).for_each(Leased::give_back);
        for (limiter, subject, permits) in self.spent.drain(..) {
            self.runtime
                .spawn(async move { limiter.unspend(subject.as_str(), permits).await });
        }
        for receipt in self.receipts.drain(..) {
            let exact = self.exact.clone();
            self.runtime.spawn(async move {
                if let Err(error) = exact.give_back(receipt).await {
                    // It stays taken until time gives it back: less is admitted, not more.
                    tracing::debug!(%error, "permits were not given back");
                }
            });
        }
    }
}

impl SharedTaken for Taken {
    fn give_back(mut self: Box<Self>) {
        self.send_back();
    }

    fn has_places(&self) -> bool {
        !self.places.is_empty()
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if !self.is_kept {
            self.send_back();
        }
    }
}
