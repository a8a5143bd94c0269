//! At most so many in flight on all machines together.
//!
//! [`SharedConcurrency`] is what users hold: it hands out guards. Below it, each node runs one
//! pure machine for each key ([`Places`]: time and randomness are arguments), which says what to
//! ask Redis and hears what Redis answers. There are three:
//!
//! | scheme | state in Redis | taking a place | places of a killed node are free |
//! |---|---|---|---|
//! | [`NodeShare`] (default) | one entry a node | here, while the node's share has some | within the ttl |
//! | [`Slots`] | one entry a place | one call | within the ttl |
//! | [`DoubleWindow`] | two counts | one call | within two windows |
//!
//! What is in flight is never more than the limit, whatever fails short of a loss of data in Redis
//! or a step of its clock, as long as those who hold places stop when told that they have
//! [lost](SharedPermit::lost) them: a node that cannot reach Redis knows, by its own clock, before
//! Redis gives its places to others. [`OnLeaseLost`] says what a node does then.

mod double_window;
mod holders;
mod jitter;
mod key;
mod key_task;
mod node_share;
mod options;
mod permit;
mod retry;
mod scripts;
mod shared;
mod slots;
mod table;
mod tickets;

use std::fmt;
use std::time::Duration;

use tidegate::{Retry, Timestamp};

pub use self::double_window::DoubleWindow;
pub use self::holders::Holder;
pub use self::node_share::NodeShare;
pub use self::options::{ConcurrencyOptions, OnLeaseLost, OptionsError, Scheme};
pub use self::permit::SharedPermit;
pub use self::scripts::{DOUBLE_WINDOW, NODE_SHARE, SLOTS, SLOTS_KILL, SLOTS_LIST};
pub use self::shared::SharedConcurrency;
pub use self::slots::Slots;

use crate::Script;

/// One node's part in one key's limit: a state machine that never waits.
///
/// Who drives it calls [`poll`](Self::poll) when [`next`](Self::next) has come, or when somebody
/// has asked or left; makes the call that this answers, and hands the outcome to
/// [`answered`](Self::answered). At most one call is under way. Whatever was done,
/// [`take_events`](Self::take_events) then says who got what.
pub trait Places: fmt::Debug + Send {
    /// Asks for places.
    fn ask(&mut self, now: Timestamp, permits: u64) -> Asked;

    /// Whoever asked under this ticket has gone: what it has got, or gets, goes back.
    fn give_back(&mut self, now: Timestamp, ticket: u64);

    /// Nobody is going to ask: what is kept for those who might goes back now, and is tried once.
    /// Places that are held stay held.
    fn leave(&mut self, _now: Timestamp) {}

    /// Looks whether leases have ended by this node's own clock.
    fn lapse(&mut self, now: Timestamp);

    /// The call to make now, if there is one.
    fn poll(&mut self, now: Timestamp) -> Option<Request>;

    /// What came of it: integers, or nothing that says whether the script has run. False where
    /// the integers are none of that script's.
    fn answered(&mut self, now: Timestamp, answer: Option<&[i64]>) -> bool;

    /// When to look again; `None` where nothing is held, owed or known: it may be forgotten then.
    fn next(&self) -> Option<Timestamp>;

    /// What happened since this was last called, in order.
    fn take_events(&mut self) -> Vec<Event>;

    /// Places that could be had now, as far as this node knows.
    fn remaining(&self) -> u64;
}

/// What [`Places::ask`] answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The places are held under this ticket.
    Granted(u64),
    /// An event will say.
    Waits(u64),
    /// No.
    Denied(Retry),
    /// Redis did not answer just now, and is not asked again yet.
    Unavailable,
}

/// What happened to a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It has its places.
    Granted(u64),
    /// There are none for it.
    Denied(u64),
    /// There was no answer.
    Unavailable(u64),
    /// It has its places no longer: others may have got them. It still has to be given back.
    Lost(u64),
}

/// A call to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Which script.
    pub script: &'static Script,
    /// `ARGV`; the only key is the limit's.
    pub args: Vec<Vec<u8>>,
}

/// How much two clocks may drift apart, in millionths (500 ppm, more than quartz ever does).
const DRIFT_PPM: u64 = 500;

/// The part of a lease that has surely not passed in Redis when it has passed here.
pub(crate) fn surely(lease: Duration) -> Duration {
    let nanos = u64::try_from(lease.as_nanos()).unwrap_or(u64::MAX);
    Duration::from_nanos(
        nanos
            - nanos
                .div_ceil(1_000_000)
                .saturating_mul(DRIFT_PPM)
                .min(nanos),
    )
}

/// An argument of a script.
pub(crate) fn arg(number: u64) -> Vec<u8> {
    number.to_string().into_bytes()
}

/// Whole microseconds, what scripts count in.
pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
