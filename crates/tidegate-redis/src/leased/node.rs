//! What one node has of one leased key: a state machine, with time and chance as arguments.
//!
//! Threads share it. A check that is allowed reads a deadline and swaps one word; everything that
//! has to do with Redis stands behind a mutex, which checks take only to mint.
//!
//! Never more than Redis has noted: permits leave `tokens` *before* a call says that they are
//! given back, come in only with an answer, and are worth nothing from the deadline on, which is
//! counted from when the call was sent, so that it comes before the end that Redis noted.

mod books;
mod lot;
mod mint;
mod pace;
mod state;
mod told;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate::{Decision, Retry, Timestamp};

use self::books::{Books, Flight, Mode, Plan};
pub use self::lot::Lot;
pub use self::state::LeaseState;
use super::terms::LeaseTerms;
use super::wire::{LeaseReply, LeaseRequest, NodeId};

/// The time in which an answer is expected: a lease has to last for so much longer than a refresh.
const ROUND_TRIP: Duration = Duration::from_millis(4);
/// How long a refresh is waited for.
pub const LEASE_BUDGET: Duration = Duration::from_millis(15);
const NEVER: u64 = u64::MAX;

/// One key's lease on one node: a state machine, with time and chance as arguments.
///
/// Threads share it. [`check`](Self::check) decides; [`refresh`](Self::refresh) says what to ask
/// Redis, and [`answered`](Self::answered) or [`failed`](Self::failed) hear how that went.
#[derive(Debug)]
pub struct LeaseNode {
    terms: LeaseTerms,
    id: NodeId,
    /// Permits that are not spent yet.
    tokens: AtomicU64,
    /// From when on they are worth nothing, nanoseconds.
    deadline: AtomicU64,
    /// The window that they are of, by the name that Redis gave it; 0 for none.
    window: AtomicU64,
    /// Counts the lots of them.
    lot: AtomicU64,
    /// Whether there was nothing more to be had of it.
    is_used_up: AtomicBool,
    /// With fewer permits than this a refresh is worth it before its time ...
    low: AtomicU64,
    /// ... from here on, nanoseconds.
    early: AtomicU64,
    /// ... and with none from here on, nanoseconds.
    hurry: AtomicU64,
    /// When the next refresh is due, nanoseconds.
    next: AtomicU64,
    /// Whether a call is on its way.
    is_asking: AtomicBool,
    /// Whether the last call failed.
    is_down: AtomicBool,
    /// Permits refused since the last refresh, and the most of them in one request.
    refused: AtomicU64,
    largest: AtomicU64,
    /// Permits asked for in all, as of the last refresh.
    asked: AtomicU64,
    books: Mutex<Books>,
}

/// A decision, and whether it is time to [refresh](LeaseNode::refresh).
#[derive(Clone, Copy, Debug)]
#[must_use = "a decision that nobody looks at limits nothing"]
pub struct Checked {
    /// The answer.
    pub decision: Decision,
    /// Whether [`LeaseNode::refresh`] should be called now.
    pub is_due: bool,
    /// Of what lot the permits are, for [`LeaseNode::give_back`].
    pub lot: Lot,
}

impl LeaseNode {
    /// A key that nobody has asked for yet. `id` must be a random number that was never used.
    pub fn new(terms: LeaseTerms, id: NodeId, now: Timestamp) -> Self {
        Self {
            terms,
            id,
            tokens: AtomicU64::new(0),
            deadline: AtomicU64::new(0),
            window: AtomicU64::new(0),
            lot: AtomicU64::new(0),
            is_used_up: AtomicBool::new(false),
            low: AtomicU64::new(0),
            early: AtomicU64::new(NEVER),
            hurry: AtomicU64::new(NEVER),
            next: AtomicU64::new(now.as_nanos()),
            is_asking: AtomicBool::new(false),
            is_down: AtomicBool::new(false),
            refused: AtomicU64::new(0),
            largest: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            books: Mutex::new(Books::new(now)),
        }
    }

    /// Takes `permits` if they are there. No I/O, no waiting. `now` must not be older than the
    /// rest of the lease lasts, at least nine refreshes: read the clock just before.
    ///
    /// `remaining` is what this node has at hand, and `retry_after` the time to its next refresh:
    /// a hint; of a window that is used up, to its end. More than [`LeaseTerms::most_lent`] can
    /// never be had.
    #[inline]
    pub fn check(&self, now: Timestamp, permits: u64) -> Checked {
        let nanos = now.as_nanos();
        // Before they are taken: so they are of this lot, or of a later one.
        let lot = self.lot();
        if nanos < self.deadline.load(Ordering::Acquire)
            && let Some(rest) = self.take(permits)
        {
            let is_low = rest < self.low.load(Ordering::Relaxed)
                && nanos >= self.early.load(Ordering::Relaxed);
            return Checked {
                decision: self.allowed(now, rest),
                is_due: is_low && !self.is_asking.load(Ordering::Relaxed),
                lot,
            };
        }
        let (decision, is_due) = self.check_without_lease(now, permits);
        Checked {
            decision,
            is_due,
            lot,
        }
    }

    #[cold]
    fn check_without_lease(&self, now: Timestamp, permits: u64) -> (Decision, bool) {
        let nanos = now.as_nanos();
        if permits == 0 {
            return (self.allowed(now, 0), false);
        }
        if permits > self.terms.most_lent() {
            return (self.denied(now, Retry::Never), false);
        }
        let next = self.next.load(Ordering::Relaxed);
        let is_due = self.is_due(nanos) && !self.is_asking.load(Ordering::Relaxed);
        if self.is_down.load(Ordering::Acquire)
            && let Some(rest) = self.lock().mint(&self.terms, now, permits)
        {
            return (self.allowed(now, rest), is_due);
        }
        self.refused.fetch_add(permits, Ordering::Relaxed);
        self.largest.fetch_max(permits, Ordering::Relaxed);
        let window_left = self.deadline.load(Ordering::Relaxed).saturating_sub(nanos);
        let wait = match next.saturating_sub(nanos) {
            _ if window_left > 0 && self.is_used_up.load(Ordering::Relaxed) => {
                Duration::from_nanos(window_left)
            }
            0 => self.terms.refresh(),
            wait => Duration::from_nanos(wait).min(self.terms.membership()),
        };
        (self.denied(now, Retry::After(wait)), is_due)
    }

    /// Whether who is refused should see to it that Redis is asked.
    fn is_due(&self, nanos: u64) -> bool {
        let hurry = self.hurry.load(Ordering::Relaxed);
        nanos >= self.next.load(Ordering::Relaxed).min(hurry)
    }

    /// When [`refresh`](Self::refresh) should be called if no check asks for it before.
    pub fn next_refresh(&self) -> Timestamp {
        Timestamp::from_nanos(self.next.load(Ordering::Relaxed))
    }

    /// The call to make now, of which [`answered`](Self::answered) or [`failed`](Self::failed)
    /// must tell how it went. `None` while another is under way, and when the node has left.
    ///
    /// A key that nobody has asked for since the last call, and few before, is put to rest: it
    /// gives back nearly everything, and its share of the rate, and needs no further call while
    /// the rest of its lease lasts unless somebody asks. After that it says goodbye, and has left.
    pub fn refresh(&self, now: Timestamp) -> Option<LeaseRequest> {
        self.call(now, false)
    }

    /// The call with which this node gives up the key, whoever asks for it. `None` while another is
    /// under way, and where there is nothing that Redis could be told.
    pub fn leave(&self, now: Timestamp) -> Option<LeaseRequest> {
        self.call(now, true)
    }

    fn call(&self, now: Timestamp, must_leave: bool) -> Option<LeaseRequest> {
        let mut books = self.lock();
        if books.flight.is_some() || books.has_left {
            return None;
        }
        let is_unknown = books.is_unknown(&self.terms, now);
        if is_unknown {
            self.window.store(0, Ordering::Release);
        }
        let is_live = now.as_nanos() < self.deadline.load(Ordering::Acquire) && !is_unknown;
        let refused = self.refused.swap(0, Ordering::AcqRel);
        let largest = self.largest.swap(0, Ordering::AcqRel);
        if !is_live {
            let unused = self.tokens.swap(0, Ordering::AcqRel);
            books.spent_until(unused);
            books.taken = books.taken.saturating_sub(unused);
            books.given = 0;
        }
        books.spent_until(self.tokens.load(Ordering::Acquire));
        let (asked, is_idle) = books.measure(now, refused);
        self.asked.fetch_add(asked, Ordering::Relaxed);
        let plan = books.plan(&self.terms, now, (is_idle, is_live, must_leave));
        let target = match plan {
            Plan::Forget => {
                books.has_left = true;
                return None;
            }
            Plan::Leave => {
                self.deadline.store(0, Ordering::Release);
                0
            }
            Plan::Rest => books.target_at_rest(&self.terms, ROUND_TRIP),
            Plan::Refresh => books.target(&self.terms, ROUND_TRIP).max(largest),
        };
        let spare = if plan == Plan::Refresh { target / 2 } else { 0 };
        let (held, returned) = self.give_up_beyond(target + spare);
        // A window's node tells what it has had, be it spent or not.
        if !is_live || self.terms.window_micros.is_none() {
            self.begin_lot();
        }
        books.spent_until(held + returned);
        books.given = held;
        books.taken = books.taken.saturating_sub(returned);
        books.hurry(&self.terms, now);
        let request = books.depart(self.id, &self.terms, now, plan);
        self.is_asking.store(true, Ordering::Relaxed);
        let expected = now.after(self.terms.refresh()).as_nanos();
        self.next.store(expected, Ordering::Relaxed);
        let request = LeaseRequest {
            held,
            returned,
            want: target.saturating_sub(held).min(self.terms.most_lent()),
            window: self.window.load(Ordering::Acquire),
            ..request
        };
        books.flight = Some(Flight::of(&request, now));
        Some(request)
    }

    /// The answer to a call has come. `chance` is any random number.
    pub fn answered(&self, call: &LeaseRequest, reply: &LeaseReply, now: Timestamp, chance: u64) {
        let mut books = self.lock();
        let Some(flight) = books.flight.take_if(|flight| flight.seq == call.seq) else {
            return;
        };
        if call.leaves {
            books.has_left = true;
            return;
        }
        // What Redis does not count any more goes before anything else can be spent: of a window
        // that is over, all.
        let gone = if reply.window == self.window.load(Ordering::Acquire) {
            call.held.saturating_sub(reply.kept)
        } else {
            u64::MAX
        };
        let without = |tokens: u64| Some(tokens.saturating_sub(gone));
        let result = self
            .tokens
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, without);
        let (Ok(before) | Err(before)) = result;
        books.spent_until(before);
        books.given = before.saturating_sub(gone) + reply.granted;
        books.arrive(&self.terms, &flight, reply, now, gone);
        if gone > 0 {
            self.begin_lot();
        }
        self.window.store(reply.window, Ordering::Release);
        self.tokens.fetch_add(reply.granted, Ordering::AcqRel);
        let sent = flight.sent.as_nanos();
        let lease = pace::lease(&self.terms, reply);
        self.deadline.store(sent + lease, Ordering::Release);
        self.is_down.store(false, Ordering::Release);
        let is_used_up = self.terms.window_micros.is_some() && reply.remaining == 0;
        self.is_used_up.store(is_used_up, Ordering::Relaxed);

        let refresh = nanos(self.terms.refresh());
        // Where Redis had all that was wanted there is more, for whoever comes unexpected.
        let is_full = reply.granted >= call.want && !is_used_up;
        let (early, low, next) = if books.mode == Mode::Rests {
            // Whoever asks has it refreshed, whatever is left; else it has until the lease ends.
            (0, NEVER, nanos(self.terms.lease()))
        } else {
            let soonest = sent + pace::soonest(&self.terms);
            let early = if is_full { soonest } else { NEVER };
            (early, books.target_for(ROUND_TRIP), refresh / 10 * 9)
        };
        let may_hurry = is_full && books.may_hurry();
        let hurry = if may_hurry { now.as_nanos() } else { early };
        self.hurry.store(early.min(hurry), Ordering::Relaxed);
        self.early.store(early, Ordering::Relaxed);
        self.low.store(low, Ordering::Relaxed);
        let after = next + pace::part(refresh / 5, chance);
        let next = pace::next(&self.terms, (sent, after), now, reply);
        self.next.store(next, Ordering::Relaxed);
        self.is_asking.store(false, Ordering::Relaxed);
    }

    /// No answer has come in time, or none that says anything. `chance` is any random number.
    pub fn failed(&self, call: &LeaseRequest, now: Timestamp, chance: u64) {
        let mut books = self.lock();
        if books
            .flight
            .take_if(|flight| flight.seq == call.seq)
            .is_none()
        {
            return;
        }
        if call.leaves {
            // Perhaps it was heard. What was given up stays given up.
            books.has_left = true;
            return;
        }
        books.is_down = true;
        self.is_down.store(true, Ordering::Release);
        let wait = nanos(books.back_off.next(chance));
        self.early.store(NEVER, Ordering::Relaxed);
        self.hurry.store(NEVER, Ordering::Relaxed);
        self.next.store(now.as_nanos() + wait, Ordering::Relaxed);
        self.is_asking.store(false, Ordering::Relaxed);
    }

    /// Nobody answers calls just now, of whichever key: none is made before `until`, and it goes on
    /// as when one of its own had failed.
    pub(super) fn stand_by(&self, until: Timestamp) {
        let mut books = self.lock();
        if books.flight.is_some() || books.has_left {
            return;
        }
        (books.is_down, books.mode) = (true, Mode::StandsBy);
        self.is_down.store(true, Ordering::Release);
        // From then on it is for whoever asks next.
        self.low.store(NEVER, Ordering::Relaxed);
        self.early.store(until.as_nanos(), Ordering::Relaxed);
        self.next.store(until.as_nanos(), Ordering::Relaxed);
    }

    /// Takes permits, and returns how many are left.
    #[inline]
    fn take(&self, permits: u64) -> Option<u64> {
        let take = |tokens: u64| tokens.checked_sub(permits);
        let before = self
            .tokens
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, take)
            .ok()?;
        Some(before - permits)
    }

    /// Takes away what is beyond that. Returns what is left, and what was taken.
    fn give_up_beyond(&self, most: u64) -> (u64, u64) {
        let cut = |tokens: u64| Some(tokens.min(most));
        let result = self
            .tokens
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, cut);
        let (Ok(before) | Err(before)) = result;
        (before.min(most), before.saturating_sub(most))
    }

    /// Locks, whatever happened to an earlier holder: nothing in there is left half-changed.
    fn lock(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A duration below 584 years.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
