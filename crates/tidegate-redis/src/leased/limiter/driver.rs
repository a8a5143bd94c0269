//! Makes the calls of a leased limiter: one at a time for each key, when it is due.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tidegate::Timestamp;
use tokio::task::JoinSet;

use super::table::Entry;
use super::{Shared, until};
use crate::backoff::random;
use crate::call::Scripts;
use crate::leased::node::LEASE_BUDGET;
use crate::leased::wire::{LeaseReply, LeaseRequest};

/// Calls that are started in one turn; then whoever carries them gets to write them out.
const CALLS_PER_TURN: usize = 64;
/// Calls that are under way at once.
const MAX_CALLS: usize = 1024;
/// Longer than this the driver does not rest.
const LONGEST_REST: Duration = Duration::from_secs(1);

/// Keeps the leases of a [`LeasedLimiter`](super::LeasedLimiter) going. Without it running, nothing
/// is ever admitted.
#[must_use = "nothing is admitted unless the driver runs"]
pub struct LeaseDriver {
    shared: Arc<Shared>,
    scripts: Arc<dyn Scripts>,
    /// What is to be looked at, and when.
    queue: BinaryHeap<Reverse<Queued>>,
    /// What is to be looked at now, and had no place in the last turn.
    ready: VecDeque<Arc<Entry>>,
    calls: JoinSet<Arc<Entry>>,
}

impl fmt::Debug for LeaseDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseDriver")
            .field("scripts", &self.scripts)
            .field("calls", &self.calls.len())
            .finish_non_exhaustive()
    }
}

/// An entry and when it is due, in that order.
struct Queued {
    due: Timestamp,
    entry: Arc<Entry>,
}

impl Ord for Queued {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.due.cmp(&other.due)
    }
}

impl PartialOrd for Queued {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Queued {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}

impl Eq for Queued {}

impl LeaseDriver {
    pub(super) fn new(shared: Arc<Shared>, scripts: Arc<dyn Scripts>) -> Self {
        Self {
            shared,
            scripts,
            queue: BinaryHeap::new(),
            ready: VecDeque::new(),
            calls: JoinSet::new(),
        }
    }

    /// Runs until the last clone of the limiter is dropped, and then gives back what is leased. It
    /// must run in a tokio runtime with time.
    ///
    /// # Cancel safety
    /// When the future is dropped leases run out and nothing more is admitted.
    pub async fn run(mut self) {
        while !self.shared.table.is_closed() {
            self.turn();
            self.rest().await;
        }
        self.leave().await;
    }

    /// Starts the calls that are due, up to so many.
    fn turn(&mut self) {
        let now = self.shared.clock.now();
        while let Some(ended) = self.calls.try_join_next() {
            self.ended(ended.ok(), now);
        }
        self.ready.extend(self.shared.table.take_urgent());
        while let Some(Reverse(next)) = self.queue.peek()
            && next.due <= now
        {
            if let Some(Reverse(Queued { due, entry })) = self.queue.pop()
                && entry.is_due_at(due)
            {
                self.ready.push_back(entry);
            }
        }
        for _ in 0..CALLS_PER_TURN {
            if self.calls.len() >= MAX_CALLS {
                return;
            }
            let Some(entry) = self.ready.pop_front() else {
                return;
            };
            self.look_at(entry);
        }
    }

    fn look_at(&mut self, entry: Arc<Entry>) {
        if !self.shared.table.holds(&entry) {
            return;
        }
        let now = self.shared.clock.now();
        match entry.node.refresh(now) {
            Some(request) => self.start(entry, request),
            // Under way already, or gone.
            None if entry.node.has_left() => self.left(&entry, now),
            None => {}
        }
    }

    fn start(&mut self, entry: Arc<Entry>, request: LeaseRequest) {
        let shared = Arc::clone(&self.shared);
        let scripts = Arc::clone(&self.scripts);
        shared
            .asked
            .fetch_add(entry.node.take_asked(), Ordering::Relaxed);
        self.calls.spawn(async move {
            let call = request.call(&entry.redis_key, shared.table.terms());
            let answer = scripts.call(call, LEASE_BUDGET).await;
            let reply = answer.and_then(|answer| LeaseReply::of(shared.table.terms(), &answer));
            let now = shared.clock.now();
            shared.calls.fetch_add(1, Ordering::Relaxed);
            match reply {
                Ok(reply) => entry.node.answered(&request, &reply, now, random()),
                Err(error) => {
                    shared.failed.fetch_add(1, Ordering::Relaxed);
                    tracing::debug!(%error, key = &*entry.key, "a lease was not refreshed");
                    entry.node.failed(&request, now, random());
                }
            }
            entry.answered.notify_waiters();
            entry
        });
    }

    fn ended(&mut self, entry: Option<Arc<Entry>>, now: Timestamp) {
        let Some(entry) = entry else { return };
        if entry.node.has_left() {
            self.left(&entry, now);
        } else {
            self.schedule(&entry, entry.node.next_refresh());
        }
    }

    fn left(&mut self, entry: &Arc<Entry>, now: Timestamp) {
        if let Some(again) = self.shared.table.replace(entry, now) {
            self.schedule(&again, now);
        }
    }

    fn schedule(&mut self, entry: &Arc<Entry>, due: Timestamp) {
        entry.set_due(due);
        let entry = Arc::clone(entry);
        self.queue.push(Reverse(Queued { due, entry }));
    }

    /// Waits until there may be something to do.
    async fn rest(&mut self) {
        if !self.ready.is_empty() && self.calls.len() < MAX_CALLS {
            // Not now: first those who carry the calls that were started.
            tokio::task::yield_now().await;
            return;
        }
        let rest = match self.queue.peek() {
            Some(Reverse(next)) => until(&*self.shared.clock, next.due).min(LONGEST_REST),
            None => LONGEST_REST,
        };
        tokio::select! {
            () = self.shared.wake.notified() => {}
            () = tokio::time::sleep(rest) => {}
            Some(ended) = self.calls.join_next() => {
                let now = self.shared.clock.now();
                self.ended(ended.ok(), now);
            }
        }
    }

    /// Says goodbye for every key, so that others need not wait for the leases to end.
    async fn leave(mut self) {
        while self.calls.join_next().await.is_some() {}
        let entries = self.shared.table.all();
        for some in entries.chunks(CALLS_PER_TURN) {
            for entry in some {
                let now = self.shared.clock.now();
                if let Some(request) = entry.node.leave(now) {
                    self.start(Arc::clone(entry), request);
                }
            }
            while self.calls.join_next().await.is_some() {}
        }
    }
}
