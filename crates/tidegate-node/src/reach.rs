//! Whether a shared limit answers, as people are told: a state machine, with time as an argument.
//!
//! Answers and misses may come mixed, from a Redis that is slow for some keys. It counts as away
//! after three misses in a row, or a second in which misses never ceased for long; and as back when
//! it has answered, and nothing was missed, for a second. So who listens hears of each change once.

use std::time::Duration;

use tidegate::Timestamp;

/// Misses in a row.
const IN_A_ROW: u32 = 3;
/// Without a miss for so long all is well; with misses for so long it is not.
const CALM: Duration = Duration::from_secs(1);

/// What has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It does not answer.
    Away,
    /// It answers again.
    Back,
}

/// What is known of it. The default is that all is well.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reach {
    /// The first and the last miss of those that are not over.
    misses: Option<(Timestamp, Timestamp)>,
    in_a_row: u32,
    is_away: bool,
}

impl Reach {
    /// Whether an answer says nothing new.
    pub(crate) const fn is_well(&self) -> bool {
        self.misses.is_none()
    }

    pub(crate) fn missed(&mut self, now: Timestamp) -> Option<Change> {
        let (mut since, last) = self.misses.unwrap_or((now, now));
        if self.in_a_row == 0 && !self.is_away && now.since(last) >= CALM {
            // Far apart, and it answered in between.
            since = now;
        }
        self.misses = Some((since, now));
        self.in_a_row = self.in_a_row.saturating_add(1);
        if self.is_away || self.in_a_row < IN_A_ROW && now.since(since) < CALM {
            return None;
        }
        self.is_away = true;
        Some(Change::Away)
    }

    pub(crate) fn answered(&mut self, now: Timestamp) -> Option<Change> {
        self.in_a_row = 0;
        let (_, last) = self.misses?;
        if now.since(last) < CALM {
            return None;
        }
        self.misses = None;
        std::mem::take(&mut self.is_away).then_some(Change::Back)
    }
}

#[cfg(test)]
mod tests;
