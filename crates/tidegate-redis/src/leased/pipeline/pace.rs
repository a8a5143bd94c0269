//! How many refreshes may be under way, and when one may be tried while nothing answers: a pure
//! state machine. Time and chance are arguments.

use std::time::Duration;

use tidegate::Timestamp;

use crate::backoff::{Backoff, FIRST};

/// Calls under way at once.
pub(super) const MOST: u32 = 64;
/// After so many misses without an answer in between nobody answers. Those that were under way
/// together are one: they tell of one moment.
const MISSES: u32 = 3;
/// The same of calls that were not made. More, because that takes no time: of a cluster whose
/// servers are half of them away so many in a row are rare.
const NOT_SENT: u32 = 16;

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Answered,
    /// There was no answer.
    Missed,
    /// It was not made: whoever carries calls waits for Redis by itself.
    NotSent,
    /// Nothing is known.
    GivenUp,
}

/// Whether a call may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::leased) enum Turn {
    Goes(Pass),
    /// Later: when one of those has ended that are under way.
    Full,
    /// Nothing answers. One may try after this time, if nobody does already.
    Down(Timestamp),
}

/// That a call may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::leased) struct Pass {
    /// It tries whether somebody answers again.
    is_trial: bool,
    number: u64,
}

/// What the world may want to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Down,
    Up { after: Duration },
}

#[derive(Debug)]
pub(super) struct Pace {
    under_way: u32,
    /// How many may be.
    window: u32,
    /// How many calls were made.
    number: u64,
    misses: u32,
    /// What was made before this number belongs to a miss that was counted.
    counted: u64,
    not_sent: u32,
    down: Option<Down>,
    backoff: Backoff,
}

#[derive(Clone, Copy, Debug)]
struct Down {
    since: Timestamp,
    until: Timestamp,
    /// Somebody tries.
    is_tried: bool,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            under_way: 0,
            window: MOST,
            number: 0,
            misses: 0,
            counted: 0,
            not_sent: 0,
            down: None,
            backoff: Backoff::default(),
        }
    }
}

impl Pace {
    pub(super) const fn is_down(&self) -> bool {
        self.down.is_some()
    }

    pub(super) const fn has_room(&self) -> bool {
        self.under_way < self.window
    }

    /// May a call be made? If so, [`ended`](Self::ended) must hear of its end.
    pub(super) fn turn(&mut self, now: Timestamp) -> Turn {
        if let Some(down) = &mut self.down {
            if now < down.until || down.is_tried {
                return Turn::Down(down.until);
            }
            down.is_tried = true;
        } else if !self.has_room() {
            return Turn::Full;
        }
        self.under_way += 1;
        self.number += 1;
        Turn::Goes(Pass {
            is_trial: self.is_down(),
            number: self.number,
        })
    }

    /// Of those that were under way when it went down only an answer counts.
    pub(super) fn ended(
        &mut self,
        now: Timestamp,
        (pass, ended): (Pass, Ended),
        chance: u64,
    ) -> Option<Change> {
        self.under_way -= 1;
        match (ended, self.down) {
            (Ended::Answered, down) => {
                (self.misses, self.not_sent) = (0, 0);
                self.window = if down.is_some() { 1 } else { self.window + 1 }.min(MOST);
                self.down = None;
                self.backoff.reset();
                down.map(|down| Change::Up {
                    after: now.since(down.since),
                })
            }
            (Ended::GivenUp, down) => {
                self.down = down.map(|down| Down {
                    is_tried: down.is_tried && !pass.is_trial,
                    ..down
                });
                None
            }
            (Ended::Missed | Ended::NotSent, Some(down)) => {
                if pass.is_trial {
                    self.wait(down.since, now, ended, chance);
                }
                None
            }
            (Ended::Missed | Ended::NotSent, None) => {
                if ended == Ended::NotSent {
                    self.not_sent += 1;
                } else if pass.number > self.counted {
                    self.misses += 1;
                    self.counted = self.number;
                }
                if self.misses < MISSES && self.not_sent < NOT_SENT {
                    return None;
                }
                self.wait(now, now, ended, chance);
                Some(Change::Down)
            }
        }
    }

    fn wait(&mut self, since: Timestamp, now: Timestamp, ended: Ended, chance: u64) {
        let wait = match ended {
            // It costs Redis nothing, and who carries calls has waited already.
            Ended::NotSent => {
                Duration::from_nanos(((u128::from(chance) * FIRST.as_nanos()) >> 64) as u64)
            }
            _ => self.backoff.next(chance),
        };
        self.down = Some(Down {
            since,
            until: now.after(wait),
            is_tried: false,
        });
    }
}

#[cfg(test)]
mod tests;
