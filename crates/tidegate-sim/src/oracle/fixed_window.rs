//! A list of who came when; windows are drawn over it.

use std::time::Duration;

use super::admissions::Admissions;
use super::{Oracle, Request, Ticket, nanos, saturated};

/// At most so many in each window of the clock, `[k * window, (k + 1) * window)`.
#[derive(Clone, Debug)]
pub struct FixedWindowOracle {
    permits: i128,
    window: i128,
    admissions: Admissions,
}

impl FixedWindowOracle {
    /// Nobody has come yet.
    pub fn new(permits: u64, window: Duration) -> Self {
        Self {
            permits: i128::from(permits),
            window: nanos(window),
            admissions: Admissions::default(),
        }
    }

    fn counted(&self, now: u64) -> i128 {
        let window = self.admissions.now(now) / self.window;
        self.admissions
            .list
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
        self.admissions.take(request)
    }

    fn give_back(&mut self, now: u64, ticket: Ticket) {
        self.admissions.give_back(now, ticket);
    }

    fn boxed(&self) -> Box<dyn Oracle> {
        Box::new(self.clone())
    }
}
