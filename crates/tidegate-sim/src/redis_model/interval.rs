//! A bucket that is refilled by whole periods.

use super::{MOST, Part, State, Terms, Told, ceil_div};

#[derive(Debug)]
pub(super) struct Interval {
    terms: Terms,
    used: i128,
    since: i128,
    is_stepped: bool,
}

/// When a period begins that is not known to have begun.
fn begins(terms: Terms) -> i128 {
    if terms.y == 1 {
        terms.now - terms.now % terms.b
    } else {
        terms.now
    }
}

impl Interval {
    fn of(terms: Terms, used: i128, since: i128) -> Self {
        Self {
            terms,
            used,
            since,
            is_stepped: false,
        }
    }

    pub(super) fn fresh(terms: Terms) -> Self {
        Self::of(terms, terms.first, begins(terms))
    }

    pub(super) fn rolled(terms: Terms, used: i128, since: i128) -> Self {
        let ahead = since - terms.now;
        let is_stepped = ahead > 0 && (terms.y == 0 || ahead > terms.b);
        let since = if is_stepped { begins(terms) } else { since };
        let periods = (terms.now - since).max(0) / terms.b;
        let used = (used - (terms.a * periods).min(MOST)).max(0);
        let since = if used == 0 {
            begins(terms).max(since)
        } else {
            since + periods * terms.b
        };
        Self {
            is_stepped,
            ..Self::of(terms, used, since)
        }
    }

    pub(super) fn assumed(terms: Terms, (whole, part): (i128, Part)) -> Self {
        Self::of(terms, whole + part.ceil(), begins(terms))
    }

    fn back_in(&self, permits: i128) -> i128 {
        if permits <= 0 {
            return 0;
        }
        let periods = ceil_div(permits, self.terms.a);
        (self.since + (periods * self.terms.b).min(MOST) - self.terms.now).max(0)
    }
}

impl State for Interval {
    fn free(&self) -> i128 {
        (self.terms.most - self.used).max(0)
    }

    fn ask(&self, cost: i128, patience: i128) -> Told {
        if cost > self.terms.most {
            return None;
        }
        let wait = self.back_in(self.used + cost - self.terms.most);
        let fits = wait <= patience && self.used + cost <= MOST / 2;
        Some(if fits {
            (0, wait)
        } else {
            ((wait - patience).max(1), 0)
        })
    }

    fn has_room(&self, cost: i128) -> bool {
        self.used + cost <= MOST / 2
    }

    fn take(&mut self, cost: i128) {
        self.used += cost;
    }

    fn reset(&self) -> i128 {
        self.back_in(self.used)
    }

    fn mark(&self) -> i128 {
        0
    }

    fn back(&mut self, permits: i128, _mark: i128) -> bool {
        let before = self.used;
        self.used = (before - permits).max(0);
        before > 0
    }

    fn is_stepped(&self) -> bool {
        self.is_stepped
    }

    fn used(&self) -> (i128, Part) {
        (self.used, Part::NONE)
    }

    fn kept(&self) -> Vec<(i128, i128)> {
        Vec::new()
    }

    fn numbers(&self) -> Vec<i128> {
        vec![self.used, self.since]
    }
}
