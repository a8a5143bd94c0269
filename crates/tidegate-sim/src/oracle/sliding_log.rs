//! A list of who came when, looked back over.

use std::time::Duration;

use super::admissions::Admissions;
use super::{Oracle, Request, Ticket, nanos, saturated};

/// At most so many in the last `window`, whenever one looks; who came exactly `window` ago is out.
#[derive(Clone, Debug)]
pub struct SlidingLogOracle {
    permits: i128,
    window: i128,
    admissions: Admissions,
}

impl SlidingLogOracle {
    /// Nobody has come yet.
    pub fn new(permits: u64, window: Duration) -> Self {
        Self {
            permits: i128::from(permits),
            window: nanos(window),
            admissions: Admissions::default(),
        }
    }

    fn counted(&self, now: u64) -> i128 {
        let now = self.admissions.now(now);
        self.admissions
            .list
            .iter()
            .filter(|admission| now - admission.at < self.window)
            .map(|admission| admission.permits)
            .sum()
    }

    /// The same list under another limit. Who was out stays out.
    pub fn change(&mut self, permits: u64, window: Duration, now: u64) {
        self.admissions.latest = self.admissions.now(now);
        let (latest, old) = (self.admissions.latest, self.window);
        self.admissions
            .list
            .retain(|admission| latest - admission.at < old);
        self.permits = i128::from(permits);
        self.window = nanos(window);
    }
}

impl Oracle for SlidingLogOracle {
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
