//! Several limits, decided as one: all are charged, or none.
//!
//! Each store is held still while the next is asked (two-phase locking, in the order of the
//! stores' ids, so that no two checks can wait for each other), and only when all have agreed is
//! any charged. Nobody sees a request half-charged.

use core::fmt;
use std::sync::Arc;

use crate::enforce::{Enforce, LimitRef, Receipt};
use crate::key_hash::KeyHash;
use crate::{Ask, Decision, Timestamp};

/// The most limits of one check.
pub const MAX_LIMITS_PER_CHECK: usize = 32;

/// One limit, and what is asked of it.
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    limit: LimitRef<'a>,
    key: KeyHash,
    ask: Ask,
}

impl<'a> Asked<'a> {
    /// `ask` of a limit's key; a limit of one key does not look at which.
    pub const fn new(limit: &'a dyn Enforce, key: KeyHash, ask: Ask) -> Self {
        Self {
            limit: LimitRef::Borrowed(limit),
            key,
            ask,
        }
    }

    /// What this limit would answer alone. Takes nothing.
    pub fn peek(&self, now: Timestamp) -> Decision {
        self.limit.peek(self.key, now, &self.ask)
    }

    /// The same of a limit whose numbers may be replaced before it is asked.
    pub(crate) const fn shared(limit: Arc<dyn Enforce>, key: KeyHash, ask: Ask) -> Self {
        Self {
            limit: LimitRef::Shared(limit),
            key,
            ask,
        }
    }
}

/// Why several limits could not be decided as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CheckAllError {
    /// More than [`MAX_LIMITS_PER_CHECK`].
    TooMany(usize),
    /// Two of them are the same limit (at these places in the list): ask it once, for the sum.
    SameLimit(usize, usize),
}

impl fmt::Display for CheckAllError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany(n) => {
                write!(f, "{n} limits in one check: at most {MAX_LIMITS_PER_CHECK}")
            }
            Self::SameLimit(a, b) => write!(
                f,
                "limits {a} and {b} of one check are the same one: ask it once, for the sum"
            ),
        }
    }
}

impl core::error::Error for CheckAllError {}

/// One limit's own answer within a check of several, and what was taken from it.
#[derive(Debug)]
pub struct Answer {
    /// What the limit says, whatever the others say.
    pub decision: Decision,
    /// What was taken: something only where all limits allowed.
    pub receipt: Option<Receipt>,
}

/// The answer of several limits: held until the request has ended.
///
/// Dropping it gives back the places of concurrency limits; permits of rate limits stay taken
/// unless [`give_back`](Self::give_back) is called.
#[derive(Debug)]
#[must_use = "dropping it gives concurrency places back at once"]
pub struct Checked<'a> {
    limits: Vec<LimitRef<'a>>,
    answers: Vec<Answer>,
}

/// Takes what is asked from all of these limits, or from none.
///
/// With several delays the caller waits for the longest. A check of no limits is allowed.
///
/// # Errors
/// [`CheckAllError`] where the list is too long or names a limit twice. Nothing was taken then.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tidegate::{Clock, KeyedLimiter, Limiter, Quota, SystemClock, check_all};
///
/// let per_user = KeyedLimiter::builder(Quota::per_second(10)).build()?;
/// let in_all = Limiter::new(Quota::per_second(1_000))?;
///
/// let now = SystemClock::new().now();
/// let checked = check_all(&[per_user.ask("user-7", 1), in_all.ask(1)], now)?;
/// assert!(checked.is_allowed());
/// # Ok(())
/// # }
/// ```
pub fn check_all<'a>(asks: &[Asked<'a>], now: Timestamp) -> Result<Checked<'a>, CheckAllError> {
    let answers = check_all_with_receipts(asks, now)?;
    Ok(Checked {
        limits: asks.iter().map(|asked| asked.limit.clone()).collect(),
        answers,
    })
}

/// [`check_all`] for callers that keep the receipts themselves: those of gates must be given back
/// when the request has ended. The answers are in the order of `asks`.
///
/// # Errors
/// As [`check_all`].
pub fn check_all_with_receipts(
    asks: &[Asked<'_>],
    now: Timestamp,
) -> Result<Vec<Answer>, CheckAllError> {
    let mut answers = ask_all(asks, now)?;
    for _ in 0..MAX_MOVES {
        if !answers
            .iter()
            .any(|answer| answer.decision == Decision::MOVED)
        {
            break;
        }
        // A store was taken over meanwhile: its successor is asked in its place, in its own turn.
        let successors: Vec<_> = asks.iter().map(|asked| last_of(&*asked.limit)).collect();
        let asks: Vec<_> = asks
            .iter()
            .zip(&successors)
            .map(|(asked, successor)| match successor {
                Some(limit) => Asked::new(&**limit, asked.key, asked.ask),
                None => asked.clone(),
            })
            .collect();
        answers = ask_all(&asks, now)?;
    }
    Ok(answers)
}

/// How often a check of several limits follows stores that are taken over before it gives up.
const MAX_MOVES: usize = 8;

/// The limit that has taken the place of this one and has kept it.
fn last_of(limit: &dyn Enforce) -> Option<Arc<dyn Enforce>> {
    let mut last = limit.successor()?;
    while let Some(next) = last.successor() {
        last = next;
    }
    Some(last)
}

fn ask_all(asks: &[Asked<'_>], now: Timestamp) -> Result<Vec<Answer>, CheckAllError> {
    let mut order = [0; MAX_LIMITS_PER_CHECK];
    let order = order
        .get_mut(..asks.len())
        .ok_or(CheckAllError::TooMany(asks.len()))?;
    for (at, place) in order.iter_mut().enumerate() {
        *place = at;
    }
    order.sort_unstable_by_key(|at| (asks[*at].limit.store_id(), *at));
    for pair in order.windows(2) {
        if asks[pair[0]].limit.store_id() == asks[pair[1]].limit.store_id() {
            return Err(CheckAllError::SameLimit(pair[0], pair[1]));
        }
    }
    let mut answers: Vec<_> = asks
        .iter()
        .map(|_| Answer {
            decision: Decision::NOT_ASKED,
            receipt: None,
        })
        .collect();
    for Asked { limit, key, .. } in asks {
        limit.prepare(*key, now);
    }
    hold_rest(asks, order, now, true, &mut answers);
    Ok(answers)
}

/// Holds the first of `order` still while the rest is asked, and charges it if all agree.
/// `so_far` says whether all before it do. Returns whether all do.
fn hold_rest(
    asks: &[Asked<'_>],
    order: &[usize],
    now: Timestamp,
    so_far: bool,
    answers: &mut [Answer],
) -> bool {
    let Some((&at, rest)) = order.split_first() else {
        return so_far;
    };
    let Asked { limit, key, ask } = &asks[at];
    let mut all = false;
    let receipt = limit.hold(*key, now, ask, &mut |decision| {
        answers[at].decision = decision;
        // A limit that comes after a denial is still asked: the caller is told the longest wait.
        all = hold_rest(asks, rest, now, so_far && decision.is_allowed(), answers);
        all
    });
    answers[at].receipt = receipt;
    all
}

impl Checked<'_> {
    /// Whether the request may go ahead, after the longest delay.
    pub fn is_allowed(&self) -> bool {
        self.answers
            .iter()
            .all(|answer| answer.decision.is_allowed())
    }

    /// The decision that a caller should be told, with its place in the list: the denial with the
    /// longest wait, or else the allowance with the least remaining. `None` for an empty list.
    pub fn told(&self) -> Option<(usize, &Decision)> {
        self.decisions()
            .enumerate()
            .min_by(|(_, a), (_, b)| a.cmp_severity(b))
    }

    /// Each limit's own answer, in the order they were asked.
    pub fn decisions(&self) -> impl Iterator<Item = &Decision> {
        self.answers.iter().map(|answer| &answer.decision)
    }

    /// Gives back all that was taken.
    pub fn give_back(mut self, now: Timestamp) {
        for (limit, answer) in self.limits.iter().zip(&mut self.answers) {
            if let Some(receipt) = answer.receipt.take() {
                let returned = limit.give_back(receipt, now);
                debug_assert!(
                    returned.is_ok(),
                    "a receipt goes back to where it came from"
                );
            }
        }
    }
}

impl Drop for Checked<'_> {
    fn drop(&mut self) {
        for (limit, answer) in self.limits.iter().zip(&mut self.answers) {
            if let Some(receipt) = answer.receipt.take_if(|_| limit.is_gate()) {
                // Gates do not look at the time.
                let returned = limit.give_back(receipt, Timestamp::EPOCH);
                debug_assert!(
                    returned.is_ok(),
                    "a receipt goes back to where it came from"
                );
            }
        }
    }
}
