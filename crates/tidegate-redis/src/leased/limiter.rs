//! A leased limit as library users hold it.

mod builder;
mod driver;
mod entry;
mod table;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tidegate::{Algorithm, Clock, Decision, Quota, Timestamp};
use tokio::sync::{Notify, watch};

pub use self::builder::LeasedLimiterBuilder;
pub use self::driver::LeaseDriver;
use self::entry::Entry;
use self::table::Table;
use super::node::{Checked, LEASE_BUDGET, LeaseNode, LeaseState, Lot};
use super::pipeline::LeasePipeline;
use super::terms::LeaseTerms;
use super::window;
use super::wire::{NodeId, SpendRequest};
use crate::call::Unavailable;
use crate::key::Subject;

/// How long each call of a reset may take.
const RESET_BUDGET: Duration = Duration::from_millis(25);

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
/// With [`Scheme::Strict`](crate::Scheme::Strict), all nodes together admit in no interval of
/// length *t* more than burst + rate * t, whatever fails: nodes that crash or stand still,
/// connections that break one way or both, messages that are late, lost or doubled, a Redis that is
/// away, and clocks that are up to half a thousandth fast or slow. Three things are beyond that. A
/// Redis that loses what it had acknowledged (a failover, a restart without its data) can admit
/// those grants again, at most the burst; nodes notice, and what was admitted twice is taken off
/// again by their second call. A clock of Redis that is set forward by *d* lets min(burst, rate *
/// d) pass once; set back, nothing. And a machine that is suspended as a whole, whose monotonic
/// clock stands still meanwhile, may go on with what its lease had left.
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
/// runs low early), whatever the traffic; and for a key that is asked for now and then three calls
/// each time: one when it is asked for, one when it is not any more, one when it is forgotten (a
/// few more of a window, whose key does not rest until then). At most 64 calls are under way at
/// once ([`LeasePipeline`]). It takes Redis about 25 us, with few nodes and with hundreds.
///
/// A key that a node has not been asked for before has nothing there until Redis answers: the
/// first [`check`](Self::check) is refused, [`check_async`](Self::check_async) waits. A key that
/// nobody asks for is given back after a refresh, but for a thirty-second part of the burst, which
/// it has until its lease ends.
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
    name: Box<str>,
    pipeline: LeasePipeline,
    /// Whether the driver has ended.
    ended: watch::Sender<bool>,
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

    /// Whether no answer is to be expected.
    fn is_silent(&self) -> bool {
        self.table.is_closed() || self.pipeline.is_down()
    }

    fn entry(&self, key: &str, now: Timestamp) -> Arc<Entry> {
        let (entry, is_crowded) = self.table.entry(key, now);
        if is_crowded {
            self.wake.notify_one();
        }
        entry
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
    /// A limiter of this name. Nodes that give the same name, quota and scheme share buckets, one
    /// for each key.
    pub fn builder(name: &str, quota: Quota) -> LeasedLimiterBuilder {
        LeasedLimiterBuilder::new(name, Algorithm::TokenBucket(quota))
    }

    /// A limiter of this name with so many permits in each window, aligned to the epoch by Redis's
    /// clock. All nodes must have the same numbers.
    pub fn windows(name: &str, permits: u64, window: Duration) -> LeasedLimiterBuilder {
        LeasedLimiterBuilder::new(name, Algorithm::FixedWindow { permits, window })
    }

    /// Takes `permits` of this key if this node has them. It waits for nothing and does no I/O.
    ///
    /// `remaining` is what this node has at hand, not what all have. `retry_after` is the time to
    /// its next refresh, which is a hint. A request for more than [`LeaseTerms::most_lent`] is
    /// refused for good.
    pub fn check(&self, key: &str, permits: u64) -> Decision {
        self.checked(key, permits).decision
    }

    fn checked(&self, key: &str, permits: u64) -> Checked {
        let shared = &self.shared;
        let now = shared.clock.now();
        let check = |entry: &Arc<Entry>| shared.check(entry, now, permits);
        if let Some(checked) = shared.table.with(key, check) {
            return checked;
        }
        if permits == 0 {
            // Who only looks makes nothing.
            return LeaseNode::new(*self.terms(), NodeId(0), now).check(now, 0);
        }
        check(&shared.entry(key, now))
    }

    /// The same; where an answer of Redis is under way that probably brings permits, after that,
    /// for which it waits at most 15 ms, and not while nothing answers: where this node has no
    /// lease of the key, or only what is kept of one that nobody asked for, and where it is asked
    /// for more than it foresaw while the bucket has plenty. Of a window wherever there may be more
    /// of it, and where one has just begun: who is refused there is refused until it ends.
    ///
    /// # Cancel safety
    /// Dropping the future takes nothing: permits are taken at its end.
    pub async fn check_async(&self, key: &str, permits: u64) -> Decision {
        self.checked_async(key, permits).await.decision
    }

    /// The same, with what [`give_back`](Self::give_back) has to know.
    ///
    /// # Cancel safety
    /// As [`check_async`](Self::check_async).
    pub async fn checked_async(&self, key: &str, permits: u64) -> Checked {
        let shared = &self.shared;
        // One that has just been given back is another soon after that, which is new.
        for _ in 0..3 {
            let now = shared.clock.now();
            if permits == 0 {
                break;
            }
            let entry = shared.entry(key, now);
            let answered = entry.answered.notified();
            tokio::pin!(answered);
            // Before the check: an answer that comes right after it is noticed.
            answered.as_mut().enable();
            if !entry.node.has_left() {
                let node = &entry.node;
                let is_asking = node.is_asking();
                let is_provided = node.is_provided(now);
                let had_more = node.has_more_to_come(now);
                let checked = shared.check(&entry, now, permits);
                if checked.decision.is_allowed() || shared.is_silent() {
                    return checked;
                }
                let is_first = !is_provided && (is_asking || checked.is_due);
                if !(is_first || had_more || node.has_more_to_come(now)) {
                    return checked;
                }
                if tokio::time::timeout(LEASE_BUDGET, answered).await.is_err() {
                    return checked;
                }
            }
            if entry.node.has_left() {
                // The driver takes it away.
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        self.checked(key, permits)
    }

    /// Puts back permits of an allowed check that were not used, of the lot that it named
    /// ([`checked_async`](Self::checked_async)). If this node has told Redis meanwhile that they
    /// are spent they are lost: less is admitted, never more.
    pub fn give_back(&self, key: &str, permits: u64, lot: Lot) {
        if let Some(entry) = self.shared.table.get(key) {
            entry.node.give_back(lot, self.shared.clock.now(), permits);
        }
    }

    /// Makes a key as good as new: its bucket in Redis is full but for what is lent to nodes, which
    /// may spend that. So what all nodes admit from then on is at most the burst and the rate, as
    /// after a rest; and this node asks for more at once. A window begins anew, with all its
    /// permits, and ends when it would have: what nodes have on lease of it is worth nothing from
    /// their next refresh on. Of one that was used up those come within 1.5 s.
    ///
    /// # Errors
    /// [`Unavailable`] where Redis does not answer in time: it may have been done.
    pub async fn reset(&self, key: &str) -> Result<(), Unavailable> {
        let shared = &self.shared;
        let redis_key = redis_key(key, &shared.name, &self.terms().family());
        let calls = if let Some(length) = self.terms().window_micros {
            vec![window::reset(&redis_key, self.terms(), length)]
        } else {
            let request = SpendRequest {
                want: 0,
                unit: 1,
                returned: self.terms().burst(),
            };
            // What is owed may be as much as the burst, too.
            vec![request.call(&redis_key, self.terms()); 2]
        };
        for call in calls {
            shared.pipeline.scripts().call(call, RESET_BUDGET).await?;
        }
        if let Some(entry) = shared.table.get(key)
            && shared.table.urge(&entry)
        {
            shared.wake.notify_one();
        }
        Ok(())
    }

    /// Has the driver give back all that is leased, and waits until it has ended. From then on
    /// nothing is admitted.
    ///
    /// # Cancel safety
    /// Dropped before, the driver goes on with it.
    pub async fn leave(&self) {
        let mut ended = self.shared.ended.subscribe();
        self.shared.table.close();
        self.shared.wake.notify_one();
        // An error would mean that the sender is gone, which is here.
        let _ = ended.wait_for(|ended| *ended).await;
    }

    pub(super) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.shared.clock)
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

/// How long until a time, by a clock.
fn until(clock: &dyn Clock, then: Timestamp) -> Duration {
    then.since(clock.now())
}

/// The key in Redis of a key of a limit.
pub(super) fn redis_key(key: &str, limit: &str, family: &str) -> Vec<u8> {
    crate::key::key_of(family, &Subject::from(key), limit)
}
