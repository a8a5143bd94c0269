//! Whether a server is asked at all: a pure state machine. Time and chance are arguments.
//!
//! ```text
//!            5 misses in a row, or more than 10 of the last 20; or it said that it cannot serve
//!   Closed ───────────────────────────────────────────────────────────────────────────► Open
//!     ▲  ▲ └── the connection is lost ──────────────────────────────────────────────────► │ ▲
//!     │  └──── a probe passed, if only the connection was lost ──────────────────────────┘ │ │
//!     │                                                      a probe passed, otherwise   │ │
//!     └── 3 trials answered, or none missed in 500 ms ── HalfOpen ◄──────────────────────┘ │
//!                                                           └── a trial missed ────────────┘
//! ```
//!
//! Calls that are under way together and miss are one miss: they tell of one moment, in which a
//! server (or this process) stood still, and not of five.
//!
//! While it is open nobody waits for the server. A probe is made by whoever keeps the connections,
//! one at a time, and is no caller's request. After misses a probe is not enough: a server that is
//! out of memory answers a PING. So the first calls are trials, and while they are out the other
//! callers are told at once that there is no answer.

use std::time::Duration;

use tidegate::Timestamp;

use crate::backoff::{Backoff, LONGEST};

#[cfg(test)]
mod tests;

/// Misses in a row that open it.
const IN_A_ROW: u32 = 5;

/// Of how many outcomes more than half may not be misses.
const WINDOW: u32 = 20;

/// Trials that must be answered before everybody may ask again.
const TRIALS: u8 = 3;

/// How long to wait for trials: without callers a probe must do.
const SETTLE: Duration = LONGEST;

/// A server that was well for so long begins its next outage with the shortest wait.
const CALM: Duration = Duration::from_secs(10);

/// How a call ended, in the eyes of the breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The server did its work, whatever it answered.
    Answered,
    /// No answer in time, or one that says the server is unwell.
    Missed,
    /// It said that it cannot serve: it is a replica, or loads.
    Useless,
    /// Nothing is known: the caller gave up, or the connection was lost (which its keeper tells).
    Unknown,
}

/// That a call was let through, and when. Its outcome counts only in the state that let it
/// through: an answer that comes late is none of the trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pass {
    round: u64,
    /// Calls are counted.
    number: u64,
}

/// In short: what it does with calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// All are let through.
    Closed,
    /// None is.
    Open,
    /// A few trials are.
    HalfOpen,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Closed { since: Timestamp },
    Open { until: Timestamp, trials: bool },
    HalfOpen { since: Timestamp, out: u8, good: u8 },
}

#[derive(Debug)]
pub(crate) struct Breaker {
    state: State,
    /// Counts changes of state.
    round: u64,
    /// How many calls were let through.
    number: u64,
    /// What was let through before this number belongs to a miss that was counted.
    counted: u64,
    recent: Recent,
    backoff: Backoff,
}

impl Breaker {
    /// Of a server without a connection: the first probe is due at once.
    pub(crate) fn new() -> Self {
        Self {
            state: State::Open {
                until: Timestamp::EPOCH,
                trials: false,
            },
            round: 0,
            number: 0,
            counted: 0,
            recent: Recent::default(),
            backoff: Backoff::default(),
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.state {
            State::Closed { .. } => Phase::Closed,
            State::Open { .. } => Phase::Open,
            State::HalfOpen { .. } => Phase::HalfOpen,
        }
    }

    /// May a call go to the server? If so, [`Breaker::record`] must hear how it ended.
    pub(crate) fn admit(&mut self) -> Option<Pass> {
        match &mut self.state {
            State::Closed { .. } => {}
            State::HalfOpen { out, good, .. } if *out + *good < TRIALS => *out += 1,
            State::Open { .. } | State::HalfOpen { .. } => return None,
        }
        self.number += 1;
        Some(Pass {
            round: self.round,
            number: self.number,
        })
    }

    /// How a call ended that was let through.
    pub(crate) fn record(&mut self, now: Timestamp, pass: Pass, outcome: Outcome, random: u64) {
        if pass.round != self.round {
            return;
        }
        match (&mut self.state, outcome) {
            (State::Open { .. }, _) | (State::Closed { .. }, Outcome::Unknown) => {}
            (State::Closed { .. }, Outcome::Answered) => self.recent.push(false),
            (State::Closed { .. }, Outcome::Missed) if pass.number <= self.counted => {}
            (State::Closed { .. }, Outcome::Missed) => {
                self.counted = self.number;
                self.recent.push(true);
                if self.recent.too_many() {
                    self.open(now, true, random);
                }
            }
            (State::Closed { .. } | State::HalfOpen { .. }, Outcome::Useless)
            | (State::HalfOpen { .. }, Outcome::Missed) => self.open(now, true, random),
            (State::HalfOpen { out, .. }, Outcome::Unknown) => *out -= 1,
            (State::HalfOpen { out, good, .. }, Outcome::Answered) => {
                *out -= 1;
                *good += 1;
                if *good == TRIALS {
                    self.close(now);
                }
            }
        }
    }

    /// The connection is lost. A probe that passes makes up for that.
    pub(crate) fn lost(&mut self, now: Timestamp, random: u64) {
        match self.state {
            State::Open { .. } => {}
            State::Closed { .. } => self.open(now, false, random),
            State::HalfOpen { .. } => self.open(now, true, random),
        }
    }

    /// When the next probe is due, while it is open.
    pub(crate) fn probe_at(&self) -> Option<Timestamp> {
        match self.state {
            State::Open { until, .. } => Some(until),
            _ => None,
        }
    }

    /// A probe failed: the next one is due later.
    pub(crate) fn probe_failed(&mut self, now: Timestamp, random: u64) {
        if let State::Open { until, .. } = &mut self.state {
            *until = now.after(self.backoff.next(random));
        }
    }

    /// A probe passed: there is a connection, and the server answers on it.
    pub(crate) fn probe_passed(&mut self, now: Timestamp) {
        match self.state {
            State::Open { trials: true, .. } => self.change(State::HalfOpen {
                since: now,
                out: 0,
                good: 0,
            }),
            State::Open { trials: false, .. } => self.close(now),
            _ => {}
        }
    }

    /// When to stop waiting for trials, while it is half open.
    pub(crate) fn settle_at(&self) -> Option<Timestamp> {
        match self.state {
            State::HalfOpen { since, .. } => Some(since.after(SETTLE)),
            _ => None,
        }
    }

    /// Nobody missed for long enough: it closes, or waits as long again for the trials that are
    /// out.
    pub(crate) fn settle(&mut self, now: Timestamp) {
        if self.settle_at().is_none_or(|due| now < due) {
            return;
        }
        match &mut self.state {
            State::HalfOpen { out: 0, .. } => self.close(now),
            State::HalfOpen { since, .. } => *since = now,
            _ => {}
        }
    }

    fn close(&mut self, now: Timestamp) {
        self.change(State::Closed { since: now });
    }

    fn open(&mut self, now: Timestamp, trials: bool, random: u64) {
        if let State::Closed { since } = self.state
            && now.since(since) >= CALM
        {
            self.backoff.reset();
        }
        let until = now.after(self.backoff.next(random));
        self.change(State::Open { until, trials });
    }

    fn change(&mut self, state: State) {
        self.state = state;
        self.round += 1;
        self.recent = Recent::default();
    }
}

/// The last outcomes, one bit each, the newest the lowest: 1 is a miss.
#[derive(Clone, Copy, Debug, Default)]
struct Recent(u32);

impl Recent {
    fn push(&mut self, missed: bool) {
        self.0 = (self.0 << 1 | u32::from(missed)) & ((1 << WINDOW) - 1);
    }

    fn too_many(self) -> bool {
        self.0.trailing_ones() >= IN_A_ROW || self.0.count_ones() > WINDOW / 2
    }
}
