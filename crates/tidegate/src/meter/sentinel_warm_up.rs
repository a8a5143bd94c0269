//! Sentinel's warm-up: a limit that is a third of itself after rest.
//!
//! `com.alibaba.csp.sentinel...WarmUpController`. Tokens are stored while the resource is little
//! asked; each whole second they are filled, and what passed in the second before is taken out.
//! The more are stored above a warning line, the fewer requests pass. The rate in use is what the
//! last two half-seconds passed. For rules that come from Sentinel; a `smooth_warm_up` is exact.
//!
//! What Sentinel gets wrong is not kept: a limit below the cold factor, which there never lets
//! anybody through, lets one through when nobody else was.

use alloc::vec::Vec;
use core::time::Duration;

use super::sentinel_tokens::Tokens;
use super::words::{count, tick};
use super::{Meter, Plan, State, Taken, Used};
use crate::{Ask, Decision, Quota, QuotaError, Retry, Timestamp, Verdict};

const SECOND: u64 = 1_000_000_000;
const HALF: u64 = SECOND / 2;
/// Half-seconds that are looked ahead for when a refused request would pass: after two of them
/// nothing counts as passing any more.
const LOOK_AHEAD: u64 = 4;

/// So many a second when warm, reached over `warm_up` from `cold_factor` times fewer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SentinelWarmUp {
    tokens: Tokens,
}

/// The state: stored tokens, and what passed of late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    tokens: u64,
    /// The second at which they were last filled, plus 1; 0 is never.
    filled: u64,
    /// The last half-second in which any passed, how many, and how many in the one before.
    half: u64,
    in_half: u64,
    in_half_before: u64,
    /// The last second in which any passed, how many, and how many in the one before.
    second: u64,
    in_second: u64,
    in_second_before: u64,
}

impl SentinelWarmUp {
    /// `count` a second; `warm_up_seconds` and `cold_factor` as Sentinel's (10 and 3).
    ///
    /// # Errors
    /// [`QuotaError`] where the numbers make no limit.
    pub fn new(count: u64, warm_up_seconds: u32, cold_factor: u32) -> Result<Self, QuotaError> {
        let tokens = Tokens::new(count, warm_up_seconds, cold_factor)?;
        Ok(Self { tokens })
    }

    /// The state at `now`: what passed has aged, and a new second has filled.
    fn at(&self, mut state: Stored, now: Timestamp) -> Stored {
        let (half, second) = (now.as_nanos() / HALF, now.as_nanos() / SECOND);
        match half.saturating_sub(state.half) {
            0 => {}
            1 => (state.in_half_before, state.in_half) = (state.in_half, 0),
            _ => (state.in_half_before, state.in_half) = (0, 0),
        }
        match second.saturating_sub(state.second) {
            0 => {}
            1 => (state.in_second_before, state.in_second) = (state.in_second, 0),
            _ => (state.in_second_before, state.in_second) = (0, 0),
        }
        state.half = state.half.max(half);
        state.second = state.second.max(second);
        self.fill(&mut state, second);
        state
    }

    /// Fills for the seconds since the last time, and takes out what the last second passed.
    fn fill(&self, state: &mut Stored, second: u64) {
        if state.filled > second {
            return;
        }
        let seconds = (state.filled > 0).then(|| second + 1 - state.filled);
        state.tokens = self
            .tokens
            .filled(state.tokens, seconds, state.in_second_before);
        state.filled = second + 1;
    }

    /// How many a second may pass just now; at least one, unless none ever may.
    fn allowed(&self, state: &Stored) -> u64 {
        let (above, most) = self.tokens.above(state.tokens);
        let warm = self.tokens.count;
        if warm == 0 || above == 0 || most == 0 {
            return warm;
        }
        let count = warm as f64;
        let slope = f64::from(self.tokens.slowness()) / count / most as f64;
        let allowed = (1.0 / (above as f64 * slope + 1.0 / count)).next_up();
        #[expect(clippy::cast_sign_loss, reason = "a rate is above 0")]
        let whole = allowed as u64;
        whole.clamp(1, warm)
    }

    fn passing(state: &Stored) -> u64 {
        state.in_half + state.in_half_before
    }

    /// When `permits` pass if nobody else comes: at the start of one of the next half-seconds.
    fn until_fits(&self, state: Stored, permits: u64, now: Timestamp) -> Option<Duration> {
        let half = now.as_nanos() / HALF;
        (1..=LOOK_AHEAD).find_map(|ahead| {
            let then = Timestamp::from_nanos((half + ahead) * HALF);
            let state = self.at(state, then);
            (Self::passing(&state) + permits <= self.allowed(&state)).then(|| then.since(now))
        })
    }
}

impl Meter for SentinelWarmUp {
    type State = Stored;
    type Change = (Stored, u64);

    fn fresh(&self, _now: Timestamp) -> Stored {
        Stored::default()
    }

    fn plan(&self, state: &Stored, now: Timestamp, ask: &Ask) -> Plan<(Stored, u64)> {
        let mut state = self.at(*state, now);
        let allowed = self.allowed(&state);
        let permits = ask.permits();
        let passing = Self::passing(&state);
        let fits = if ask.is_forced() {
            ask.forced_onto(passing).is_some()
        } else {
            permits == 0 || passing.saturating_add(permits) <= allowed
        };
        let verdict = if fits {
            state.in_half += permits;
            state.in_second += permits;
            Verdict::Allowed {
                delay: Duration::ZERO,
            }
        } else if ask.is_forced() || permits > self.tokens.count {
            Verdict::Denied {
                retry: Retry::Never,
            }
        } else {
            // What is more than a cold limit lets through at once is only admitted while others
            // keep the limit warm: by itself it never is.
            let wait = self.until_fits(state, permits, now);
            Verdict::Denied {
                retry: wait.map_or(Retry::Never, Retry::After),
            }
        };
        let passing = Self::passing(&state);
        let ages = Duration::from_nanos(2 * HALF - now.as_nanos() % HALF);
        let decision = Decision {
            verdict,
            limit: self.tokens.count,
            remaining: allowed.saturating_sub(passing),
            reset_after: if passing == 0 { Duration::ZERO } else { ages },
        };
        Plan {
            decision,
            change: (fits && permits > 0).then_some((state, permits)),
        }
    }

    fn commit(&self, state: &mut Stored, (new, permits): (Stored, u64)) -> Taken {
        *state = new;
        Taken {
            permits,
            at: Timestamp::EPOCH,
            detail: new.half,
        }
    }

    fn undo(&self, state: &mut Stored, taken: &Taken, now: Timestamp) {
        *state = self.at(*state, now);
        if taken.detail == state.half {
            state.in_half = state.in_half.saturating_sub(taken.permits);
        } else if taken.detail + 1 == state.half {
            state.in_half_before = state.in_half_before.saturating_sub(taken.permits);
        }
        if taken.detail / 2 == state.second {
            state.in_second = state.in_second.saturating_sub(taken.permits);
        } else if taken.detail / 2 + 1 == state.second {
            state.in_second_before = state.in_second_before.saturating_sub(taken.permits);
        }
    }

    fn used(&self, state: &Stored, now: Timestamp) -> Used {
        Used::permits(Self::passing(&self.at(*state, now)))
    }

    fn assume(&self, used: Used, now: Timestamp) -> Stored {
        let mut state = self.at(Stored::default(), now);
        state.in_half = used.permits_ceil().min(Quota::MAX_PERMITS);
        state.in_second = state.in_half;
        state
    }

    fn migrate(&self, new: &Self, state: &mut Stored, now: Timestamp) {
        *state = self.at(*state, now);
        state.tokens = state.tokens.min(new.tokens.most());
    }

    fn at_stake(&self, state: &Stored, now: Timestamp) -> Option<u64> {
        // A fresh key is cold: only what passed just now would be forgotten.
        Some(Self::passing(&self.at(*state, now)))
    }
}

impl State for Stored {
    #[cfg(feature = "std")]
    type Cell = crate::store::MutexCell<Self>;

    fn write_words(&self, words: &mut Vec<u64>) {
        words.extend([self.tokens, self.filled]);
        words.extend([self.half, self.in_half, self.in_half_before]);
        words.extend([self.second, self.in_second, self.in_second_before]);
    }

    fn from_words(words: &[u64]) -> Option<Self> {
        let [tokens, filled, of_halves @ .., second, in_second, before] = words else {
            return None;
        };
        let [half, in_half, in_half_before] = of_halves else {
            return None;
        };
        Some(Self {
            tokens: count(*tokens),
            filled: tick(*filled),
            half: tick(*half),
            in_half: count(*in_half),
            in_half_before: count(*in_half_before),
            second: tick(*second),
            in_second: count(*in_second),
            in_second_before: count(*before),
        })
    }
}

#[cfg(test)]
mod tests;
