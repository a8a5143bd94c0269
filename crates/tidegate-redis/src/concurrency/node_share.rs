//! The default: each node has a share of the places, and uses it without asking.
//!
//! The entry of a node in Redis is never less than what the node may be using. It is so because
//! only the node makes its share smaller, and says with each call what it may use until it hears
//! the answer; and because a call that comes late changes nothing (its number is lower than that
//! of one that was there before). And by its own
//! clock a node stops using its share before Redis hands it on: the lease began when the call was
//! sent, or later, and is taken as shorter by as much as clocks drift.

use std::time::Duration;

use tidegate::{Retry, Timestamp};

use super::jitter::Jitter;
use super::retry::Attempts;
use super::tickets::Tickets;
use super::{
    Asked, ConcurrencyOptions, Event, NODE_SHARE, OnLeaseLost, Places, Request, arg, micros, surely,
};

/// Calls for each ttl: two may fail before the lease ends.
const BEATS_PER_TTL: u32 = 3;
/// After it was refused more places a node asks again after this part of a beat: so many calls
/// for each beat are the most that a storm of refused requests makes.
const PAUSES_PER_BEAT: u32 = 100;
/// Below so many places for each node none are kept for requests that may come.
const PLACES_TO_SPARE: u64 = 4;

/// One node's share of one key's places.
#[derive(Clone, Debug)]
pub struct NodeShare {
    limit: u64,
    ttl: Duration,
    on_lease_lost: OnLeaseLost,
    incarnation: u64,
    seq: u64,
    /// What this node may use, until `deadline`.
    share: u64,
    deadline: Timestamp,
    lapsed: bool,
    tickets: Tickets<()>,
    calling: Option<Sent>,
    next_beat: Timestamp,
    /// Requests since `counted_from`, and how many a beat brings.
    arrived: u64,
    expected: u64,
    counted_from: Timestamp,
    /// Until when there is no use in asking for more.
    short_until: Timestamp,
    nodes: u64,
    others_are_short: bool,
    /// Until when Redis may have an entry of this node; `None` where it has none.
    entry_until: Option<Timestamp>,
    /// Nobody is going to ask.
    leaves: bool,
    attempts: Attempts,
    jitter: Jitter,
}

/// The call under way.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Timestamp,
    want: u64,
}

impl NodeShare {
    /// A node that has no places yet. No other, nor this one before, may have had the same
    /// `incarnation`: 64 random bits.
    pub fn new(options: &ConcurrencyOptions, incarnation: u64) -> Self {
        Self {
            limit: options.limit,
            ttl: options.ttl,
            on_lease_lost: options.on_lease_lost,
            incarnation,
            seq: 0,
            share: 0,
            deadline: Timestamp::EPOCH,
            lapsed: true,
            tickets: Tickets::new(),
            calling: None,
            next_beat: Timestamp::EPOCH,
            arrived: 0,
            expected: 0,
            counted_from: Timestamp::EPOCH,
            short_until: Timestamp::EPOCH,
            nodes: 1,
            others_are_short: false,
            entry_until: None,
            leaves: false,
            attempts: Attempts::default(),
            jitter: Jitter::new(incarnation),
        }
    }

    fn beat(&self) -> Duration {
        self.ttl / BEATS_PER_TTL
    }

    fn pause(&self) -> Duration {
        self.beat() / PAUSES_PER_BEAT
    }

    fn fits(&self, permits: u64) -> bool {
        let usable = !self.lapsed || self.on_lease_lost == OnLeaseLost::Ignore;
        usable && self.tickets.in_use().saturating_add(permits) <= self.share
    }

    /// Places to have at hand for requests that come before the next beat, beside those that wait.
    fn headroom(&self) -> u64 {
        if self.limit < PLACES_TO_SPARE.saturating_mul(self.nodes) {
            0
        } else {
            let arrived = self.arrived.saturating_sub(self.tickets.wanted());
            self.expected.max(arrived)
        }
    }

    fn want(&self) -> u64 {
        let tickets = &self.tickets;
        let all = tickets.in_use().saturating_add(tickets.wanted());
        let all = all.saturating_add(self.headroom()).min(self.limit);
        // Only what is in use can be above the limit: it has become lower.
        all.max(tickets.in_use())
    }

    fn due(&self) -> Option<Timestamp> {
        let tickets = &self.tickets;
        let can_leave = self.leaves
            && self.entry_until.is_some()
            && (tickets.in_use() == 0 || self.share > tickets.in_use());
        if can_leave || !tickets.nobody_waits() {
            Some(self.attempts.not_before())
        } else if self.entry_until.is_some() || tickets.in_use() > 0 {
            Some(self.next_beat.max(self.attempts.not_before()))
        } else {
            None
        }
    }

    /// Requests of the last beat count at once where they are more, and fade where they are fewer.
    fn count(&mut self, now: Timestamp) {
        if now >= self.counted_from.after(self.beat()) {
            self.expected = self.arrived.max(self.expected / 2);
            self.arrived = 0;
            self.counted_from = now;
        }
    }

    fn failed(&mut self, now: Timestamp) {
        self.attempts.failed(now, &mut self.jitter);
        self.tickets.all_unavailable();
        if self.leaves && self.tickets.in_use() == 0 {
            // Its entry expires.
            self.entry_until = None;
        }
    }

    fn serve(&mut self, now: Timestamp, want: u64) {
        let no_more = self.share < want || self.share >= self.limit;
        let mut waits_on = Vec::new();
        while let Some(waiting) = self.tickets.next_waiting() {
            if self.fits(waiting.permits) {
                self.tickets.grant(waiting, ());
            } else if no_more {
                self.short_until = now.after(self.pause());
                self.tickets.deny(waiting);
            } else {
                waits_on.push(waiting);
            }
        }
        self.tickets.wait_on(waits_on);
    }

    /// After a loss of data others may have got what is in use here: the latest are too many.
    fn lose_what_is_above_the_share(&mut self) {
        if self.tickets.in_use() <= self.share {
            return;
        }
        let kept = self.tickets.held().iter().filter(|(_, held)| !held.lost);
        let mut left = self.share;
        let mut too_many = Vec::new();
        for (&ticket, held) in kept {
            match left.checked_sub(held.permits) {
                Some(rest) => left = rest,
                None => too_many.push(ticket),
            }
        }
        for ticket in too_many {
            self.tickets.lose(ticket);
        }
    }
}

impl Places for NodeShare {
    fn ask(&mut self, now: Timestamp, permits: u64) -> Asked {
        self.lapse(now);
        if permits > self.limit {
            return Asked::Denied(Retry::Never);
        }
        self.leaves = false;
        self.arrived = self.arrived.saturating_add(permits);
        if self.tickets.nobody_waits() {
            if self.fits(permits) {
                let ticket = self.tickets.hold(permits, ());
                if self.lapsed {
                    self.tickets.lose(ticket);
                }
                return Asked::Granted(ticket);
            }
            if now < self.short_until {
                return Asked::Denied(Retry::OnRelease);
            }
        }
        self.tickets
            .wait_unless(self.attempts.is_waiting(now), permits)
    }

    fn give_back(&mut self, now: Timestamp, ticket: u64) {
        let freed = self.tickets.give_back(ticket).is_some();
        if freed && self.others_are_short && self.share > self.want() {
            self.next_beat = self.next_beat.min(now.after(self.pause()));
        }
    }

    fn leave(&mut self, _now: Timestamp) {
        self.leaves = true;
        (self.arrived, self.expected) = (0, 0);
    }

    fn lapse(&mut self, now: Timestamp) {
        if self.lapsed || now < self.deadline {
            return;
        }
        self.lapsed = true;
        if self.on_lease_lost != OnLeaseLost::Ignore {
            self.share = 0;
        }
        let held: Vec<u64> = self.tickets.held().keys().copied().collect();
        for ticket in held {
            self.tickets.lose(ticket);
        }
    }

    fn poll(&mut self, now: Timestamp) -> Option<Request> {
        self.lapse(now);
        let idle = self.tickets.in_use() == 0 && self.tickets.nobody_waits();
        if idle && self.entry_until.is_some_and(|until| until <= now) {
            self.entry_until = None;
        }
        if self.calling.is_some() || self.due().is_none_or(|due| now < due) {
            return None;
        }
        self.count(now);
        let want = self.want();
        // Smaller before it is said how much may be in use here: else Redis would have to wait for
        // another call until it can give the rest to others.
        self.share = self.share.min(want);
        self.seq += 1;
        self.calling = Some(Sent { at: now, want });
        if want > 0 {
            self.entry_until = Some(now.after(self.ttl * 2));
        }
        let in_use = self.tickets.in_use();
        let numbers = [
            self.seq,
            in_use,
            self.share,
            want,
            self.limit,
            micros(self.ttl),
        ];
        let mut args = vec![format!("{:016x}", self.incarnation).into_bytes()];
        args.extend(numbers.map(arg));
        Some(Request {
            script: &NODE_SHARE,
            args,
        })
    }

    fn answered(&mut self, now: Timestamp, answer: Option<&[i64]>) -> bool {
        let Some(sent) = self.calling.take() else {
            return true;
        };
        let Some(answer) = answer else {
            self.failed(now);
            return true;
        };
        let numbers = <[i64; 6]>::try_from(answer).ok();
        let Some([share, target, others, wanted, nodes, _]) =
            numbers.and_then(|numbers| all_natural(&numbers))
        else {
            self.failed(now);
            return false;
        };
        self.attempts.succeeded();
        self.nodes = nodes;
        self.others_are_short = wanted > others;
        self.share = share.min(target.max(self.tickets.in_use()));
        self.deadline = sent.at.after(surely(self.ttl));
        self.lapsed = false;
        // What this node does not keep goes to others now, not with the next beat.
        self.next_beat = if self.share < share {
            now
        } else {
            sent.at.after(self.jitter.up_to(self.beat(), 90))
        };
        if sent.want == 0 && self.share == 0 {
            self.entry_until = None;
        }
        self.lose_what_is_above_the_share();
        self.lapse(now);
        self.serve(now, sent.want);
        true
    }

    fn next(&self) -> Option<Timestamp> {
        let ends = (!self.lapsed).then_some(self.deadline);
        let due = if self.calling.is_some() {
            Some(Timestamp::MAX)
        } else {
            self.due()
        };
        // An idle node's deadline needs nobody.
        due.map(|due| ends.map_or(due, |ends| ends.min(due)))
    }

    fn take_events(&mut self) -> Vec<Event> {
        self.tickets.take_events()
    }

    fn remaining(&self) -> u64 {
        self.share.saturating_sub(self.tickets.in_use())
    }
}

/// The numbers, where none is negative.
pub(super) fn all_natural<const N: usize>(numbers: &[i64; N]) -> Option<[u64; N]> {
    let mut natural = [0; N];
    for (to, from) in natural.iter_mut().zip(numbers) {
        *to = u64::try_from(*from).ok()?;
    }
    Some(natural)
}
