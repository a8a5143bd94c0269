//! What was taken of limits in Redis, and goes back.

use tidegate::SharedTaken;
use tokio::runtime::Handle;

use crate::exact::{Exact, ExactReceipt};

/// What was taken of exact limits. Dropped before it is [`kept`](Self::keep), it goes back.
#[derive(Debug)]
pub(super) struct ExactTaken {
    exact: Exact,
    pub(super) receipts: Vec<ExactReceipt>,
    runtime: Handle,
    is_kept: bool,
}

impl ExactTaken {
    pub(super) fn new(exact: Exact, runtime: Handle) -> Self {
        Self {
            exact,
            receipts: Vec::new(),
            runtime,
            is_kept: false,
        }
    }

    /// From here on only [`give_back`](SharedTaken::give_back) gives back.
    pub(super) fn keep(mut self) -> Self {
        self.is_kept = true;
        self
    }

    fn send_back(&mut self) {
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

impl SharedTaken for ExactTaken {
    fn give_back(mut self: Box<Self>) {
        self.send_back();
    }

    fn has_places(&self) -> bool {
        false
    }
}

impl Drop for ExactTaken {
    fn drop(&mut self) {
        if !self.is_kept {
            self.send_back();
        }
    }
}
