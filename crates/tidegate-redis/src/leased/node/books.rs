//! What a node has to remember between its calls.

use std::collections::VecDeque;
use std::time::Duration;

use tidegate::Timestamp;

use super::mint::Mint;
use super::nanos;
use crate::backoff::Backoff;
use crate::leased::terms::{LeaseTerms, surely_beyond, surely_within};
use crate::leased::wire::{LeaseReply, LeaseRequest, NodeId};

/// The shortest time over which demand is measured.
const SHORTEST_MEASURE: u64 = 1_000_000;
/// Grants that are remembered one by one; older ones are added up.
const MOST_GRANTS: usize = 64;
/// A refresh hurries if it follows the one before it within this part of the time, in hundredths,
/// and is in time if not before that one.
const HURRIED: u128 = 25;
const IN_TIME: u128 = 85;
/// Most refreshes that hurry before one is in time. Each asks for what was asked of the node during
/// the one before it, so that a few are enough to get from nothing to any demand.
const MOST_HURRIED: u32 = 4;
/// Of the burst, what a node keeps of a key that nobody asks for.
const RESTING_PART: u64 = 32;
/// What is asked for is this much above the demand, in hundredths.
const HEADROOM: u64 = 115;
/// A window's node that is silent for so long may be forgotten by Redis.
const MEMBERSHIPS_REMEMBERED: u64 = 10;
const SECOND: u64 = 1_000_000_000;

/// Whether a key looks after itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Active,
    /// Nobody asks, and Redis was told so.
    Rests,
    /// Nothing answers any key: it waits until somebody asks.
    StandsBy,
}

/// What a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    Refresh,
    /// Nobody asks: a few permits are enough, and no share.
    Rest,
    /// It gives up the key.
    Leave,
    /// The same, and there is nothing to tell.
    Forget,
}

/// Everything that only refreshes and minting look at.
#[derive(Debug)]
pub(super) struct Books {
    seq: u64,
    /// The last call with an answer: its number, when it was sent, when the answer came.
    ack: u64,
    sent: Timestamp,
    answered: Timestamp,
    pub(super) flight: Option<Flight>,
    pub(super) is_down: bool,
    pub(super) has_left: bool,
    pub(super) back_off: Backoff,
    /// Permits per second; up at once, down slowly.
    pub(super) demand: u64,
    measured: Timestamp,
    /// Asked for since then as well: so short a time ago that the demand was a guess.
    guessed: Option<u64>,
    /// When somebody had last asked, as far as calls tell.
    pub(super) asked_at: Timestamp,
    pub(super) mode: Mode,
    /// Permits spent since then, and what there was when they were last counted.
    spent: u64,
    pub(super) given: u64,
    /// What may be minted of the rate, in millionths.
    share: u64,
    mint: Mint,
    /// Minted, and owed, since call `ack` was sent.
    owed: u64,
    pub(super) minted: u64,
    grants: VecDeque<Grant>,
    /// What there was of the window that is leased: spent, or not yet. Never more than Redis noted.
    pub(super) taken: u64,
    pub(super) nodes: u64,
    /// Refreshes that hurried since one was in time.
    hurried: u32,
}

#[derive(Clone, Copy, Debug)]
struct Grant {
    seq: u64,
    permits: u64,
    at: Timestamp,
}

/// A call that is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    pub(super) seq: u64,
    pub(super) sent: Timestamp,
    minted: u64,
}

impl Flight {
    pub(super) const fn of(request: &LeaseRequest, sent: Timestamp) -> Self {
        Self {
            seq: request.seq,
            sent,
            minted: request.minted,
        }
    }
}

impl Books {
    pub(super) fn new(now: Timestamp) -> Self {
        Self {
            seq: 0,
            ack: 0,
            sent: now,
            answered: now,
            flight: None,
            is_down: false,
            has_left: false,
            back_off: Backoff::default(),
            demand: 0,
            measured: now,
            guessed: None,
            asked_at: now,
            mode: Mode::Active,
            spent: 0,
            given: 0,
            share: 0,
            mint: Mint::default(),
            owed: 0,
            minted: 0,
            grants: VecDeque::new(),
            taken: 0,
            nodes: 0,
            hurried: 0,
        }
    }

    pub(super) const fn is_new(&self) -> bool {
        self.ack == 0
    }

    /// There are only so many of the given permits left.
    pub(super) fn spent_until(&mut self, left: u64) {
        self.spent += self.given.saturating_sub(left);
        self.given = left;
    }

    /// How much was asked since the last time, which is noted as a rate; and whether nobody has.
    pub(super) fn measure(&mut self, now: Timestamp, refused: u64) -> (u64, bool) {
        let asked = self.spent.saturating_add(refused);
        self.spent = 0;
        if asked > 0 {
            self.asked_at = now;
        }
        if self.mode == Mode::Rests {
            // How long it was at rest says nothing of what is to come.
            self.measured = now;
        }
        let passed = now.nanos_since(self.measured);
        // Those who had to wait then are those who were served since.
        let counted = asked.max(self.guessed.unwrap_or(0));
        let is_idle = counted == self.guessed.unwrap_or(0);
        let rate =
            u128::from(counted) * u128::from(SECOND) / u128::from(passed.max(SHORTEST_MEASURE));
        let rate = u64::try_from(rate).unwrap_or(u64::MAX).min(1 << 50);
        self.demand = match self.guessed {
            Some(_) => rate,
            None => rate.max((self.demand * 7 + rate * 3) / 10),
        };
        if passed < SHORTEST_MEASURE {
            self.guessed = Some(counted);
        } else {
            (self.guessed, self.measured) = (None, now);
        }
        (asked, is_idle)
    }

    /// What to do now that it has been measured.
    pub(super) fn plan(
        &self,
        terms: &LeaseTerms,
        now: Timestamp,
        (is_idle, is_live, must_leave): (bool, bool, bool),
    ) -> Plan {
        let rests = self.mode == Mode::Rests;
        // All that Redis knew of it has ended.
        let is_over = self.seq == 0 || rests && !is_live;
        let is_unknown = self.seq == 0 || now >= self.mint_end(terms);
        // What is lent of a window may last for longer than Redis is waited for.
        let is_forgotten = self.is_forgotten(terms, now) && !is_live;
        let may_forget = is_forgotten || is_over && (is_unknown || must_leave);
        // Of a key at rest nobody knows how much it is asked for, and what is taken for whoever
        // comes would lie unused where a window is small. So that of a window goes on until it is
        // asked for nothing, and leaves.
        let is_window = terms.window_micros.is_some();
        let is_quiet = is_idle && !self.is_down;
        if may_forget && (is_idle || must_leave) {
            Plan::Forget
        } else if must_leave || is_idle && rests || is_window && is_quiet && self.demand == 0 {
            Plan::Leave
        } else if !is_window && is_quiet && self.target_for(terms.refresh()) <= 1 {
            Plan::Rest
        } else {
            Plan::Refresh
        }
    }

    /// What is asked for in this time.
    pub(super) fn target_for(&self, time: Duration) -> u64 {
        let permits = u128::from(self.demand) * time.as_nanos() / u128::from(SECOND);
        u64::try_from(permits).unwrap_or(u64::MAX)
    }

    /// What the node should have after a refresh: enough until the answer to the next one.
    pub(super) fn target(&self, terms: &LeaseTerms, round_trip: Duration) -> u64 {
        let target = self.target_for(terms.refresh() + round_trip);
        (target.saturating_mul(HEADROOM) / 100).min(terms.burst()) + 1
    }

    /// What it keeps when nobody asks: enough to begin with when somebody does.
    pub(super) fn target_at_rest(&self, terms: &LeaseTerms, round_trip: Duration) -> u64 {
        let most = (terms.burst() / RESTING_PART).max(1);
        self.target(terms, round_trip).min(most)
    }

    /// The next call, but for what is held and wanted.
    pub(super) fn depart(
        &mut self,
        node: NodeId,
        terms: &LeaseTerms,
        now: Timestamp,
        plan: Plan,
    ) -> LeaseRequest {
        self.seq += 1;
        self.mode = if plan == Plan::Rest {
            Mode::Rests
        } else {
            Mode::Active
        };
        let goes_on = plan == Plan::Refresh;
        if !goes_on || now >= self.mint_end(terms) {
            // Given up before it is said.
            self.share = 0;
        }
        LeaseRequest {
            node,
            seq: self.seq,
            ack: self.ack,
            demand: if goes_on { self.demand } else { 0 },
            held: 0,
            returned: 0,
            want: 0,
            minted: self.owed,
            share: self.share,
            leaves: plan == Plan::Leave,
            window: 0,
            taken: self.taken,
        }
    }

    /// An answer has come; `gone` permits of what was held are not counted any more.
    pub(super) fn arrive(
        &mut self,
        terms: &LeaseTerms,
        flight: &Flight,
        reply: &LeaseReply,
        now: Timestamp,
        gone: u64,
    ) {
        let is_member = flight.sent < self.sent.after(terms.membership());
        let lost = if reply.before < self.ack && is_member {
            let granted = self.granted_since(reply.before, terms, now);
            granted.saturating_sub(gone)
        } else {
            0
        };
        self.owed = self.owed.saturating_sub(flight.minted).saturating_add(lost);
        self.remember(Grant {
            seq: flight.seq,
            permits: reply.granted,
            at: flight.sent,
        });
        self.mint = Mint::default();
        self.taken = reply.taken;
        self.share = reply.share;
        self.ack = flight.seq;
        self.sent = flight.sent;
        self.answered = now;
        self.nodes = reply.nodes;
        self.is_down = false;
        self.back_off.reset();
    }

    /// Notes whether the call that is made now hurries.
    pub(super) fn hurry(&mut self, terms: &LeaseTerms, now: Timestamp) {
        let passed = u128::from(now.nanos_since(self.sent)) * 100;
        let refresh = terms.refresh().as_nanos();
        if passed < refresh * HURRIED {
            self.hurried += 1;
        } else if passed >= refresh * IN_TIME {
            self.hurried = 0;
        }
    }

    /// Whether the next one may.
    pub(super) const fn may_hurry(&self) -> bool {
        self.hurried < MOST_HURRIED
    }

    /// Takes permits of the right to mint, and returns how many are left of it.
    pub(super) fn mint(&mut self, terms: &LeaseTerms, now: Timestamp, permits: u64) -> Option<u64> {
        if !self.may_mint(terms, now) {
            return None;
        }
        let from = self.mint_start(terms);
        let left = self.mint.take(terms, self.share, from, now, permits)?;
        self.owed += permits;
        self.minted += permits;
        self.spent += permits;
        Some(left)
    }

    pub(super) fn may_mint(&self, terms: &LeaseTerms, now: Timestamp) -> bool {
        let is_in_time = now >= self.mint_start(terms) && now < self.mint_end(terms);
        self.is_down && self.share > 0 && is_in_time
    }

    /// Whether Redis does not count this node in any more, which it cannot reach.
    pub(super) fn is_forgotten(&self, terms: &LeaseTerms, now: Timestamp) -> bool {
        self.is_down && now >= self.mint_end(terms)
    }

    /// Whether Redis may have forgotten what this node has of a window: from then on that stays
    /// taken, and the node says nothing of it.
    pub(super) fn is_unknown(&self, terms: &LeaseTerms, now: Timestamp) -> bool {
        let remembered = nanos(terms.membership()) * MEMBERSHIPS_REMEMBERED;
        terms.window_micros.is_some() && now >= self.sent.after_nanos(surely_within(remembered))
    }

    fn mint_start(&self, terms: &LeaseTerms) -> Timestamp {
        self.answered
            .after_nanos(surely_beyond(nanos(terms.silence())))
    }

    pub(super) fn mint_end(&self, terms: &LeaseTerms) -> Timestamp {
        self.sent
            .after_nanos(surely_within(nanos(terms.membership())))
    }

    /// What Redis granted after this call, as long ago as it takes to fill the bucket: what came
    /// before has been refilled since.
    fn granted_since(&self, seq: u64, terms: &LeaseTerms, now: Timestamp) -> u64 {
        let refill = terms.burst().saturating_mul(terms.nanos_per_permit());
        let lost = self
            .grants
            .iter()
            .filter(|grant| grant.seq > seq && now.nanos_since(grant.at) <= refill);
        lost.fold(0, |sum, grant| sum.saturating_add(grant.permits))
    }

    fn remember(&mut self, grant: Grant) {
        if self.grants.len() == MOST_GRANTS
            && let Some(oldest) = self.grants.pop_front()
            && let Some(second) = self.grants.front_mut()
        {
            second.permits += oldest.permits;
        }
        self.grants.push_back(grant);
    }
}
