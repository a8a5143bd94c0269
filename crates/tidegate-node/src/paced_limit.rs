//! One bandwidth limit, as one body meets it.

use std::sync::Arc;
use std::time::Duration;

use tidegate::{Ask, Enforcer, KeyHash, Receipt, Timestamp};
use tidegate_policy::{BandwidthRule, BodyOf};

use crate::enforced_limit::EnforcedLimit;
use crate::key_bytes::KeyBytes;
use crate::nginx_rate::NginxRate;
use crate::snapshot::Snapshot;

/// How far ahead a shadow limit reserves: what would be held back longer counts as this long.
const SHADOW_AHEAD: Duration = Duration::from_mins(1);

/// A bandwidth limit that a body passes under, with everything to ask it. It borrows nothing, so
/// that it can go with the body.
#[derive(Debug)]
pub(crate) struct PacedLimit {
    pub(crate) limit: Arc<EnforcedLimit>,
    /// Where it stands in the policy.
    index: usize,
    /// By what it counts: its overrides may change.
    key: Arc<KeyBytes>,
    pub(crate) hash: KeyHash,
    /// The numbers that hold for this key.
    pub(crate) enforcer: Enforcer,
    burst: u64,
    rule: BandwidthRule,
    /// nginx's way, if it is that.
    pub(crate) steps: Option<NginxRate>,
    /// What is reserved for the piece that waits, and how long it waits for this limit.
    pub(crate) receipt: Option<Receipt>,
    pub(crate) delay: Duration,
    /// By how much a shadow limit would have made the body later.
    lag: Duration,
}

impl PacedLimit {
    pub(crate) fn new(
        (index, limit): (usize, &Arc<EnforcedLimit>),
        rule: BandwidthRule,
        (key, hash): (KeyBytes, KeyHash),
        began: Timestamp,
    ) -> Self {
        let (enforcer, burst) = limit.numbers_for(&key);
        let steps = rule
            .is_nginx
            .then(|| NginxRate::new(burst, rule.after, began));
        Self {
            enforcer: Arc::clone(enforcer),
            limit: Arc::clone(limit),
            index,
            key: Arc::new(key),
            hash,
            burst,
            rule,
            steps,
            receipt: None,
            delay: Duration::ZERO,
            lag: Duration::ZERO,
        }
    }

    /// The same for another body of the request.
    pub(crate) fn for_another(&self) -> Self {
        Self {
            limit: Arc::clone(&self.limit),
            index: self.index,
            key: Arc::clone(&self.key),
            hash: self.hash,
            enforcer: Arc::clone(&self.enforcer),
            burst: self.burst,
            rule: self.rule,
            steps: self.steps.clone(),
            receipt: None,
            delay: Duration::ZERO,
            lag: Duration::ZERO,
        }
    }

    pub(crate) const fn holds_back(&self, body: BodyOf) -> bool {
        self.rule.direction.covers(body)
    }

    pub(crate) fn is_shadow(&self) -> bool {
        self.limit.rule().shadow
    }

    /// Follows a reload. False where the limit is gone, or is not the same any more.
    pub(crate) fn renew(&mut self, snapshot: &Snapshot, body: BodyOf) -> bool {
        let name = self.limit.name();
        let is_it = |limit: &&Arc<EnforcedLimit>| limit.name() == name;
        let limits = snapshot.limits();
        let found = (limits.get(self.index).filter(is_it)).or_else(|| limits.iter().find(is_it));
        let Some(limit) = found.filter(|limit| limit.counts_as(&self.limit)) else {
            return false;
        };
        let Some(rule) = limit.rule().bandwidth else {
            return false;
        };
        if rule.is_nginx != self.rule.is_nginx || !rule.direction.covers(body) {
            return false;
        }
        let (enforcer, burst) = limit.numbers_for(&self.key);
        self.enforcer = Arc::clone(enforcer);
        (self.burst, self.rule) = (burst, rule);
        if let Some(steps) = &mut self.steps {
            steps.renumber(burst, rule.after);
        }
        self.limit = Arc::clone(limit);
        true
    }

    /// Most bytes of a piece, of a body of which so many have passed.
    pub(crate) fn most(&mut self, passed: u64, now: Timestamp) -> u64 {
        match &mut self.steps {
            Some(steps) => steps.most(now),
            // What is free does not wait together with what is not.
            None => match self.free(passed) {
                0 => self.burst,
                free => free,
            },
        }
    }

    /// How many bytes of a piece count.
    pub(crate) fn counted(&self, passed: u64, piece: u64) -> u64 {
        piece.saturating_sub(self.free(passed))
    }

    fn free(&self, passed: u64) -> u64 {
        self.rule.after.saturating_sub(passed)
    }

    /// A piece has passed `at` this time, after `passed` bytes of the body.
    pub(crate) fn passed(&mut self, passed: u64, piece: u64, at: Timestamp, body: BodyOf) {
        if self.is_shadow() {
            self.delay = self.shadow(passed, piece, at);
        } else if let Some(steps) = &mut self.steps {
            steps.passed(piece);
        }
        self.receipt = None;
        let delay = std::mem::take(&mut self.delay);
        self.limit.counts().passed(body, piece, delay);
    }

    /// Takes what an enforced limit would have taken; by how much it would have made the body
    /// later than it is.
    fn shadow(&mut self, passed: u64, piece: u64, at: Timestamp) -> Duration {
        let before = self.lag;
        if let Some(steps) = &mut self.steps {
            let mut left = piece;
            while left > 0 {
                // On the clock of a body that is as late as it would be.
                let now = at.after(self.lag);
                let part = steps.most(now).min(left);
                self.lag = self.lag.saturating_add(steps.wait(now));
                steps.passed(part);
                left -= part;
            }
            return self.lag.saturating_sub(before);
        }
        let mut left = self.counted(passed, piece);
        self.lag = Duration::ZERO;
        while left > 0 {
            let part = left.min(self.burst.max(1));
            let ask = Ask::new(part).within(SHADOW_AHEAD);
            let (decision, _) = self.enforcer.check(self.hash, at, &ask);
            if decision.is_denied() {
                self.lag = SHADOW_AHEAD;
                break;
            }
            self.lag = decision.delay();
            left -= part;
        }
        self.lag.saturating_sub(before)
    }

    /// Nothing is there to pass.
    pub(crate) fn idle(&mut self, now: Timestamp) {
        let lag = if self.is_shadow() {
            self.lag
        } else {
            Duration::ZERO
        };
        if let Some(steps) = &mut self.steps {
            steps.idle(now.after(lag));
        }
    }

    /// The piece does not pass.
    pub(crate) fn give_back(&mut self, now: Timestamp) {
        self.delay = Duration::ZERO;
        if let Some(receipt) = self.receipt.take() {
            let returned = self.enforcer.give_back(receipt, now);
            debug_assert!(
                returned.is_ok(),
                "a receipt goes back to where it came from"
            );
        }
    }
}
