//! What the gateway counts of itself: plain numbers, one set per core, added up when read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Reads the counters of a running gateway. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Counters {
    cores: Arc<[Arc<CoreCounters>]>,
}

/// The counters at one moment. All but the last two only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CountersSnapshot {
    /// Client connections accepted.
    pub connections_accepted: u64,
    /// Client connections that were too many: closed at once, not among those accepted.
    pub connections_refused: u64,
    /// Client connections closed because a deadline passed (a header that did not end, a
    /// client that stopped reading).
    pub connections_timed_out: u64,
    /// `accept` failed (too many open files).
    pub accept_errors: u64,
    /// Requests answered, by the class of their status: 1xx (never), 2xx, ... 5xx.
    pub responses: [u64; 5],
    /// Requests refused by a limit; they are among `responses` too.
    pub refused: u64,
    /// Requests that may not come in; they are among `responses` too.
    pub denied: u64,
    /// Requests sent to an upstream server.
    pub upstream_requests: u64,
    /// Connections opened to upstream servers.
    pub upstream_connections: u64,
    /// Attempts to connect to an upstream server that failed.
    pub upstream_connect_errors: u64,
    /// Responses that an upstream server did not begin in time.
    pub upstream_timeouts: u64,
    /// Exchanges that an upstream server broke off, before or within its response.
    pub upstream_broken: u64,
    /// Requests that went over another connection because a pooled one turned out to be closed:
    /// they had not been sent, or may be done twice.
    pub upstream_retries: u64,
    /// Panics that were caught; each has cost its client connection.
    pub panics: u64,
    /// Lines of the access log that were handed over to be written.
    pub access_log_lines: u64,
    /// Lines of the access log that were dropped: more were waiting than may, or writing failed.
    pub access_log_dropped: u64,
    /// Client connections that are open.
    pub connections_open: u64,
    /// Upstream connections that wait in a pool.
    pub upstream_idle: u64,
}

macro_rules! core_counters {
    ($($name:ident),+ $(,)?) => {
        /// One core's counters. Only its own thread writes, so that a plain store is enough.
        #[derive(Debug, Default)]
        // A line of its own: a neighbour's writes would slow down ours.
        #[repr(align(128))]
        pub(crate) struct CoreCounters {
            responses: [AtomicU64; 5],
            $(pub(crate) $name: Counter,)+
        }

        impl CoreCounters {
            fn add_to(&self, sum: &mut CountersSnapshot) {
                for (sum, count) in sum.responses.iter_mut().zip(&self.responses) {
                    *sum += count.load(Ordering::Relaxed);
                }
                $(sum.$name += self.$name.get();)+
            }
        }
    };
}

core_counters!(
    connections_accepted,
    connections_refused,
    connections_timed_out,
    accept_errors,
    refused,
    denied,
    upstream_requests,
    upstream_connections,
    upstream_connect_errors,
    upstream_timeouts,
    upstream_broken,
    upstream_retries,
    panics,
    access_log_lines,
    access_log_dropped,
    connections_open,
    upstream_idle,
);

impl CoreCounters {
    pub(crate) fn response(&self, status: http::StatusCode) {
        let class = usize::from(status.as_u16() / 100).saturating_sub(1);
        if let Some(count) = self.responses.get(class) {
            count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }
}

/// A number with one writer.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, more: u64) {
        self.0
            .store(self.get().wrapping_add(more), Ordering::Relaxed);
    }

    pub(crate) fn subtract(&self, less: u64) {
        self.0
            .store(self.get().wrapping_sub(less), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    /// Of so many threads that count.
    pub(crate) fn new(cores: usize) -> Self {
        Self {
            cores: (0..cores).map(|_| Arc::default()).collect(),
        }
    }

    pub(crate) fn core(&self, index: usize) -> Arc<CoreCounters> {
        Arc::clone(&self.cores[index])
    }

    /// The sums over all cores, as of about now.
    pub fn snapshot(&self) -> CountersSnapshot {
        let mut sum = CountersSnapshot::default();
        for core in self.cores.iter() {
            core.add_to(&mut sum);
        }
        sum
    }
}
