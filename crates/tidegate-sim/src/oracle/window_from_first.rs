//! Windows that begin with a request, each with who is in it.

use std::time::Duration;

use super::{Oracle, Request, Ticket, nanos, saturated};

/// At most so many in each window; one begins with the first who comes in none. A window in which
/// nobody is any more never was.
#[derive(Clone, Debug)]
pub struct WindowFromFirstOracle {
    permits: i128,
    window: i128,
    windows: Vec<Opened>,
    latest: i128,
    tickets: u64,
}

#[derive(Clone, Debug)]
struct Opened {
    start: i128,
    inside: Vec<(Ticket, i128)>,
}

impl Opened {
    fn count(&self) -> i128 {
        self.inside.iter().map(|(_, permits)| permits).sum()
    }
}

impl WindowFromFirstOracle {
    /// Nobody has come yet.
    pub fn new(permits: u64, window: Duration) -> Self {
        Self {
            permits: permits.into(),
            window: nanos(window),
            windows: Vec::new(),
            latest: 0,
            tickets: 0,
        }
    }

    fn now(&self, now: u64) -> i128 {
        self.latest.max(now.into())
    }

    /// The last window that is not over at this time; it may be still to come.
    fn last(&self, now: i128) -> Option<&Opened> {
        let last = self.windows.iter().max_by_key(|window| window.start)?;
        (now < last.start + self.window).then_some(last)
    }

    /// When so many go on, and in the window of which start.
    fn goes_on(&self, now: i128, permits: i128) -> (i128, i128) {
        let Some(last) = self.last(now) else {
            return (now, now);
        };
        if last.count() + permits <= self.permits {
            return (now.max(last.start), last.start);
        }
        let next = last.start + self.window;
        (next, next)
    }
}

impl Oracle for WindowFromFirstOracle {
    fn limit(&self) -> u64 {
        saturated(self.permits)
    }

    fn delay_of(&self, request: Request) -> Option<u64> {
        if request.forced {
            return request.forced_delay();
        }
        if request.permits == 0 {
            return Some(0);
        }
        let now = self.now(request.now);
        let (goes_on, _) = self.goes_on(now, request.permits.into());
        let delay = saturated(goes_on - now);
        (self.ever_admits(request) && delay <= request.patience).then_some(delay)
    }

    fn ever_admits(&self, request: Request) -> bool {
        if request.forced {
            return request.forced_delay().is_some();
        }
        i128::from(request.permits) <= self.permits
    }

    fn remaining(&self, now: u64) -> u64 {
        let now = self.now(now);
        match self.last(now) {
            None => self.limit(),
            Some(last) if last.start > now => 0,
            Some(last) => saturated(self.permits - last.count()),
        }
    }

    fn take(&mut self, request: Request) -> Ticket {
        self.latest = self.now(request.now);
        let permits = i128::from(request.permits);
        let (_, start) = if request.forced {
            let now = self.latest;
            // In the window that runs now, if one does.
            let running = self.windows.iter().map(|window| window.start);
            let running = running.filter(|start| (*start..start + self.window).contains(&now));
            (now, running.max().unwrap_or(now))
        } else {
            self.goes_on(self.latest, permits)
        };
        self.tickets += 1;
        let one = (Ticket(self.tickets), permits);
        match self.windows.iter_mut().find(|window| window.start == start) {
            Some(window) => window.inside.push(one),
            None => self.windows.push(Opened {
                start,
                inside: vec![one],
            }),
        }
        Ticket(self.tickets)
    }

    fn give_back(&mut self, now: u64, ticket: Ticket) {
        self.latest = self.now(now);
        for window in &mut self.windows {
            window.inside.retain(|(inside, _)| *inside != ticket);
        }
        self.windows.retain(|window| !window.inside.is_empty());
    }

    fn boxed(&self) -> Box<dyn Oracle> {
        Box::new(self.clone())
    }
}
