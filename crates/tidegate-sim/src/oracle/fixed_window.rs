//! A list of who came when; windows are drawn over it.

use std::time::Duration;

use super::{Oracle, Request, Ticket, nanos, saturated};

#[derive(Clone, Copy, Debug)]
pub(super) struct Admission {
    pub(super) ticket: Ticket,
    pub(super) at: i128,
    pub(super) permits: i128,
}

/// At most so many in each window of the clock, `[k * window, (k + 1) * window)`.
#[derive(Clone, Debug)]
pub struct FixedWindowOracle {
    permits: i128,
    window: i128,
    admissions: Vec<Admission>,
    latest: i128,
    tickets: u64,
}

impl FixedWindowOracle {
    /// Nobody has come yet.
    pub fn new(permits: u64, window: Duration) -> Self {
        Self {
            permits: i128::from(permits),
            window: nanos(window),
            admissions: Vec::new(),
            latest: 0,
            tickets: 0,
        }
    }

    fn now(&self, now: u64) -> i128 {
        self.latest.max(i128::from(now))
    }

    fn counted(&self, now: u64) -> i128 {
        let window = self.now(now) / self.window;
        self.admissions
            .iter()
            .filter(|admission| admission.at / self.window == window)
            .map(|admission| admission.permits)
            .sum()
    }
}

impl Oracle for FixedWindowOracle {
    fn limit(&self) -> u64 {
        saturated(self.permits)
    }

    fn delay_of(&self, request: Request) -> Option<u64> {
        let permits = i128::from(request.permits);
        let fits = self.counted(request.now) + permits <= self.permits;
        (permits == 0 || fits).then_some(0)
    }

    fn ever_admits(&self, request: Request) -> bool {
        i128::from(request.permits) <= self.permits
    }

    fn remaining(&self, now: u64) -> u64 {
        saturated(self.permits - self.counted(now))
    }

    fn take(&mut self, request: Request) -> Ticket {
        self.latest = self.now(request.now);
        self.tickets += 1;
        self.admissions.push(Admission {
            ticket: Ticket(self.tickets),
            at: self.latest,
            permits: i128::from(request.permits),
        });
        Ticket(self.tickets)
    }

    fn give_back(&mut self, now: u64, ticket: Ticket) {
        self.latest = self.now(now);
        self.admissions
            .retain(|admission| admission.ticket != ticket);
    }

    fn boxed(&self) -> Box<dyn Oracle> {
        Box::new(self.clone())
    }
}
