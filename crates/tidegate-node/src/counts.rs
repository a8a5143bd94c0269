//! How often a limit has allowed and denied, and what has passed it, counted without threads
//! meeting.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use smallvec::SmallVec;
use tidegate_policy::BodyOf;

use crate::waits::{Waits, WaitsSnapshot};

/// What became of a request at one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The request went ahead at once.
    Allowed,
    /// The request went ahead after a delay.
    Delayed,
    /// This limit refused it.
    Denied,
    /// This shadow limit would have refused it.
    ShadowDenied,
    /// This shadow limit would have delayed it; it went ahead.
    ShadowDelayed,
    /// It lacked a part of the key, and the limit refuses such requests.
    Missing,
}

impl Outcome {
    /// All of them, in the order in which they are counted.
    pub const ALL: [Self; 6] = [
        Self::Allowed,
        Self::Delayed,
        Self::Denied,
        Self::ShadowDenied,
        Self::ShadowDelayed,
        Self::Missing,
    ];

    /// The word for metrics and tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Delayed => "delayed",
            Self::Denied => "denied",
            Self::ShadowDenied => "shadow_denied",
            Self::ShadowDelayed => "shadow_delayed",
            Self::Missing => "missing",
        }
    }
}

/// Threads are spread over so many copies of each counter.
const STRIPES: usize = 8;

/// Counters of one limit. They outlive the limit's changes.
#[derive(Debug, Default)]
pub struct Counts {
    stripes: [Stripe; STRIPES],
    waits: Waits,
}

/// One thread's counters, in a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Stripe {
    counts: [AtomicU64; Outcome::ALL.len()],
    /// Of limits of bandwidth: bytes of requests, and of responses.
    bytes: [AtomicU64; 2],
    held_back_nanos: AtomicU64,
}

impl Counts {
    pub(crate) fn add(&self, outcome: Outcome) {
        self.stripes[stripe()].counts[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// A piece of a body has passed, after so long.
    pub(crate) fn passed(&self, body: BodyOf, bytes: u64, after: Duration) {
        let stripe = &self.stripes[stripe()];
        stripe.bytes[body as usize].fetch_add(bytes, Ordering::Relaxed);
        if !after.is_zero() {
            let nanos = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
            (stripe.held_back_nanos).fetch_add(nanos, Ordering::Relaxed);
        }
    }

    /// Counts a wait of somebody who went ahead then.
    pub(crate) fn waited(&self, time: Duration) {
        self.waits.record(time);
    }

    /// Who waits for this limit now, and how long those waited who went ahead.
    pub fn waits(&self) -> WaitsSnapshot {
        self.waits.snapshot()
    }

    /// How often this has been the outcome.
    pub fn get(&self, outcome: Outcome) -> u64 {
        self.sum(|stripe| &stripe.counts[outcome as usize])
    }

    /// How many bytes of such bodies have passed a limit of bandwidth.
    pub fn bytes(&self, body: BodyOf) -> u64 {
        self.sum(|stripe| &stripe.bytes[body as usize])
    }

    /// How long a limit of bandwidth has held bodies back, all together; a shadow limit would
    /// have.
    pub fn held_back(&self) -> Duration {
        Duration::from_nanos(self.sum(|stripe| &stripe.held_back_nanos))
    }

    fn sum(&self, count: impl Fn(&Stripe) -> &AtomicU64) -> u64 {
        let counts = self.stripes.iter().map(count);
        counts.map(|count| count.load(Ordering::Relaxed)).sum()
    }
}

/// Somebody waits for some limits: counted there until this is dropped.
#[derive(Debug)]
pub(crate) struct InWait(SmallVec<[Arc<Counts>; 1]>);

impl InWait {
    pub(crate) fn begin<'a>(limits: impl Iterator<Item = &'a Arc<Counts>>) -> Self {
        let limits = limits.inspect(|limit| limit.waits.begin());
        Self(limits.cloned().collect())
    }
}

impl Drop for InWait {
    fn drop(&mut self) {
        for limit in &self.0 {
            limit.waits.end();
        }
    }
}

fn stripe() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MINE: usize = NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES;
    }
    MINE.with(|mine| *mine)
}
