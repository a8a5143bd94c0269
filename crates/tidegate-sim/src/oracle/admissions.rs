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

    /// The last of whom it is known when they come; those who wait come after the latest time.
    fn last(&self) -> Option<i128> {
        self.list.iter().map(|admission| admission.at).max()
    }

    /// Adds who comes at the latest time.
    pub(super) fn add(&mut self, permits: i128) -> Ticket {
        self.add_at(self.latest, permits)
    }

    fn add_at(&mut self, at: i128, permits: i128) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.list.push(Admission {
            ticket,
            at,
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

    fn admissions(&self) -> &Admissions;

    fn admissions_mut(&mut self) -> &mut Admissions;

    /// The first time at which who came at `at` does not count; `None` where nobody can wait for
    /// it.
    fn leaves(&self, at: i128) -> Option<i128>;

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
        if request.forced {
            return request.forced_delay();
        }
        if request.permits == 0 {
            return Some(0);
        }
        if !self.ever_admits(request) {
            return None;
        }
        let wanted = i128::from(request.permits) * self.whole();
        let fits = |at: i128| wanted <= self.permits() * self.whole() - self.counted(saturated(at));
        // At once, or when somebody leaves; never before one who came earlier.
        let list = self.admissions();
        let now = list.now(request.now);
        let next = list.last().map_or(now, |last| last.max(now));
        let leaving = list.list.iter().filter_map(|one| self.leaves(one.at));
        let first = leaving
            .chain([next])
            .filter(|at| *at >= next && fits(*at))
            .min()?;
        let delay = saturated(first - now);
        (delay <= request.patience).then_some(delay)
    }

    fn ever_admits(&self, request: Request) -> bool {
        if request.forced {
            return request.forced_delay().is_some();
        }
        i128::from(request.permits) <= self.permits()
    }

    fn remaining(&self, now: u64) -> u64 {
        let list = self.admissions();
        if list.last().is_some_and(|last| last > list.now(now)) {
            return 0;
        }
        let free = self.permits() * self.whole() - self.counted(now);
        saturated(free.max(0) / self.whole())
    }

    fn take(&mut self, request: Request) -> Ticket {
        let delay = self.delay_of(request).unwrap_or(0);
        let list = self.admissions_mut();
        list.latest = list.now(request.now);
        list.add_at(list.latest + i128::from(delay), request.permits.into())
    }

    fn give_back(&mut self, now: u64, ticket: Ticket) {
        self.admissions_mut().give_back(now, ticket);
    }

    fn boxed(&self) -> Box<dyn Oracle> {
        Box::new(self.clone())
    }
}
