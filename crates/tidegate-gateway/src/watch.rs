//! What a client connection waits for, and until when.
//!
//! One timer per connection instead of one per wait: the parts of a connection note here what
//! they wait for, which costs a store, and the connection's own task looks from time to time
//! whether a deadline has passed. All of it runs in one task, so that whoever is told finds out
//! when it is polled next, which is in the same call.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Deadlines of one client connection.
#[derive(Debug)]
pub(crate) struct Watch {
    phase: Cell<Phase>,
    deadline: Cell<Option<Instant>>,
    /// The time at which the connection's task was polled: one clock reading for all that
    /// happens in one poll.
    now: Cell<Instant>,
    response_expired: Cell<bool>,
    upload_stalled: Cell<bool>,
    /// Whether a piece of the request is held back by its limits: whoever waits for it is not
    /// late.
    upload_held: Cell<bool>,
}

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The first byte of a request.
    Idle,
    /// The rest of a request's header.
    Header,
    /// Something with a bound of its own: a delay that a limit imposed, or a connection attempt.
    Held,
    /// The header of the upstream's response.
    Response,
    /// The next piece of a response's body, or that the client takes what is there.
    Body,
}

impl Watch {
    /// A new connection is given `header_timeout` for its first request.
    pub(crate) fn new(now: Instant, header_timeout: Duration) -> Self {
        Self {
            phase: Cell::new(Phase::Header),
            deadline: Cell::new(now.checked_add(header_timeout)),
            now: Cell::new(now),
            response_expired: Cell::new(false),
            upload_stalled: Cell::new(false),
            upload_held: Cell::new(false),
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase.get()
    }

    pub(crate) fn now(&self) -> Instant {
        self.now.get()
    }

    pub(crate) fn set_now(&self, now: Instant) {
        self.now.set(now);
    }

    /// From now on `phase`, for at most `timeout`.
    pub(crate) fn expect(&self, phase: Phase, timeout: Duration) {
        self.phase.set(phase);
        // Too far away to be a time: no deadline.
        self.deadline.set(self.now.get().checked_add(timeout));
    }

    /// From now on something that has its own bound.
    pub(crate) fn hold(&self) {
        self.phase.set(Phase::Held);
        self.deadline.set(None);
    }

    /// From now on a response, which may take `timeout` from the last piece of the request.
    pub(crate) fn expect_response(&self, timeout: Duration) {
        self.response_expired.set(false);
        self.upload_stalled.set(false);
        self.expect(Phase::Response, timeout);
    }

    /// The client has sent a piece of the request (`true`), or keeps the upstream waiting for
    /// one (`false`).
    pub(crate) fn upload_moved(&self, moved: bool, timeout: Duration) {
        self.upload_stalled.set(!moved);
        if moved && self.phase.get() == Phase::Response {
            self.expect(Phase::Response, timeout);
        }
    }

    /// A piece of the request is held back by its limits (`true`), or not any more: then the
    /// upstream has `timeout` for what it may be waiting for.
    pub(crate) fn hold_upload(&self, held: bool, timeout: Duration) {
        let was_held = self.upload_held.replace(held);
        let phase = self.phase.get();
        if was_held && !held && matches!(phase, Phase::Response | Phase::Body) {
            self.expect(phase, timeout);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let waits = matches!(self.phase.get(), Phase::Response | Phase::Body);
        (self.deadline.get()).filter(|_| !(waits && self.upload_held.get()))
    }

    /// The upstream has not answered in time, though the client had sent all that it was asked
    /// for.
    pub(crate) fn response_late(&self) -> Option<Late> {
        self.response_expired.get().then(|| {
            if self.upload_stalled.get() {
                Late::Client
            } else {
                Late::Upstream
            }
        })
    }

    /// What has taken too long, if something has.
    pub(crate) fn overdue(&self) -> Option<Phase> {
        self.deadline()
            .filter(|&deadline| deadline <= self.now.get())?;
        let phase = self.phase.get();
        if phase == Phase::Response {
            // Told to whoever awaits the response; the connection lives on.
            self.response_expired.set(true);
            self.deadline.set(None);
        }
        Some(phase)
    }

    /// When to look next: at the deadline, but at least every `tick`, which must be no longer
    /// than the shortest timeout, so that no deadline noted meanwhile is missed.
    pub(crate) fn look_at(&self, tick: Duration) -> Instant {
        let tick = self.now.get() + tick;
        self.deadline().map_or(tick, |deadline| deadline.min(tick))
    }
}

/// Who is late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Late {
    /// The client, with its request's body.
    Client,
    /// The upstream, with its response.
    Upstream,
}
