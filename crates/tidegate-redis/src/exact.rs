//! Exact mode: every decision is made in Redis, by one script, for all limits of a slot at once.
//!
//! Nothing is granted that one limiter in one place would not grant, whatever the number of nodes
//! and whatever their clocks say: the time is Redis's own. A call decides for all who wait for
//! the same limits of a node, so that a node has at most one call for them in flight, however many
//! callers there are.
//!
//! ```no_run
//! # async fn example(scripts: std::sync::Arc<dyn tidegate_redis::Scripts>)
//! # -> Result<(), Box<dyn std::error::Error>> {
//! use tidegate::Quota;
//! use tidegate_redis::ExactLimiter;
//!
//! // On all machines together: at most 20 + 100 in any minute, for each user.
//! let per_user = ExactLimiter::new(scripts, "per-user", Quota::per_minute(100).burst(20))?;
//! if per_user.check("alice", 1).await?.is_allowed() {
//!     // ...
//! }
//! # Ok(())
//! # }
//! ```
//!
//! What differs from a limit that one machine keeps ([`tidegate::KeyedLimiter`]): times are in
//! ticks of a microsecond or more ([`Numbers::tick`]); windows, logs and the two-window counter
//! let nobody wait ahead ([`Ask::within`] offers them nothing); a clock of Redis that steps back
//! goes on from where it is.

mod checked;
mod denials;
mod driver;
mod lane;
mod limiter;
mod numbers;
mod script;

use std::sync::Arc;
use std::time::Duration;

use tidegate::{Ask, CheckAllError, Limit, MAX_LIMITS_PER_CHECK};
use tokio::runtime::Handle;

pub use self::checked::{CheckFailed, ExactChecked, ExactReceipt};
use self::driver::{Answered, Driver};
pub use self::limiter::ExactLimiter;
pub use self::numbers::{Kind, NotShared, Numbers};
pub use self::script::{
    Asked, EXACT, Granted, Group, Reply, Said, What, decide, forget, give_back,
};
use crate::call::{Scripts, Unavailable};
use crate::key::Subject;

/// How long a call may take where nothing else is said.
pub const DEFAULT_BUDGET: Duration = Duration::from_millis(25);

/// The door to exact limits on one Redis (or cluster): makes [`ExactLimiter`]s, and decides
/// several of them as one. Clones are the same.
///
/// It is used from within a tokio runtime, in which it spawns a task while a call is in flight.
#[derive(Clone, Debug)]
pub struct Exact {
    driver: Arc<Driver>,
}

impl Exact {
    /// Exact limits behind these scripts; a call may take [`DEFAULT_BUDGET`], and nobody lingers.
    pub fn new(scripts: Arc<dyn Scripts>) -> Self {
        Self::with(scripts, DEFAULT_BUDGET, Duration::ZERO)
    }

    /// The same, where a call may take `budget`, and one that nobody else joins yet waits for
    /// `linger` (up to some hundred microseconds) for others to come: fewer calls for more delay.
    ///
    /// A caller waits for at most two budgets and a linger: for the call in flight, and its own.
    pub fn with(scripts: Arc<dyn Scripts>, budget: Duration, linger: Duration) -> Self {
        Self {
            driver: Arc::new(Driver::new(scripts, budget, linger)),
        }
    }

    /// The limiter of this limit. Those of one name share their state, on all nodes; where their
    /// numbers differ, what was used stays used, and each counts on with its own: for one that all
    /// count by, see [`Definitions`](crate::Definitions).
    ///
    /// # Errors
    /// [`NotShared`] where the algorithm stays local, or its numbers are beyond what Redis counts
    /// exactly.
    pub fn limiter(&self, limit: &Limit) -> Result<ExactLimiter, NotShared> {
        let numbers = Numbers::of(limit.algorithm())?;
        Ok(ExactLimiter::of(self.clone(), limit.name(), numbers))
    }

    /// Takes what is asked for from each of these limits, or from none.
    ///
    /// Limits of one subject are in one slot and decided in one step. Those of different subjects
    /// are asked at the same time, each for itself, and what was granted is given back if any
    /// refuses: for so long others may find it taken, and a node that dies in between leaves it
    /// taken.
    ///
    /// # Errors
    /// [`CheckFailed`] where the list is too long or names a limit of a subject twice (nothing was
    /// taken), or where Redis does not answer in time: what was taken is not known then, but for
    /// what is known to be, which is given back.
    ///
    /// # Cancel safety
    /// Dropping the future gives back what was granted.
    pub async fn check_all(
        &self,
        limits: &[(&ExactLimiter, Subject)],
        ask: impl Into<Ask>,
    ) -> Result<ExactChecked, CheckFailed> {
        let ask = ask.into();
        let slots = slots_of(limits)?;
        let mut held = Held {
            driver: &self.driver,
            runtime: Handle::try_current().ok(),
            receipts: Vec::new(),
        };
        // Whoever is over a limit takes nothing from the others, not even for a moment.
        let remembered = |slot: &Slot<'_>| self.driver.remembered(&slot.limits, &ask).is_some();
        let is_refused = slots.iter().any(remembered);
        // All are asked before any answer is waited for.
        let asked: Vec<_> = slots
            .into_iter()
            .filter(|slot| !is_refused || remembered(slot))
            .map(|Slot { places, limits, .. }| (places, self.driver.check(&limits.into(), ask)))
            .collect();
        let mut decisions = Vec::new();
        let mut failed = None;
        for (places, check) in asked {
            match check.await {
                Ok(Answered { said, receipt }) => {
                    held.receipts.extend(receipt);
                    let place = |at: usize| places.get(at).copied();
                    let of_slot = said.into_iter();
                    decisions.extend(of_slot.filter_map(|(at, said)| Some((place(at)?, said))));
                }
                Err(error) => failed = Some(error),
            }
        }
        if let Some(error) = failed {
            return Err(error.into());
        }
        decisions.sort_by_key(|(place, _)| *place);
        let mut checked = ExactChecked {
            decisions,
            receipts: Vec::new(),
        };
        if checked.is_allowed() {
            checked.receipts = std::mem::take(&mut held.receipts);
        }
        Ok(checked)
    }

    /// Gives back what a check took, as far as time has not done so already.
    ///
    /// # Errors
    /// [`Unavailable`] where Redis does not answer in time: whether it was given back is not known.
    ///
    /// # Cancel safety
    /// Dropping the future may have given back, or not; not twice.
    pub async fn give_back(&self, receipt: ExactReceipt) -> Result<(), Unavailable> {
        self.driver.give_back(receipt).await
    }
}

/// What some slots granted while others are still asked. Dropped, it is given back: nobody waits
/// for that, since if it is lost, less is admitted, not more.
struct Held<'a> {
    driver: &'a Arc<Driver>,
    runtime: Option<Handle>,
    receipts: Vec<ExactReceipt>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        for receipt in self.receipts.drain(..) {
            if let Some(runtime) = &self.runtime {
                self.driver.give_back_in(runtime, receipt);
            }
        }
    }
}

/// The limits of one subject.
struct Slot<'a> {
    subject: &'a Subject,
    /// Where they are in the caller's list.
    places: Vec<usize>,
    limits: Vec<Asked>,
}

fn slots_of<'a>(limits: &'a [(&ExactLimiter, Subject)]) -> Result<Vec<Slot<'a>>, CheckAllError> {
    if limits.len() > MAX_LIMITS_PER_CHECK {
        return Err(CheckAllError::TooMany(limits.len()));
    }
    let mut slots: Vec<Slot<'a>> = Vec::new();
    for (at, (limiter, subject)) in limits.iter().enumerate() {
        let asked = limiter.asked(subject);
        let Some(slot) = slots.iter_mut().find(|slot| slot.subject == subject) else {
            slots.push(Slot {
                subject,
                places: vec![at],
                limits: vec![asked],
            });
            continue;
        };
        let same = slot.limits.iter().position(|other| other.key == asked.key);
        if let Some(&same) = same.and_then(|same| slot.places.get(same)) {
            return Err(CheckAllError::SameLimit(same, at));
        }
        slot.places.push(at);
        slot.limits.push(asked);
    }
    Ok(slots)
}

#[cfg(test)]
mod tests;
