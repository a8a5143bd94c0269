//! Who waits for an answer, and who holds what.

use std::collections::{BTreeMap, VecDeque};

use tidegate::Retry;

use super::{Asked, Event};

/// How many may wait for an answer at a time; more are refused.
pub(crate) const MAX_WAITING: usize = 65_536;

/// One that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) ticket: u64,
    pub(crate) permits: u64,
}

/// What one holds, and what the scheme has to know of it.
#[derive(Clone, Debug)]
pub(crate) struct Held<T> {
    pub(crate) permits: u64,
    pub(crate) lost: bool,
    pub(crate) of_scheme: T,
}

/// All of them of one key on one node. What is lost is held until it is given back.
#[derive(Clone, Debug)]
pub(crate) struct Tickets<T> {
    last: u64,
    waiting: VecDeque<Waiting>,
    wanted: u64,
    held: BTreeMap<u64, Held<T>>,
    in_use: u64,
    events: Vec<Event>,
}

impl<T> Tickets<T> {
    pub(crate) const fn new() -> Self {
        Self {
            last: 0,
            waiting: VecDeque::new(),
            wanted: 0,
            held: BTreeMap::new(),
            in_use: 0,
            events: Vec::new(),
        }
    }

    /// Permits that are held.
    pub(crate) const fn in_use(&self) -> u64 {
        self.in_use
    }

    /// Permits that are waited for.
    pub(crate) const fn wanted(&self) -> u64 {
        self.wanted
    }

    pub(crate) const fn held(&self) -> &BTreeMap<u64, Held<T>> {
        &self.held
    }

    pub(crate) const fn held_mut(&mut self) -> &mut BTreeMap<u64, Held<T>> {
        &mut self.held
    }

    pub(crate) fn nobody_waits(&self) -> bool {
        self.waiting.is_empty()
    }

    /// A place in line, unless Redis is not asked now, or the line is full.
    pub(crate) fn wait_unless(&mut self, is_not_asked: bool, permits: u64) -> Asked {
        if is_not_asked {
            return Asked::Unavailable;
        }
        if self.waiting.len() >= MAX_WAITING {
            return Asked::Denied(Retry::OnRelease);
        }
        let ticket = self.number();
        self.waiting.push_back(Waiting { ticket, permits });
        self.wanted += permits;
        Asked::Waits(ticket)
    }

    /// Holds permits under a new ticket, without an event.
    pub(crate) fn hold(&mut self, permits: u64, of_scheme: T) -> u64 {
        let ticket = self.number();
        self.insert(Waiting { ticket, permits }, of_scheme);
        ticket
    }

    /// Holds what one that has waited waited for.
    pub(crate) fn grant(&mut self, waiting: Waiting, of_scheme: T) {
        self.insert(waiting, of_scheme);
        self.events.push(Event::Granted(waiting.ticket));
    }

    /// The next in line.
    pub(crate) fn next_waiting(&mut self) -> Option<Waiting> {
        let waiting = self.waiting.pop_front()?;
        self.wanted -= waiting.permits;
        Some(waiting)
    }

    /// Puts those back, before all others, that have not got an answer.
    pub(crate) fn wait_on(&mut self, waiting: Vec<Waiting>) {
        for one in waiting.into_iter().rev() {
            self.wanted += one.permits;
            self.waiting.push_front(one);
        }
    }

    pub(crate) fn deny(&mut self, waiting: Waiting) {
        self.events.push(Event::Denied(waiting.ticket));
    }

    pub(crate) fn unavailable(&mut self, waiting: Waiting) {
        self.events.push(Event::Unavailable(waiting.ticket));
    }

    /// Tells all in line that there is no answer.
    pub(crate) fn all_unavailable(&mut self) {
        while let Some(waiting) = self.next_waiting() {
            self.unavailable(waiting);
        }
    }

    /// Marks what is held under a ticket as lost, and says so, once.
    pub(crate) fn lose(&mut self, ticket: u64) {
        if let Some(held) = self.held.get_mut(&ticket)
            && !held.lost
        {
            held.lost = true;
            self.events.push(Event::Lost(ticket));
        }
    }

    /// Takes back what a ticket holds. One that waits leaves the line.
    pub(crate) fn give_back(&mut self, ticket: u64) -> Option<Held<T>> {
        if let Some(held) = self.held.remove(&ticket) {
            self.in_use -= held.permits;
            return Some(held);
        }
        // Tickets in line ascend, but for none.
        if let Ok(at) = self
            .waiting
            .binary_search_by_key(&ticket, |waiting| waiting.ticket)
            && let Some(waiting) = self.waiting.remove(at)
        {
            self.wanted -= waiting.permits;
        }
        None
    }

    pub(crate) fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    const fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn insert(&mut self, waiting: Waiting, of_scheme: T) {
        self.in_use += waiting.permits;
        let held = Held {
            permits: waiting.permits,
            lost: false,
            of_scheme,
        };
        self.held.insert(waiting.ticket, held);
    }
}
