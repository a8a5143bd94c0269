//! Each place in use is an entry in Redis with a deadline, which its node renews.
//!
//! An entry has the name of whoever holds it. So calls may be made twice: who has its places keeps
//! them. What may have been taken by a call without an answer is freed like anything else.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use tidegate::{Retry, Timestamp};

use super::jitter::Jitter;
use super::retry::Attempts;
use super::tickets::{Tickets, Waiting};
use super::{Asked, ConcurrencyOptions, Event, Places, Request, SLOTS, arg, micros, surely};

/// Places in one call, but that one who asks for more gets a call to itself: a script holds up
/// everybody, and 1,000 places are about 5 ms.
const PLACES_PER_CALL: u64 = 1_000;
/// How many tickets may wait to be freed; the oldest are left to expire where there are more.
const MAX_LEAVING: usize = 65_536;

/// One node's places of one key.
#[derive(Clone, Debug)]
pub struct Slots {
    limit: u64,
    ttl: Duration,
    incarnation: u64,
    tickets: Tickets<Lease>,
    /// Of each that is not lost.
    deadlines: BTreeSet<(Timestamp, u64)>,
    /// Of each that is renewed, but for those in the call under way.
    renewals: BTreeSet<(Timestamp, u64)>,
    leaving: VecDeque<Leaving>,
    calling: Option<Sent>,
    inside: u64,
    attempts: Attempts,
    jitter: Jitter,
}

#[derive(Clone, Copy, Debug)]
struct Lease {
    deadline: Timestamp,
    renew_at: Timestamp,
}

#[derive(Clone, Copy, Debug)]
struct Leaving {
    waiting: Waiting,
    /// When the entry has expired, whatever happens.
    until: Timestamp,
}

/// The call under way.
#[derive(Clone, Debug)]
struct Sent {
    at: Timestamp,
    leaving: usize,
    renewing: Vec<u64>,
    asking: Vec<Asking>,
}

/// One whose answer is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asking {
    pub(super) waiting: Waiting,
    /// Nobody is there any more to hear it.
    pub(super) gone: bool,
}

impl Slots {
    /// A node that has no places yet. No other, nor this one before, may have had the same
    /// `incarnation`: 64 random bits.
    pub fn new(options: &ConcurrencyOptions, incarnation: u64) -> Self {
        Self {
            limit: options.limit,
            ttl: options.ttl,
            incarnation,
            tickets: Tickets::new(),
            deadlines: BTreeSet::new(),
            renewals: BTreeSet::new(),
            leaving: VecDeque::new(),
            calling: None,
            inside: 0,
            attempts: Attempts::default(),
            jitter: Jitter::new(incarnation),
        }
    }

    /// The name of an incarnation in Redis: its two halves, which Lua's numbers can hold.
    pub(super) fn name(incarnation: u64) -> String {
        format!("{}:{}", incarnation >> 32, incarnation & 0xffff_ffff)
    }

    fn due(&self) -> Option<Timestamp> {
        if !self.tickets.nobody_waits() || !self.leaving.is_empty() {
            return Some(self.attempts.not_before());
        }
        let &(renew_at, _) = self.renewals.first()?;
        Some(renew_at.max(self.attempts.not_before()))
    }

    fn leave(&mut self, now: Timestamp, waiting: Waiting) {
        if self.leaving.len() >= MAX_LEAVING {
            // Not one that the call under way names: those are counted off when it is answered.
            let named = self.calling.as_ref().map_or(0, |sent| sent.leaving);
            self.leaving.remove(named);
        }
        // A call that was sent before may take it until that is over, and not later than in a ttl.
        let until = now.after(self.ttl * 2);
        self.leaving.push_back(Leaving { waiting, until });
    }

    /// Renewals that are due soon go along.
    fn renewals_in(&mut self, now: Timestamp, room: &mut u64) -> Vec<u64> {
        let soon = now.after(self.ttl / 12);
        let mut renewing = Vec::new();
        while *room > 0
            && let Some(&(renew_at, ticket)) = self.renewals.first()
            && renew_at <= soon
        {
            self.renewals.pop_first();
            let Some(held) = self.tickets.held().get(&ticket) else {
                continue;
            };
            *room = room.saturating_sub(held.permits.max(1));
            renewing.push(ticket);
        }
        renewing
    }

    fn renewed(&mut self, at: Timestamp, ticket: u64, has: bool) {
        let Some(held) = self.tickets.held_mut().get_mut(&ticket) else {
            return;
        };
        let old = held.of_scheme.deadline;
        if has {
            let deadline = at.after(surely(self.ttl));
            let renew_at = at.after(self.jitter.up_to(self.ttl / 3, 80));
            held.of_scheme = Lease { deadline, renew_at };
            self.renewals.insert((renew_at, ticket));
            if !held.lost {
                self.deadlines.remove(&(old, ticket));
                self.deadlines.insert((deadline, ticket));
            }
        } else {
            // It is not renewed any more.
            self.deadlines.remove(&(old, ticket));
            self.tickets.lose(ticket);
        }
    }

    fn let_in(&mut self, now: Timestamp, at: Timestamp, asking: Asking) {
        if asking.gone {
            self.leave(now, asking.waiting);
            return;
        }
        let ticket = asking.waiting.ticket;
        let deadline = at.after(surely(self.ttl));
        let renew_at = at.after(self.jitter.up_to(self.ttl / 3, 80));
        self.tickets
            .grant(asking.waiting, Lease { deadline, renew_at });
        self.deadlines.insert((deadline, ticket));
        self.renewals.insert((renew_at, ticket));
    }

    fn failed(&mut self, now: Timestamp, sent: Sent) {
        self.attempts.failed(now, &mut self.jitter);
        let again = self.attempts.not_before();
        for ticket in sent.renewing {
            if let Some(held) = self.tickets.held_mut().get_mut(&ticket) {
                held.of_scheme.renew_at = again;
                self.renewals.insert((again, ticket));
            }
        }
        // They may have got in.
        for asking in sent.asking {
            self.leave(now, asking.waiting);
            if !asking.gone {
                self.tickets.unavailable(asking.waiting);
            }
        }
        self.tickets.all_unavailable();
        self.leaving.retain(|leaving| now < leaving.until);
    }
}

impl Places for Slots {
    fn ask(&mut self, now: Timestamp, permits: u64) -> Asked {
        self.lapse(now);
        if permits > self.limit {
            return Asked::Denied(Retry::Never);
        }
        self.tickets
            .wait_unless(self.attempts.is_waiting(now), permits)
    }

    fn give_back(&mut self, now: Timestamp, ticket: u64) {
        if let Some(held) = self.tickets.give_back(ticket) {
            self.deadlines.remove(&(held.of_scheme.deadline, ticket));
            self.renewals.remove(&(held.of_scheme.renew_at, ticket));
            let permits = held.permits;
            self.leave(now, Waiting { ticket, permits });
        } else if let Some(sent) = &mut self.calling {
            let mut asking = sent.asking.iter_mut();
            if let Some(asking) = asking.find(|asking| asking.waiting.ticket == ticket) {
                asking.gone = true;
            }
        }
    }

    fn lapse(&mut self, now: Timestamp) {
        while let Some(&(deadline, ticket)) = self.deadlines.first()
            && deadline <= now
        {
            self.deadlines.pop_first();
            self.tickets.lose(ticket);
        }
    }

    fn poll(&mut self, now: Timestamp) -> Option<Request> {
        self.lapse(now);
        if self.calling.is_some() || self.due().is_none_or(|due| now < due) {
            return None;
        }
        let mut room = PLACES_PER_CALL;
        let renewing = self.renewals_in(now, &mut room);
        let mut leaving = Vec::new();
        for left in &self.leaving {
            if room == 0 {
                break;
            }
            room = room.saturating_sub(left.waiting.permits.max(1));
            leaving.push(left.waiting);
        }
        let mut asking = Vec::new();
        while room > 0
            && let Some(waiting) = self.tickets.next_waiting()
        {
            room = room.saturating_sub(waiting.permits.max(1));
            asking.push(Asking {
                waiting,
                gone: false,
            });
        }
        let mut args = vec![arg(self.limit), arg(micros(self.ttl))];
        args.push(Self::name(self.incarnation).into_bytes());
        args.push(arg(leaving.len() as u64));
        let renewed = renewing.iter().map(|&ticket| {
            let held = self.tickets.held().get(&ticket);
            let permits = held.map_or(0, |held| held.permits);
            Waiting { ticket, permits }
        });
        let asked = asking.iter().map(|asking| asking.waiting);
        for one in leaving.iter().copied().chain(renewed).chain(asked) {
            args.extend([arg(one.ticket), arg(one.permits)]);
        }
        self.calling = Some(Sent {
            at: now,
            leaving: leaving.len(),
            renewing,
            asking,
        });
        Some(Request {
            script: &SLOTS,
            args,
        })
    }

    fn answered(&mut self, now: Timestamp, answer: Option<&[i64]>) -> bool {
        let Some(sent) = self.calling.take() else {
            return true;
        };
        let understood = match answer {
            Some([inside, _, flags @ ..])
                if flags.len() == sent.renewing.len() + sent.asking.len() =>
            {
                u64::try_from(*inside).ok().map(|inside| (inside, flags))
            }
            _ => None,
        };
        let Some((inside, flags)) = understood else {
            self.failed(now, sent);
            return answer.is_none();
        };
        self.attempts.succeeded();
        self.inside = inside;
        self.leaving.drain(..sent.leaving);
        let (renewed, asked) = flags.split_at(sent.renewing.len());
        for (ticket, has) in sent.renewing.into_iter().zip(renewed) {
            self.renewed(sent.at, ticket, *has == 1);
        }
        for (asking, has) in sent.asking.into_iter().zip(asked) {
            if *has == 1 {
                self.let_in(now, sent.at, asking);
            } else if !asking.gone {
                self.tickets.deny(asking.waiting);
            }
        }
        self.lapse(now);
        true
    }

    fn next(&self) -> Option<Timestamp> {
        let due = self.due();
        let due = match &self.calling {
            Some(_) => Timestamp::MAX,
            None if due.is_none() && self.tickets.held().is_empty() => return None,
            None => due.unwrap_or(Timestamp::MAX),
        };
        let ends = self.deadlines.first();
        Some(ends.map_or(due, |&(deadline, _)| deadline.min(due)))
    }

    fn take_events(&mut self) -> Vec<Event> {
        self.tickets.take_events()
    }

    fn remaining(&self) -> u64 {
        self.limit.saturating_sub(self.inside)
    }
}
