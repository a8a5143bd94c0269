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
/// What is asked for is this much above the demand, in hundredths.
const HEADROOM: u64 = 115;
/// A window's node that is silent for so long may be forgotten by Redis.
const MEMBERSHIPS_REMEMBERED: u64 = 10;
const SECOND: u64 = 1_000_000_000;

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
            spent: 0,
            given: 0,
            share: 0,
            mint: Mint::default(),
            owed: 0,
            minted: 0,
            grants: VecDeque::new(),
            taken: 0,
            nodes: 0,
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

    /// How much was asked since the last time, which is noted as a rate.
    pub(super) fn measure(&mut self, terms: &LeaseTerms, now: Timestamp, refused: u64) -> u64 {
        let passed = now.nanos_since(self.measured).max(SHORTEST_MEASURE);
        let asked = u128::from(self.spent) + u128::from(refused);
        let rate = asked * u128::from(SECOND) / u128::from(passed);
        let rate = u64::try_from(rate).unwrap_or(u64::MAX).min(1 << 50);
        // What was measured before the first call, over next to no time, was a guess: one that
        // would keep a window's permits where nobody asks for them.
        let is_guess = self.seq <= 1 && terms.window_micros.is_some();
        let before = if is_guess { rate } else { self.demand };
        self.demand = rate.max((before * 7 + rate * 3) / 10);
        self.measured = now;
        self.spent = 0;
        u64::try_from(asked).unwrap_or(u64::MAX)
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

    /// The next call, but for what is held and wanted.
    pub(super) fn depart(
        &mut self,
        node: NodeId,
        terms: &LeaseTerms,
        now: Timestamp,
        leaves: bool,
    ) -> LeaseRequest {
        self.seq += 1;
        if leaves || now >= self.mint_end(terms) {
            // Given up before it is said.
            self.share = 0;
        }
        LeaseRequest {
            node,
            seq: self.seq,
            ack: self.ack,
            demand: self.demand,
            held: 0,
            returned: 0,
            want: 0,
            minted: self.owed,
            share: self.share,
            leaves,
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

    fn mint_end(&self, terms: &LeaseTerms) -> Timestamp {
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
