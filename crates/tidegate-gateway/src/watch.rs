//! What a client connection waits for, and until when.
//!
//! One timer per connection instead of one per wait: the parts of a connection note here what
//! they wait for, which costs a store, and the connection's own task looks from time to time
//! whether a deadline has passed. All of it runs in one task, so that whoever is told finds out
//! when it is polled next, which is in the same call.

use std::cell::Cell;
use std::time::{Duration, Instant};

use tidegate_policy::BodyOf;

use crate::patience::{MinRate, Patience};
use crate::settings::Timeouts;

/// Deadlines of one client connection.
#[derive(Debug)]
pub(crate) struct Watch {
    phase: Cell<Phase>,
    deadline: Cell<Option<Instant>>,
    /// Since when the next request may come.
    idle_since: Cell<Instant>,
    /// The time at which the connection's task was polled: one clock reading for all that
    /// happens in one poll.
    now: Cell<Instant>,
    /// When the connection has lived long enough.
    end_of_life: Option<Instant>,
    response_expired: Cell<bool>,
    upload_stalled: Cell<bool>,
    /// With the client's sending of a request's body.
    upload: Patience,
    /// With the client's reading of what it is sent.
    download: Patience,
    /// Whether a piece of the request, or of the response, is held back by its limits: nobody is
    /// late meanwhile.
    upload_held: Cell<bool>,
    download_held: Cell<bool>,
    /// When the connection's task looks next.
    looks_at: Cell<Instant>,
    /// Whether it should look earlier.
    sooner: Cell<bool>,
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
    /// A new connection is given `header_timeout` for its first request, and lives for `max_age`.
    pub(crate) fn new(now: Instant, header_timeout: Duration, max_age: Duration) -> Self {
        Self {
            phase: Cell::new(Phase::Header),
            deadline: Cell::new(now.checked_add(header_timeout)),
            idle_since: Cell::new(now),
            now: Cell::new(now),
            end_of_life: now.checked_add(max_age),
            response_expired: Cell::new(false),
            upload_stalled: Cell::new(false),
            upload: Patience::default(),
            download: Patience::default(),
            upload_held: Cell::new(false),
            download_held: Cell::new(false),
            looks_at: Cell::new(now),
            sooner: Cell::new(false),
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

    /// Whether the connection has lived long enough.
    pub(crate) fn is_old(&self) -> bool {
        self.end_of_life.is_some_and(|end| end <= self.now.get())
    }

    /// Whether a request is being answered.
    pub(crate) fn is_busy(&self) -> bool {
        !matches!(self.phase.get(), Phase::Idle | Phase::Header)
    }

    /// From now on `phase`, for at most `timeout`.
    pub(crate) fn expect(&self, phase: Phase, timeout: Duration) {
        self.phase.set(phase);
        // Too far away to be a time: no deadline.
        self.deadline.set(self.now.get().checked_add(timeout));
    }

    /// From now on the next request, which may be `timeout` away.
    pub(crate) fn rest(&self, timeout: Duration) {
        self.upload.end();
        self.idle_since.set(self.now.get());
        self.expect(Phase::Idle, timeout);
    }

    /// Whether no request has come for so long.
    pub(crate) fn is_idle_for(&self, time: Duration) -> bool {
        !self.is_busy() && self.idle_since.get() + time <= self.now.get()
    }

    /// A request begins; until something else is said it has its own bound.
    pub(crate) fn begin(&self, rate: &MinRate) {
        self.download.begin(rate);
        self.hold();
    }

    /// From now on something that has its own bound.
    pub(crate) fn hold(&self) {
        self.phase.set(Phase::Held);
        self.deadline.set(None);
    }

    /// From now on a response, which has its time from the last piece of the request.
    pub(crate) fn expect_response(&self, timeouts: &Timeouts) {
        self.response_expired.set(false);
        self.upload_stalled.set(false);
        self.upload.begin(&timeouts.body_rate);
        self.expect(Phase::Response, timeouts.response);
    }

    /// The client has sent so many bytes of a request's body.
    pub(crate) fn upload_moved(&self, bytes: usize, timeouts: &Timeouts) {
        self.upload
            .moved(self.now.get(), bytes, &timeouts.body_rate);
        self.upload_goes_on(timeouts);
    }

    /// The client keeps the upstream waiting for the next piece of a request's body.
    pub(crate) fn upload_stalls(&self, timeouts: &Timeouts) {
        self.upload_stalled.set(true);
        if !self.is_held_back() {
            self.look_before(self.upload.wait(self.now.get(), &timeouts.body_rate));
        }
    }

    /// There is no more to come of a request's body.
    pub(crate) fn upload_ended(&self, timeouts: &Timeouts) {
        self.upload.end();
        self.upload_goes_on(timeouts);
    }

    fn upload_goes_on(&self, timeouts: &Timeouts) {
        self.upload_stalled.set(false);
        if self.phase.get() == Phase::Response {
            self.expect(Phase::Response, timeouts.response);
        }
    }

    /// The client has taken so many bytes.
    pub(crate) fn download_moved(&self, bytes: usize, rate: &MinRate) {
        self.download.moved(self.now.get(), bytes, rate);
    }

    /// The client has taken all that there was for it.
    pub(crate) fn download_ended(&self) {
        self.download.end();
    }

    /// The client does not take what is there for it.
    pub(crate) fn download_stalls(&self, rate: &MinRate) {
        if !self.is_held_back() {
            self.look_before(self.download.wait(self.now.get(), rate));
        }
    }

    /// A piece of this body is held back by its limits (`true`), or not any more (`false`): then
    /// what was waited for has its time, and the client goes on with what it has left.
    pub(crate) fn hold_back(&self, body: BodyOf, held: bool, timeouts: &Timeouts) {
        let is_held = match body {
            BodyOf::Request => &self.upload_held,
            BodyOf::Response => &self.download_held,
        };
        let was_held = is_held.replace(held);
        if held {
            self.upload.pause(self.now.get());
            self.download.pause(self.now.get());
        } else if was_held && self.waits_for_response() {
            self.expect(self.phase.get(), timeouts.response);
        }
    }

    fn is_held_back(&self) -> bool {
        self.upload_held.get() || self.download_held.get()
    }

    fn waits_for_response(&self) -> bool {
        matches!(self.phase.get(), Phase::Response | Phase::Body)
    }

    /// Until when something has to happen, while it is not held back.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let deadline = self.deadline.get();
        deadline.filter(|_| !(self.is_held_back() && self.waits_for_response()))
    }

    fn look_before(&self, deadline: Option<Instant>) {
        if deadline.is_some_and(|deadline| deadline < self.looks_at.get()) {
            self.sooner.set(true);
        }
    }

    /// Whether a deadline has come up before the time at which the task looks next.
    pub(crate) fn has_to_look_sooner(&self) -> bool {
        self.sooner.replace(false)
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
        let has_passed =
            |deadline: Option<Instant>| deadline.is_some_and(|at| at <= self.now.get());
        let phase = self.phase.get();
        if has_passed(self.download.deadline()) {
            return Some(Phase::Body);
        }
        let upload = has_passed(self.upload.deadline());
        if upload && phase == Phase::Body {
            return Some(Phase::Body);
        }
        if !upload && !has_passed(self.deadline()) {
            return None;
        }
        if phase == Phase::Response {
            // Told to whoever awaits the response; the connection lives on.
            self.response_expired.set(true);
            self.upload.end();
            self.deadline.set(None);
        }
        Some(phase)
    }

    /// When to look next: at the first deadline, but at least every `tick`, which must be no
    /// longer than the shortest timeout, so that no deadline noted meanwhile is missed.
    pub(crate) fn look_at(&self, tick: Duration) -> Instant {
        let deadlines = [
            self.deadline(),
            self.upload.deadline(),
            self.download.deadline(),
        ];
        let tick = self.now.get() + tick;
        let at = deadlines.into_iter().flatten().fold(tick, Instant::min);
        self.looks_at.set(at);
        at
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
