//! Makes the calls of a leased limiter: one at a time for each key, when it is due, and so many at
//! once as the [pipeline](LeasePipeline) lets through. Keys that somebody asks for come first, then
//! those whose time has come, in that order, and those that say goodbye last.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tidegate::Timestamp;
use tokio::task::JoinSet;

use super::entry::{Entry, LINES, Line};
use super::{Shared, until};
use crate::backoff::random;
use crate::leased::pipeline::{LeasePipeline, Place, STAND_BY, Turn};
use crate::leased::wire::{LeaseReply, LeaseRequest};

/// Longer than this the driver does not rest.
const LONGEST_REST: Duration = Duration::from_secs(1);

/// Keys that wait to say goodbye. Those beyond that are forgotten, and what they had runs out.
const MOST_LEAVING: usize = 16_384;

/// Keeps the leases of a [`LeasedLimiter`](super::LeasedLimiter) going. Without it running, nothing
/// is ever admitted.
#[must_use = "nothing is admitted unless the driver runs"]
pub struct LeaseDriver {
    shared: Arc<Shared>,
    pipeline: LeasePipeline,
    /// What is to be looked at, and when.
    queue: BinaryHeap<Reverse<Queued>>,
    /// What is to be looked at now.
    lines: [VecDeque<Arc<Entry>>; LINES.len()],
    calls: JoinSet<Arc<Entry>>,
}

impl fmt::Debug for LeaseDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseDriver")
            .field("pipeline", &self.pipeline)
            .field("calls", &self.calls.len())
            .finish_non_exhaustive()
    }
}

impl Drop for LeaseDriver {
    fn drop(&mut self) {
        self.shared.ended.send_replace(true);
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
    pub(super) fn new(shared: Arc<Shared>, pipeline: LeasePipeline) -> Self {
        Self {
            shared,
            pipeline,
            queue: BinaryHeap::new(),
            lines: Default::default(),
            calls: JoinSet::new(),
        }
    }

    /// Runs until the last clone of the limiter is dropped, or it is told to
    /// [leave](super::LeasedLimiter::leave), and then gives back what is leased. It must run in a
    /// tokio runtime with time.
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

    /// Starts the calls that are due, as many as there is room for.
    fn turn(&mut self) {
        let now = self.shared.clock.now();
        while let Some(ended) = self.calls.try_join_next() {
            self.ended(ended.ok());
        }
        for (line, entry) in self.shared.table.take_urgent() {
            self.lines[line as usize].push_back(entry);
        }
        while let Some(Reverse(next)) = self.queue.peek()
            && next.due <= now
        {
            if let Some(Reverse(Queued { due, entry })) = self.queue.pop()
                && entry.is_due_at(due)
            {
                let line = if entry.node.is_over(now) {
                    Line::Leaving
                } else {
                    Line::Due
                };
                if entry.enters(line) {
                    self.lines[line as usize].push_back(entry);
                }
            }
        }
        self.forget_beyond(MOST_LEAVING, now);
        while self.is_waited_for() {
            match self.pipeline.turn(now) {
                Ok(place) => {
                    let Some((entry, request)) = self.next(now) else {
                        return;
                    };
                    self.start(place, entry, request);
                }
                Err(Turn::Down(until)) => self.stand_by(now, until),
                Err(_) => return,
            }
        }
    }

    /// Of those that are to say goodbye the last ones are forgotten without, beyond so many.
    fn forget_beyond(&mut self, most: usize, now: Timestamp) {
        let leaving = &mut self.lines[Line::Leaving as usize];
        for entry in leaving.drain(most.min(leaving.len())..) {
            entry.leaves_line(Line::Leaving);
            // Somebody may have asked for it since it came to stand there.
            if entry.node.is_over(now) && !entry.node.is_asking() {
                self.shared.table.remove(&entry);
            }
        }
    }

    fn is_waited_for(&self) -> bool {
        self.lines.iter().any(|line| !line.is_empty())
    }

    /// The next call to make.
    fn next(&mut self, now: Timestamp) -> Option<(Arc<Entry>, LeaseRequest)> {
        for line in LINES {
            while let Some(entry) = self.lines[line as usize].pop_front() {
                entry.leaves_line(line);
                if let Some(request) = self.look_at(&entry, line, now) {
                    return Some((entry, request));
                }
            }
        }
        None
    }

    fn look_at(&self, entry: &Arc<Entry>, line: Line, now: Timestamp) -> Option<LeaseRequest> {
        if entry.is_ousted() {
            return entry.node.leave(now);
        }
        // It may have been looked at since it came to stand there.
        let is_late = line != Line::Wanted && now < entry.node.next_refresh();
        if is_late || !self.shared.table.holds(entry) {
            return None;
        }
        if line != Line::Wanted && entry.node.is_given_up(now) {
            self.shared.table.remove(entry);
            return None;
        }
        let request = entry.node.refresh(now);
        if request.is_none() && entry.node.has_left() {
            self.shared.table.remove(entry);
        }
        request
    }

    /// Nothing answers: whoever waits goes on without, and is looked at again when somebody asks.
    fn stand_by(&mut self, now: Timestamp, until: Timestamp) {
        let until = until.max(now.after(STAND_BY));
        for line in LINES {
            for entry in std::mem::take(&mut self.lines[line as usize]) {
                entry.leaves_line(line);
                if entry.is_ousted() || !self.shared.table.holds(&entry) {
                    continue;
                }
                if line == Line::Leaving {
                    // Redis counts nothing of it any more.
                    self.shared.table.remove(&entry);
                    continue;
                }
                entry.node.stand_by(until);
                if !entry.is_scheduled_after(now) {
                    let due = entry.node.forgotten_at();
                    self.schedule(&entry, due.max(now.after(LONGEST_REST)));
                }
            }
        }
    }

    fn start(&mut self, place: Place, entry: Arc<Entry>, request: LeaseRequest) {
        let shared = Arc::clone(&self.shared);
        shared
            .asked
            .fetch_add(entry.node.take_asked(), Ordering::Relaxed);
        self.calls.spawn(async move {
            let call = request.call(&entry.redis_key, shared.table.terms());
            let answer = place.call(call, || shared.clock.now()).await;
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

    fn ended(&mut self, entry: Option<Arc<Entry>>) {
        let Some(entry) = entry else { return };
        if entry.node.has_left() {
            self.shared.table.remove(&entry);
        } else if entry.is_ousted() {
            if entry.enters(Line::Leaving) {
                self.lines[Line::Leaving as usize].push_back(entry);
            }
        } else {
            self.schedule(&entry, entry.node.next_refresh());
        }
    }

    fn schedule(&mut self, entry: &Arc<Entry>, due: Timestamp) {
        entry.set_due(due);
        let entry = Arc::clone(entry);
        self.queue.push(Reverse(Queued { due, entry }));
    }

    /// Waits until there may be something to do.
    async fn rest(&mut self) {
        let pipeline = self.pipeline.clone();
        let mut freed = pin!(pipeline.freed());
        let is_full = self.is_waited_for();
        // Before it is looked whether there is room: what ends right after that is noticed.
        freed.as_mut().enable();
        if is_full && pipeline.has_room() {
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
            () = freed, if is_full => {}
            Some(ended) = self.calls.join_next() => self.ended(ended.ok()),
        }
    }

    /// Says goodbye for every key, so that others need not wait for the leases to end: first for
    /// those that are asked for most. Nothing is said where nothing answers.
    async fn leave(mut self) {
        while self.calls.join_next().await.is_some() {}
        let mut entries = self.shared.table.all();
        entries.sort_by_cached_key(|entry| Reverse(entry.node.demand()));
        let pipeline = self.pipeline.clone();
        for entry in entries {
            loop {
                let freed = pipeline.freed();
                let now = self.shared.clock.now();
                match pipeline.turn(now) {
                    Ok(place) => {
                        if let Some(request) = entry.node.leave(now) {
                            self.start(place, entry, request);
                        }
                        break;
                    }
                    Err(Turn::Down(_)) => return,
                    Err(_) => {
                        let _ = tokio::time::timeout(STAND_BY, freed).await;
                    }
                }
            }
        }
        while self.calls.join_next().await.is_some() {}
    }
}
