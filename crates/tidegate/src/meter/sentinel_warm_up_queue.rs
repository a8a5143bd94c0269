//! Sentinel's warm-up with queueing: one at a time, at a pace that is slow after rest.
//!
//! `com.alibaba.csp.sentinel...WarmUpRateLimiterController`: tokens are stored and taken out as
//! for the warm-up, and say how long one permit takes: `(1 + above * (c - 1) / most) / count`
//! seconds, with `above` of `most` tokens over the warning line and `c` the cold factor. Who comes
//! goes on that long after the last who was let in, and at once where that time is over.
//!
//! Exact, where Sentinel rounds to milliseconds (at most 1,000 a second, and above 2,000 no limit
//! at all). Kept as times scaled by `count`, so that a permit costs 10^9 when warm; what it costs
//! more when cold is rounded up to a whole unit.

use alloc::vec::Vec;
use core::time::Duration;

use super::log::{Append, Log};
use super::sentinel_tokens::Tokens;
use super::words::{count, halves, tick};
use super::{Meter, Plan, State, Taken, Used};
use crate::{Ask, Decision, QuotaError, Retry, Timestamp, Verdict};

const SECOND: u64 = 1_000_000_000;
/// Scaled times from which on nothing is forced: beyond the end of time at every rate.
const MOST_OWED: i128 = 1 << 96;

/// One permit at a time: `count` a second when warm, `cold_factor` times fewer after rest, and
/// from there to warm in about `warm_up` of steady asking.
///
/// In every interval of length *t* at most `1 + count * t` permits. More than one at once never
/// pass, unless they are forced. A caller that offers to wait is let in at the end of the line,
/// which is at most [`MAX_WAIT`](Self::MAX_WAIT) long: others have to come again.
///
/// Tokens are taken out for what goes on, in the second in which it goes on, and filled for the
/// seconds between. Who gives up gives back the time that it took.
///
/// Other numbers change it as they do Guava's pair: the last of the line goes on when it was told
/// to, and what is stored stays, as far as there is room for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SentinelWarmUpQueue {
    tokens: Tokens,
}

/// The state: tokens, and the line.
#[derive(Clone, Debug, Default)]
pub struct Line {
    filled: Filled,
    /// The scaled time at which the last of the line goes on; of a new key, so long ago that the
    /// next is free.
    last: i128,
    /// How many go on in which second, as far as no token has been taken out for them yet.
    passes: Log,
}

/// Tokens, and the second at which they were last filled, plus 1; 0 is never.
#[derive(Clone, Copy, Debug, Default)]
struct Filled {
    tokens: u64,
    until: u64,
}

/// What a request would change.
#[derive(Clone, Copy, Debug)]
pub struct Enter {
    filled: Filled,
    last: i128,
    price: u64,
    pass: Append,
}

impl SentinelWarmUpQueue {
    /// The longest wait in line: ten minutes. A key remembers the seconds of its line, 16 bytes
    /// for each.
    pub const MAX_WAIT: Duration = Duration::from_mins(10);

    /// `count` a second; `warm_up_seconds` and `cold_factor` as Sentinel's (10 and 3).
    ///
    /// # Errors
    /// [`QuotaError`] where the numbers make no limit.
    pub fn new(count: u64, warm_up_seconds: u32, cold_factor: u32) -> Result<Self, QuotaError> {
        let tokens = Tokens::new(count, warm_up_seconds, cold_factor)?;
        Ok(Self { tokens })
    }

    fn scaled(&self, now: u64) -> i128 {
        i128::from(now) * i128::from(self.tokens.count)
    }

    /// The first nanosecond at which a scaled time has come. Long after the end of time, all are
    /// the same.
    fn nanos_of(&self, scaled: i128) -> u64 {
        let count = u128::from(self.tokens.count.max(1));
        let nanos = u128::try_from(scaled).unwrap_or(0).div_ceil(count);
        u64::try_from(nanos).unwrap_or(u64::MAX).min(1 << 63)
    }

    /// What one permit costs where so many tokens are stored, in scaled nanoseconds.
    fn price(&self, tokens: u64) -> u64 {
        let (above, most) = self.tokens.above(tokens);
        let more = u128::from(SECOND) * u128::from(above) * u128::from(self.tokens.slowness());
        // At most a hundred times the warm price.
        SECOND + u64::try_from(more.div_ceil(u128::from(most.max(1)))).unwrap_or(u64::MAX >> 1)
    }

    fn fill(&self, filled: &mut Filled, second: u64, passed: u64) {
        let seconds = (filled.until > 0).then(|| (second + 1).saturating_sub(filled.until));
        filled.tokens = self.tokens.filled(filled.tokens, seconds, passed);
        filled.until = filled.until.max(second + 1);
    }

    /// Takes out what went on before `second`, from the entry of this index on.
    fn take_out(&self, filled: &mut Filled, from: &mut usize, passes: &Log, second: u64) {
        while let Some((of, passed)) = passes.entry(*from).filter(|entry| entry.0 < second) {
            self.fill(filled, of + 1, passed);
            *from += 1;
        }
    }

    /// And fills until then.
    fn until(&self, mut filled: Filled, second: u64) -> Filled {
        if filled.until <= second {
            self.fill(&mut filled, second, 0);
        }
        filled
    }

    /// The first time from `now` on at which somebody is let in who waits so long.
    fn lets_in_at(&self, line: &Line, now: u64, patience: u64) -> u64 {
        let (mut filled, mut from) = (line.filled, 0);
        // Not before a permit at its cheapest has come.
        let cheapest = self.nanos_of(line.last + i128::from(SECOND));
        let mut at = now.max(cheapest.saturating_sub(patience));
        loop {
            let second = at / SECOND;
            self.take_out(&mut filled, &mut from, &line.passes, second);
            let price = self.price(self.until(filled, second).tokens);
            let due = self.nanos_of(line.last + i128::from(price));
            let lets_in = due.saturating_sub(patience);
            let next = (second + 1).saturating_mul(SECOND);
            if lets_in < next {
                return at.max(lets_in);
            }
            // No permit costs more than a hundred seconds, so this ends.
            at = next;
        }
    }

    fn answer(&self, line: &Line, now: u64, verdict: Verdict) -> Decision {
        let limit = self.tokens.count.min(1);
        let free = if limit == 0 {
            now
        } else {
            self.lets_in_at(line, now, 0)
        };
        Decision {
            verdict,
            limit,
            remaining: if free == now { limit } else { 0 },
            reset_after: Duration::from_nanos(free - now),
        }
    }
}

impl Meter for SentinelWarmUpQueue {
    type State = Line;
    type Change = Enter;

    fn fresh(&self, _now: Timestamp) -> Line {
        Line {
            last: -i128::from(self.price(self.tokens.most())),
            ..Line::default()
        }
    }

    fn plan(&self, line: &Line, now: Timestamp, ask: &Ask) -> Plan<Enter> {
        let nanos = now.as_nanos();
        let second = nanos / SECOND;
        let refuse = |retry| Plan {
            decision: self.answer(line, nanos, Verdict::Denied { retry }),
            change: None,
        };
        if ask.permits() == 0 {
            let delay = Duration::ZERO;
            return Plan {
                decision: self.answer(line, nanos, Verdict::Allowed { delay }),
                change: None,
            };
        }
        if !ask.is_forced() && ask.permits() > self.tokens.count.min(1) {
            return refuse(Retry::Never);
        }
        let (mut filled, mut left) = (line.filled, 0);
        self.take_out(&mut filled, &mut left, &line.passes, second);
        let filled = self.until(filled, second);
        let price = self.price(filled.tokens);
        let mut last = (line.last + i128::from(price)).max(self.scaled(nanos));
        let mut goes_on = self.nanos_of(last);
        if ask.is_forced() {
            if ask.forced_onto(line.passes.total()).is_none() || last >= MOST_OWED {
                return refuse(Retry::Never);
            }
            // All of them now; each but the first makes the line longer by its time.
            goes_on = nanos;
            last += i128::from(ask.permits() - 1) * i128::from(price);
        }
        let delay = goes_on - nanos;
        let longest = u64::try_from(Self::MAX_WAIT.as_nanos()).unwrap_or(u64::MAX);
        let patience = ask.patience_at(now).min(longest);
        if delay > patience {
            let at = self.lets_in_at(line, nanos, patience);
            return refuse(Retry::After(Duration::from_nanos(at - nanos)));
        }
        // Where places were given back, a cheaper permit may be due before the last one.
        let tick = (goes_on / SECOND).max(line.passes.last_tick().unwrap_or(0));
        let pass = Append {
            left,
            asked: second,
            tick,
            permits: ask.permits(),
        };
        let change = Enter {
            filled,
            last,
            price,
            pass,
        };
        let mut entered = line.clone();
        let _ = self.commit(&mut entered, change);
        let delay = Duration::from_nanos(delay);
        Plan {
            decision: self.answer(&entered, nanos, Verdict::Allowed { delay }),
            change: Some(change),
        }
    }

    fn commit(&self, line: &mut Line, enter: Enter) -> Taken {
        line.filled = enter.filled;
        line.last = enter.last;
        line.passes.append(enter.pass);
        Taken {
            permits: enter.pass.permits,
            at: Timestamp::from_secs(enter.pass.tick),
            detail: enter.price,
        }
    }

    fn undo(&self, line: &mut Line, taken: &Taken, _now: Timestamp) {
        line.last -= i128::from(taken.detail) * i128::from(taken.permits);
        let second = taken.at.as_nanos() / SECOND;
        line.passes.take_out(second, taken.permits);
    }

    fn used(&self, line: &Line, now: Timestamp) -> Used {
        if self.tokens.count == 0 {
            return Used::NOTHING;
        }
        let second = now.as_nanos() / SECOND;
        let (mut filled, mut from) = (line.filled, 0);
        self.take_out(&mut filled, &mut from, &line.passes, second);
        let price = self.price(self.until(filled, second).tokens);
        let due = line.last + i128::from(price);
        let owed = (due - self.scaled(now.as_nanos())).max(0);
        Used::units(owed.unsigned_abs(), price)
    }

    fn assume(&self, used: Used, now: Timestamp) -> Line {
        let mut line = self.fresh(now);
        if used != Used::NOTHING {
            // Cold, as a new key is. Nobody lives to see 2^100 units go by.
            let price = self.price(self.tokens.most());
            let owed = used.to_units(price).min(1 << 100);
            line.last += self.scaled(now.as_nanos()) + owed.cast_signed();
        }
        line
    }

    fn migrate(&self, new: &Self, line: &mut Line, now: Timestamp) {
        let second = now.as_nanos() / SECOND;
        let mut left = 0;
        self.take_out(&mut line.filled, &mut left, &line.passes, second);
        line.passes.forget(left);
        line.filled = self.until(line.filled, second);
        line.filled.tokens = line.filled.tokens.min(new.tokens.most());
        // The last of the line goes on when it was told to.
        let (from, to) = (self.tokens.count.max(1), new.tokens.count);
        let last = line.last.clamp(-(1 << 94), 1 << 94) * i128::from(to);
        line.last = (last + i128::from(from) - 1).div_euclid(i128::from(from));
    }

    fn at_stake(&self, line: &Line, now: Timestamp) -> Option<u64> {
        // A fresh key has no line.
        Some(self.used(line, now).permits_ceil())
    }
}

impl State for Line {
    #[cfg(feature = "std")]
    type Cell = crate::store::MutexCell<Self>;

    fn write_words(&self, words: &mut Vec<u64>) {
        words.extend([self.filled.tokens, self.filled.until]);
        words.extend(halves(self.last.cast_unsigned()));
        self.passes.write_words(words);
    }

    fn from_words(words: &[u64]) -> Option<Self> {
        let [tokens, until, upper, lower, passes @ ..] = words else {
            return None;
        };
        let last = u128::from(*upper) << 64 | u128::from(*lower);
        Some(Self {
            filled: Filled {
                tokens: count(*tokens),
                until: tick(*until),
            },
            last: last.cast_signed().clamp(-MOST_OWED, MOST_OWED),
            passes: Log::from_words(passes)?,
        })
    }
}

#[cfg(test)]
mod tests;
