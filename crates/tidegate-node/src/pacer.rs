//! The bandwidth limits that one body passes under.

use std::fmt;
use std::time::Duration;

use smallvec::SmallVec;
use tidegate::{Answer, Ask, Asked, Retry, Timestamp, check_all_with_receipts};
use tidegate_policy::BodyOf;

use crate::node::Node;
use crate::paced_limit::PacedLimit;

/// When to ask again where nothing could be decided.
const UNDECIDED: Duration = Duration::from_secs(1);

/// Says when the pieces of one body may pass, under all of its bandwidth limits.
///
/// A piece is reserved of all of them or of none, and waits for the slowest. What is reserved goes
/// in the order it is asked for: the bodies of a key take turns. A policy that has been reloaded
/// holds from the next piece on; a limit that is gone, or counts by another key, holds no longer.
/// Shadow limits count what they would have held back, and hold nothing.
pub struct Pacer {
    body: BodyOf,
    limits: Vec<PacedLimit>,
    revision: u64,
    /// Bytes of the body that have passed.
    passed: u64,
    /// The piece that was taken: its bytes, and when it may pass.
    piece: u64,
    at: Timestamp,
    is_stepwise: bool,
}

impl Pacer {
    pub(crate) fn new(body: BodyOf, limits: Vec<PacedLimit>, revision: u64) -> Self {
        let is_stepwise = limits.iter().any(|one| one.steps.is_some());
        Self {
            body,
            limits,
            revision,
            passed: 0,
            piece: 0,
            at: Timestamp::EPOCH,
            is_stepwise,
        }
    }

    /// Whether a limit goes by nginx's `limit_rate`, which wants to know of the
    /// [header](Self::count_head), and when [nothing is there](Self::idle).
    pub const fn is_stepwise(&self) -> bool {
        self.is_stepwise
    }

    /// Counts the bytes of the header before the body, where that counts.
    pub fn count_head(&mut self, bytes: u64) {
        for steps in self.limits.iter_mut().filter_map(|one| one.steps.as_mut()) {
            steps.count_head(bytes);
        }
    }

    /// Most bytes of the next piece, at least 1, under what `node` has in force.
    pub fn most(&mut self, node: &Node, now: Timestamp) -> u64 {
        let snapshot = node.snapshot();
        if snapshot.revision() != self.revision {
            self.revision = snapshot.revision();
            let body = self.body;
            self.limits.retain_mut(|one| one.renew(&snapshot, body));
        }
        let passed = self.passed;
        let enforced = self.limits.iter_mut().filter(|one| !one.is_shadow());
        let most = enforced.map(|one| one.most(passed, now)).min();
        most.unwrap_or(u64::MAX).max(1)
    }

    /// Takes so many bytes, no more than [`most`](Self::most) has just said, for a piece; how long
    /// it waits. It [passes](Self::passed) then, or is [given back](Self::give_back).
    ///
    /// # Errors
    /// Nothing was taken; when to ask again.
    pub fn take(&mut self, bytes: u64, now: Timestamp) -> Result<Duration, Duration> {
        self.reserve(bytes, now)?;
        let mut longest = Duration::ZERO;
        for one in self.limits.iter_mut().filter(|one| !one.is_shadow()) {
            if let Some(steps) = &one.steps {
                one.delay = steps.wait(now);
            }
            longest = longest.max(one.delay);
        }
        self.piece = bytes;
        self.at = now.after(longest);
        Ok(longest)
    }

    /// Reserves a piece of all buckets, or of none.
    fn reserve(&mut self, bytes: u64, now: Timestamp) -> Result<(), Duration> {
        let passed = self.passed;
        let ask = |one: &PacedLimit| {
            let counted = one.counted(passed, bytes);
            let asks = counted > 0 && one.steps.is_none() && !one.is_shadow();
            asks.then(|| Ask::new(counted).within(Duration::MAX))
        };
        // The usual case needs no list.
        if let [only] = self.limits.as_mut_slice() {
            let Some(ask) = ask(only) else { return Ok(()) };
            let (decision, receipt) = only.enforcer.check(only.hash, now, &ask);
            return settle(std::iter::once((only, Answer { decision, receipt })));
        }
        let asked = |one: &PacedLimit| ask(one).is_some();
        let asks: SmallVec<[Asked<'_>; 4]> = (self.limits.iter())
            .filter_map(|one| Some(Asked::new(&*one.enforcer, one.hash, ask(one)?)))
            .collect();
        match check_all_with_receipts(&asks, now) {
            Ok(answers) => {
                drop(asks);
                let asked = self.limits.iter_mut().filter(|one| asked(one));
                settle(asked.zip(answers))
            }
            // More limits than one check takes, which no policy has: what cannot be decided does
            // not pass.
            Err(error) => {
                tracing::error!(%error, "a body is held back: cannot decide");
                Err(UNDECIDED)
            }
        }
    }

    /// The piece that was taken has passed.
    pub fn passed(&mut self) {
        for one in &mut self.limits {
            one.passed(self.passed, self.piece, self.at, self.body);
        }
        self.passed += self.piece;
        self.piece = 0;
    }

    /// The piece that was taken will not pass.
    pub fn give_back(&mut self, now: Timestamp) {
        for one in &mut self.limits {
            one.give_back(now);
        }
        self.piece = 0;
    }

    /// Nothing is there that could pass.
    pub fn idle(&mut self, now: Timestamp) {
        for one in &mut self.limits {
            one.idle(now);
        }
    }
}

/// Notes what was reserved. Where one refused, none was charged: how long that takes.
fn settle<'a>(answers: impl Iterator<Item = (&'a mut PacedLimit, Answer)>) -> Result<(), Duration> {
    let mut again: Option<Duration> = None;
    for (one, Answer { decision, receipt }) in answers {
        match decision.retry() {
            None => {
                one.delay = decision.delay();
                one.receipt = receipt;
            }
            Some(Retry::After(wait)) => again = again.max(Some(wait)),
            Some(Retry::Never | Retry::OnRelease) => again = again.max(Some(UNDECIDED)),
        }
    }
    again.map_or(Ok(()), Err)
}

impl fmt::Debug for Pacer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pacer")
            .field("body", &self.body)
            .field("passed", &self.passed)
            .finish_non_exhaustive()
    }
}
