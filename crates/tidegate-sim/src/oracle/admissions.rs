//! A list of who came when, which the windows look at.

use super::{Request, Ticket};

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
