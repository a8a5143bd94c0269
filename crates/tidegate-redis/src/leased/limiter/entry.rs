//! One key of a leased limiter, and where it waits for the driver.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use tidegate::Timestamp;
use tokio::sync::Notify;

use crate::leased::node::LeaseNode;

const NEVER: u64 = u64::MAX;

/// How soon a key that waits is looked at: those of the first kind before all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Somebody asks for it.
    Wanted,
    /// Its time has come.
    Due,
    /// It only says goodbye.
    Leaving,
}

pub(super) const LINES: [Line; 3] = [Line::Wanted, Line::Due, Line::Leaving];

/// One key.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: Box<str>,
    pub(super) redis_key: Vec<u8>,
    pub(super) node: LeaseNode,
    /// An answer has come, or none in time.
    pub(super) answered: Notify,
    /// In which lines it waits, a bit each.
    waits_in: AtomicU8,
    /// When it is to be looked at, nanoseconds: what the driver's queue says otherwise is old.
    due: AtomicU64,
    /// It has lost its place to another key.
    is_ousted: AtomicBool,
}

impl Entry {
    pub(super) fn new(key: &str, redis_key: Vec<u8>, node: LeaseNode) -> Self {
        Self {
            key: key.into(),
            redis_key,
            node,
            answered: Notify::new(),
            waits_in: AtomicU8::new(0),
            due: AtomicU64::new(NEVER),
            is_ousted: AtomicBool::new(false),
        }
    }

    pub(super) fn set_due(&self, due: Timestamp) {
        self.due.store(due.as_nanos(), Ordering::Relaxed);
    }

    pub(super) fn is_due_at(&self, time: Timestamp) -> bool {
        self.due.load(Ordering::Relaxed) == time.as_nanos()
    }

    /// Whether the driver will look at it by itself, some time after this.
    pub(super) fn is_scheduled_after(&self, now: Timestamp) -> bool {
        let due = self.due.load(Ordering::Relaxed);
        due != NEVER && due > now.as_nanos()
    }

    /// Notes that it waits in a line; `false` where it did before.
    pub(super) fn enters(&self, line: Line) -> bool {
        let bit = 1 << line as u8;
        self.waits_in.fetch_or(bit, Ordering::AcqRel) & bit == 0
    }

    pub(super) fn leaves_line(&self, line: Line) {
        self.waits_in
            .fetch_and(!(1 << line as u8), Ordering::AcqRel);
    }

    pub(super) fn oust(&self) {
        self.is_ousted.store(true, Ordering::Release);
    }

    pub(super) fn is_ousted(&self) -> bool {
        self.is_ousted.load(Ordering::Acquire)
    }
}
