//! Who waits for a limit, and for how long those waited who went ahead.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counted only where somebody waits, which costs more than to count it.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    now: AtomicU64,
    buckets: [AtomicU64; WaitsSnapshot::BOUNDS.len() + 1],
    nanos: AtomicU64,
}

/// Waits for one limit, as of about now.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct WaitsSnapshot {
    /// Those who wait: in line for a place, or for the time that a rate gave them.
    pub now: u64,
    /// How long all waited together who went ahead.
    pub total: Duration,
    /// How many of them waited at most as long as each of [`BOUNDS`](Self::BOUNDS), but longer than
    /// the bound before; the last are those who waited longer.
    pub buckets: [u64; Self::BOUNDS.len() + 1],
}

impl WaitsSnapshot {
    /// Bounds of waits, in ms.
    pub const BOUNDS: [u64; 10] = [1, 5, 10, 50, 100, 500, 1_000, 5_000, 10_000, 30_000];

    /// How many have waited and gone ahead.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

impl Waits {
    pub(crate) fn begin(&self) {
        self.now.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end(&self) {
        self.now.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn record(&self, time: Duration) {
        let is_within = |bound: &u64| time <= Duration::from_millis(*bound);
        let bounds = &WaitsSnapshot::BOUNDS;
        let bucket = bounds.iter().position(is_within).unwrap_or(bounds.len());
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self) -> WaitsSnapshot {
        WaitsSnapshot {
            now: self.now.load(Ordering::Relaxed),
            total: Duration::from_nanos(self.nanos.load(Ordering::Relaxed)),
            buckets: self.buckets.each_ref().map(|n| n.load(Ordering::Relaxed)),
        }
    }
}
