//! A leased limit as library users hold it.

mod driver;
mod table;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tidegate::{Algorithm, Clock, Decision, Quota, SystemClock, Timestamp};
use tokio::sync::Notify;

pub use self::driver::LeaseDriver;
use self::table::{Entry, Table};
use super::node::{Checked, LEASE_BUDGET, LeaseState};
use super::terms::{LeaseError, LeaseTerms, Scheme};
use crate::call::Scripts;
use crate::key::Subject;

/// Keys that are held at once unless told otherwise.
const MAX_KEYS: usize = 100_000;

/// A token bucket, or a fixed window, per key that many nodes share through one Redis, and decide
/// on locally.
///
/// ```no_run
/// # use tidegate_redis::{Endpoint, LeaseError};
/// # async fn example(endpoint: Endpoint) -> Result<(), LeaseError> {
/// use std::sync::Arc;
/// use tidegate::Quota;
/// use tidegate_redis::LeasedLimiter;
///
/// // The endpoint was started with the script `LEASE`.
/// // At most 10,000 at once and 100,000 per second, all nodes together.
/// let quota = Quota::per_second(100_000).burst(10_000);
/// let (limiter, driver) = LeasedLimiter::builder("api", quota).build(Arc::new(endpoint))?;
/// tokio::spawn(driver.run());
///
/// if limiter.check("alice", 1).is_allowed() {
///     // go ahead
/// }
/// # Ok(())
/// # }
/// ```
///
/// # What it guarantees
///
/// With [`Scheme::Strict`], all nodes together admit in no interval of length *t* more than
/// burst + rate * t, whatever fails: nodes that crash or stand still, connections that break one
/// way or both, messages that are late, lost or doubled, a Redis that is away, and clocks that are
/// up to half a thousandth fast or slow. Three things are beyond that. A Redis that loses what it
/// had acknowledged (a failover, a restart without its data) can admit those grants again, at most
/// the burst; nodes notice, and what was admitted twice is taken off again by their second call. A
/// clock of Redis that is set forward by *d* lets min(burst, rate * d) pass once; set back,
/// nothing. And a machine that is suspended as a whole, whose monotonic clock stands still
/// meanwhile, may go on with what its lease had left.
///
/// While Redis is away each node admits its share of the rate for 3 seconds, from three refreshes
/// after the last answer on; after that it refuses. How much of the limit stays unused because
/// permits lie with a node that does not need them is bounded by what comes in one and a half
/// refreshes, three eighths of the burst; at a steady load it is below 1 %.
///
/// Of a [window](Self::windows) never more than its permits are admitted between its beginning
/// and its end by Redis's clock, whatever fails but for the same three things: what Redis loses
/// nodes tell it again, each with its next call, so at most what was granted and lost passes
/// twice; a clock of Redis that is set forward ends windows early, and what nodes have left of them
/// may pass in the next; set back by up to a window, the one that was reached goes on. Nothing is
/// minted: while Redis is away a node has what it was lent, until the window ends. What a node
/// that crashed has not used stays unused for the rest of the window: one refresh and a half of its
/// demand. A window begins with a call, for which [`check_async`](Self::check_async) waits.
///
/// # What it costs
///
/// One call of Redis per key, node and [refresh](LeaseTerms::refresh) (up to four where a lease
/// runs low early), whatever the traffic. Redis does work in proportion to the number of nodes:
/// with more than 24 of them a shared key costs it a few percent of a core.
///
/// A key that a node has not been asked for before has nothing there until Redis answers: the
/// first [`check`](Self::check) is refused, [`check_async`](Self::check_async) waits. A key that
/// nobody asks for is given back within seconds.
///
/// Clones are the same limiter. When the last is dropped its driver says goodbye and ends.
#[derive(Clone)]
pub struct LeasedLimiter {
    shared: Arc<Shared>,
    _open: Arc<Open>,
}

/// What limiter and driver share.
struct Shared {
    table: Table,
    clock: Arc<dyn Clock>,
    /// There is something to do for the driver.
    wake: Notify,
    calls: AtomicU64,
    failed: AtomicU64,
    asked: AtomicU64,
}

impl Shared {
    fn check(&self, entry: &Arc<Entry>, now: Timestamp, permits: u64) -> Checked {
        let checked = entry.node.check(now, permits);
        if checked.is_due && self.table.urge(entry) {
            self.wake.notify_one();
        }
        checked
    }
}

/// There while a limiter is.
struct Open(Arc<Shared>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.table.close();
        self.0.wake.notify_one();
    }
}

/// What a limiter has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseStats {
    /// Keys that are held now.
    pub keys: usize,
    /// Calls of Redis.
    pub calls: u64,
    /// Calls that had no answer.
    pub failed: u64,
    /// Permits that were asked for, as of the last refresh of each key.
    pub asked: u64,
}

impl LeaseStats {
    /// Calls of Redis for each 1,000 permits asked for; 0 before any.
    pub fn calls_per_1000(&self) -> f64 {
        match self.asked {
            0 => 0.0,
            asked => 1000.0 * self.calls as f64 / asked as f64,
        }
    }
}

/// What one key of a limiter is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseKeyStats {
    /// On what it lives.
    pub state: LeaseState,
    /// Permits asked of this node per second, as of the last refresh.
    pub demand: u64,
    /// How many nodes are asked for it, as of the last answer.
    pub nodes: u64,
    /// Permits that were minted while Redis was away.
    pub minted: u64,
}

impl fmt::Debug for LeasedLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeasedLimiter")
            .field("terms", self.terms())
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

impl LeasedLimiter {
    /// A limiter of this name. Nodes that give the same name, and keys, share buckets; all of them
    /// must have the same quota and scheme.
    pub fn builder(name: &str, quota: Quota) -> LeasedLimiterBuilder {
        LeasedLimiterBuilder {
            name: name.to_owned(),
            algorithm: Algorithm::TokenBucket(quota),
            scheme: Scheme::default(),
            max_keys: MAX_KEYS,
            clock: None,
        }
    }

    /// A limiter of this name with so many permits in each window, aligned to the epoch by Redis's
    /// clock. All nodes must have the same numbers.
    pub fn windows(name: &str, permits: u64, window: Duration) -> LeasedLimiterBuilder {
        LeasedLimiterBuilder {
            algorithm: Algorithm::FixedWindow { permits, window },
            ..Self::builder(name, Quota::new(permits, window))
        }
    }

    /// Takes `permits` of this key if this node has them. It waits for nothing and does no I/O.
    ///
    /// `remaining` is what this node has at hand, not what all have. `retry_after` is the time to
    /// its next refresh, which is a hint. A request for more than [`LeaseTerms::most_lent`] is
    /// refused for good.
    pub fn check(&self, key: &str, permits: u64) -> Decision {
        let shared = &self.shared;
        let now = shared.clock.now();
        let check = |entry: &Arc<Entry>| shared.check(entry, now, permits);
        let checked = shared.table.with(key, check);
        let checked = checked.unwrap_or_else(|| check(&shared.table.entry(key, now)));
        checked.decision
    }

    /// The same; where Redis has not answered for this key yet, after the first answer, for which
    /// it waits at most 15 ms. A key that is just being given back is waited for as long, too, and
    /// so is a window that has just begun.
    ///
    /// # Cancel safety
    /// Dropping the future takes nothing: permits are taken at its end.
    pub async fn check_async(&self, key: &str, permits: u64) -> Decision {
        self.checked_async(key, permits).await.decision
    }

    /// The same, with what [`give_back_to`](Self::give_back_to) has to know.
    pub(crate) async fn checked_async(&self, key: &str, permits: u64) -> Checked {
        let shared = &self.shared;
        // One that is given back is another soon after that, which is new.
        for _ in 0..3 {
            let now = shared.clock.now();
            let entry = shared.table.entry(key, now);
            let answered = entry.answered.notified();
            tokio::pin!(answered);
            // Before the check: an answer that comes right after it is noticed.
            answered.as_mut().enable();
            let is_to_come = entry.node.is_to_come(now);
            let checked = shared.check(&entry, now, permits);
            if checked.decision.is_allowed() || !is_to_come {
                return checked;
            }
            if tokio::time::timeout(LEASE_BUDGET, answered).await.is_err() {
                return checked;
            }
            if entry.node.has_left() {
                // The driver puts the other in its place.
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        let now = shared.clock.now();
        shared.check(&shared.table.entry(key, now), now, permits)
    }

    /// Puts back permits of an allowed check that were not used. If this node has told Redis
    /// meanwhile that they are spent they are lost: less is admitted, never more. So are permits of
    /// windows: of which one they were is not said here.
    pub fn give_back(&self, key: &str, permits: u64) {
        self.give_back_to(0, key, permits);
    }

    /// The same, of the window that the check named.
    pub(crate) fn give_back_to(&self, window: u64, key: &str, permits: u64) {
        if let Some(entry) = self.shared.table.get(key) {
            let now = self.shared.clock.now();
            entry.node.give_back_to(window, now, permits);
        }
    }

    /// The numbers that this limit is leased with.
    pub fn terms(&self) -> &LeaseTerms {
        self.shared.table.terms()
    }

    /// What has been done so far, all keys together.
    pub fn stats(&self) -> LeaseStats {
        let shared = &self.shared;
        LeaseStats {
            keys: shared.table.len(),
            calls: shared.calls.load(Ordering::Relaxed),
            failed: shared.failed.load(Ordering::Relaxed),
            asked: shared.asked.load(Ordering::Relaxed),
        }
    }

    /// What this key does; `None` where nobody has asked for it for a while.
    pub fn key_stats(&self, key: &str) -> Option<LeaseKeyStats> {
        let node = &self.shared.table.get(key)?.node;
        Some(LeaseKeyStats {
            state: node.state(self.shared.clock.now()),
            demand: node.demand(),
            nodes: node.nodes(),
            minted: node.minted(),
        })
    }
}

/// Makes a [`LeasedLimiter`].
#[derive(Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct LeasedLimiterBuilder {
    name: String,
    algorithm: Algorithm,
    scheme: Scheme,
    max_keys: usize,
    clock: Option<Arc<dyn Clock>>,
}

impl LeasedLimiterBuilder {
    /// How nodes that have fallen silent are treated; strict unless said.
    pub const fn scheme(mut self, scheme: Scheme) -> Self {
        self.scheme = scheme;
        self
    }

    /// The most keys that this node holds at once, at least 1; 100,000 unless said. Beyond that a
    /// new key takes the place of one near it that is asked for least, whose lease then runs out
    /// unused.
    pub fn max_keys(mut self, max_keys: usize) -> Self {
        self.max_keys = max_keys.max(1);
        self
    }

    /// Another clock than the system's: it must go on as tokio's timers do.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// The limiter, and what has to run for it to have anything.
    ///
    /// # Errors
    /// [`LeaseError`] where the limit cannot be leased.
    pub fn build(
        self,
        scripts: Arc<dyn Scripts>,
    ) -> Result<(LeasedLimiter, LeaseDriver), LeaseError> {
        let terms = LeaseTerms::of(&self.algorithm, self.scheme)?;
        let shared = Arc::new(Shared {
            table: Table::new(terms, &self.name, self.max_keys),
            clock: self.clock.unwrap_or_else(|| Arc::new(SystemClock::new())),
            wake: Notify::new(),
            calls: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            asked: AtomicU64::new(0),
        });
        let limiter = LeasedLimiter {
            shared: Arc::clone(&shared),
            _open: Arc::new(Open(Arc::clone(&shared))),
        };
        Ok((limiter, LeaseDriver::new(shared, scripts)))
    }
}

/// How long until a time, by a clock.
fn until(clock: &dyn Clock, then: Timestamp) -> Duration {
    then.since(clock.now())
}

/// The key in Redis of a key of a limit.
pub(super) fn redis_key(key: &str, limit: &str, terms: &LeaseTerms) -> Vec<u8> {
    let family = match terms.window_micros {
        Some(_) => "tgw",
        None => "tgb",
    };
    crate::key::key_of(family, &Subject::from(key), limit)
}
