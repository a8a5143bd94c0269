//! A list of who came when, which the windows look at: each says only what of it counts.

use std::fmt::Debug;

use super::{Oracle, Request, Ticket, saturated};

#[derive(Clone, Copy, Debug)]
pub(super) struct Admission {
    pub(super) ticket: Ticket,
    pub(super) at: i128,
    pub(super) permits: i128,
}

/// Who came, and the latest time that anything happened at: a time before it is that time.
#[derive(Clone, Debug, Default)]
pub(super) struct Admissions {
    pub(super) list: Vec<Admission>,
    pub(super) latest: i128,
    tickets: u64,
}

impl Admissions {
    pub(super) fn now(&self, now: u64) -> i128 {
        self.latest.max(i128::from(now))
    }

    pub(super) fn take(&mut self, request: Request) -> Ticket {
        self.latest = self.now(request.now);
        self.add(i128::from(request.permits))
    }

    /// Adds who comes at the latest time.
    pub(super) fn add(&mut self, permits: i128) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.list.push(Admission {
            ticket,
            at: self.latest,
            permits,
        });
        ticket
    }

    pub(super) fn give_back(&mut self, now: u64, ticket: Ticket) {
        self.latest = self.now(now);
        self.list.retain(|admission| admission.ticket != ticket);
    }
}

/// So many permits, and who of the list counts against them.
pub(super) trait Window: Clone + Debug + 'static {
    fn permits(&self) -> i128;

    fn admissions(&mut self) -> &mut Admissions;

    /// What counts at this time, in parts of a permit of which [`whole`](Self::whole) are one.
    fn counted(&self, now: u64) -> i128;

    fn whole(&self) -> i128 {
        1
    }
}

impl<W: Window> Oracle for W {
    fn limit(&self) -> u64 {
        saturated(self.permits())
    }

    fn delay_of(&self, request: Request) -> Option<u64> {
        let permits = i128::from(request.permits);
        let free = self.permits() * self.whole() - self.counted(request.now);
        let fits = self.ever_admits(request) && permits * self.whole() <= free;
        (permits == 0 || fits).then_some(0)
    }

    fn ever_admits(&self, request: Request) -> bool {
        i128::from(request.permits) <= self.permits()
    }

    fn remaining(&self, now: u64) -> u64 {
        let free = self.permits() * self.whole() - self.counted(now);
        saturated(free.max(0) / self.whole())
    }

    fn take(&mut self, request: Request) -> Ticket {
        self.admissions().take(request)
    }

    fn give_back(&mut self, now: u64, ticket: Ticket) {
        self.admissions().give_back(now, ticket);
    }

    fn boxed(&self) -> Box<dyn Oracle> {
        Box::new(self.clone())
    }
}
