//! Sentinel's `WarmUpRateLimiterController`, in its own variables, from a list of who goes on
//! when.

use std::collections::BTreeMap;

use super::{Oracle, Request, Ticket, ceil_div, saturated};

const SECOND: i128 = 1_000_000_000;
/// The longest line.
const MAX_WAIT: i128 = 600 * SECOND;

/// `storedTokens`, `lastFilledTime` and `latestPassedTime`. Times are in parts of `1 / count`
/// nanoseconds, so that a permit takes 10^9 of them when warm; when cold, what it takes is rounded
/// up to a whole part.
///
/// Tokens are synced in each second in which somebody is let in, and in the second after one in
/// which anybody goes on.
#[derive(Clone, Debug)]
pub struct SentinelWarmUpQueueOracle {
    count: i128,
    warm_up: i128,
    cold_factor: i128,
    stored: i128,
    /// The second of the last sync; `None` before the first.
    filled: Option<i128>,
    /// `None` before the first.
    latest_passed: Option<i128>,
    latest: i128,
    /// Seconds in which those go on who have been let in, and what each took.
    passes: BTreeMap<Ticket, Pass>,
    tickets: u64,
}

#[derive(Clone, Copy, Debug)]
struct Pass {
    second: i128,
    permits: i128,
    took: i128,
    given_back: bool,
}

impl SentinelWarmUpQueueOracle {
    /// Nobody has come yet: it is cold.
    pub fn new(count: u64, warm_up_seconds: u32, cold_factor: u32) -> Self {
        Self {
            count: count.into(),
            warm_up: warm_up_seconds.into(),
            cold_factor: cold_factor.into(),
            stored: 0,
            filled: None,
            latest_passed: None,
            latest: 0,
            passes: BTreeMap::new(),
            tickets: 0,
        }
    }

    /// The same line under other numbers: who was let in goes on as told, and what is stored
    /// stays, as far as there is room for it.
    pub fn change(&mut self, new: &Self, now: u64) {
        if let Some(latest) = self.latest_passed {
            *self = self.at(now);
            self.latest_passed = Some(ceil_div(latest * new.count, self.count));
        } // Else it is as a new one.
        self.count = new.count;
        self.warm_up = new.warm_up;
        self.cold_factor = new.cold_factor;
        self.stored = self.stored.min(self.max_token());
    }

    fn warning_token(&self) -> i128 {
        self.warm_up * self.count / (self.cold_factor - 1)
    }

    fn max_token(&self) -> i128 {
        self.warning_token() + 2 * self.warm_up * self.count / (1 + self.cold_factor)
    }

    fn previous_pass(&self, second: i128) -> i128 {
        let passes = self.passes.values();
        let before = passes.filter(|pass| pass.second == second - 1 && !pass.given_back);
        before.map(|pass| pass.permits).sum()
    }

    fn sync_token(&mut self, second: i128) {
        if self.filled.is_some_and(|filled| filled >= second) {
            return;
        }
        let passed = self.previous_pass(second);
        let (warning, most) = (self.warning_token(), self.max_token());
        match self.filled {
            None => self.stored = most,
            Some(filled) => {
                let gained = (second - filled) * self.count;
                let cools = self.stored > warning && passed < self.count / self.cold_factor;
                if self.stored < warning || cools {
                    self.stored = (self.stored + gained).min(most);
                }
            }
        }
        self.stored = (self.stored - passed).max(0);
        self.filled = Some(second);
    }

    /// The same, in the second of `now`.
    fn at(&self, now: u64) -> Self {
        let mut at = self.clone();
        at.latest = at.latest.max(now.into());
        let second = at.latest / SECOND;
        let live = self.passes.values().filter(|pass| !pass.given_back);
        let mut syncs: Vec<i128> = live.map(|pass| pass.second + 1).collect();
        syncs.push(second);
        syncs.sort_unstable();
        for sync in syncs.into_iter().filter(|sync| *sync <= second) {
            at.sync_token(sync);
        }
        at
    }

    /// What one permit takes.
    fn interval(&self) -> i128 {
        let above = (self.stored - self.warning_token()).max(0);
        let most = self.max_token() - self.warning_token();
        if most == 0 {
            return SECOND;
        }
        // (1 / count) * (1 + above * (c - 1) / most) seconds.
        ceil_div(SECOND * (most + above * (self.cold_factor - 1)), most)
    }

    /// When one that comes now goes on; synced.
    fn due(&self) -> i128 {
        let now = self.latest * self.count;
        match self.latest_passed {
            Some(latest) => now.max(latest + self.interval()),
            None => now,
        }
    }
}

impl Oracle for SentinelWarmUpQueueOracle {
    fn limit(&self) -> u64 {
        u64::from(self.count > 0)
    }

    fn delay_of(&self, request: Request) -> Option<u64> {
        if request.forced {
            return request.forced_delay();
        }
        if request.permits == 0 {
            return Some(0);
        }
        if request.permits > self.limit() {
            return None;
        }
        let at = self.at(request.now);
        let wait = ceil_div(at.due() - at.latest * at.count, at.count);
        (wait <= MAX_WAIT.min(request.patience.into())).then_some(saturated(wait))
    }

    fn ever_admits(&self, request: Request) -> bool {
        if request.forced {
            return request.forced_delay().is_some();
        }
        request.permits <= self.limit()
    }

    fn remaining(&self, now: u64) -> u64 {
        u64::from(self.count > 0 && self.delay_of(Request::at(now, 1)).is_some())
    }

    fn take(&mut self, request: Request) -> Ticket {
        *self = self.at(request.now);
        let due = self.due();
        let goes_on = if request.forced {
            self.latest
        } else {
            ceil_div(due, self.count)
        };
        let last = self.passes.values().filter(|pass| !pass.given_back);
        let last = last.map(|pass| pass.second).max().unwrap_or(0);
        // In the second in which it goes on; where places were given back, not before the last.
        let second = (goes_on / SECOND).max(last);
        self.tickets += 1;
        let pass = Pass {
            second,
            permits: request.permits.into(),
            took: self.interval(),
            given_back: false,
        };
        self.passes.insert(Ticket(self.tickets), pass);
        // More than one at once are so many, one after the other.
        self.latest_passed = Some(due + (i128::from(request.permits) - 1) * self.interval());
        Ticket(self.tickets)
    }

    fn give_back(&mut self, now: u64, ticket: Ticket) {
        self.latest = self.latest.max(now.into());
        let pass = self.passes.get_mut(&ticket).expect("taken");
        // Tokens that were taken out for it already stay out.
        pass.given_back = self.filled.is_none_or(|filled| pass.second >= filled);
        self.latest_passed = self
            .latest_passed
            .map(|latest| latest - pass.took * pass.permits);
    }

    fn boxed(&self) -> Box<dyn Oracle> {
        Box::new(self.clone())
    }
}
