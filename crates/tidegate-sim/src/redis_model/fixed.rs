//! A fixed window.

use super::{MOST, Part, State, Terms, Told};

#[derive(Debug)]
pub(super) struct Fixed {
    terms: Terms,
    start: i128,
    count: i128,
    is_stepped: bool,
}

/// When the window begins that the time is in, where none is known.
fn begins(terms: Terms) -> i128 {
    if terms.b == 1 {
        terms.now
    } else {
        terms.now - (terms.now + terms.y) % terms.a
    }
}

impl Fixed {
    fn of(terms: Terms, start: i128, count: i128) -> Self {
        Self {
            terms,
            start,
            count,
            is_stepped: false,
        }
    }

    pub(super) fn fresh(terms: Terms) -> Self {
        Self::of(terms, begins(terms), 0)
    }

    pub(super) fn rolled(terms: Terms, start: i128, count: i128) -> Self {
        if terms.now - start >= terms.a {
            return Self::fresh(terms);
        }
        let is_stepped = start - terms.now > terms.a;
        let is_free = terms.b == 1 && count == 0;
        let start = if is_stepped || is_free {
            begins(terms)
        } else {
            start
        };
        Self {
            is_stepped,
            ..Self::of(terms, start, count)
        }
    }

    pub(super) fn assumed(terms: Terms, (whole, part): (i128, Part)) -> Self {
        Self::of(terms, begins(terms), whole + part.ceil())
    }

    fn left(&self) -> i128 {
        self.start + self.terms.a - self.terms.now
    }
}

impl State for Fixed {
    fn free(&self) -> i128 {
        (self.terms.most - self.count).max(0)
    }

    fn ask(&self, cost: i128, _patience: i128) -> Told {
        if cost > self.terms.most {
            return None;
        }
        Some(if cost <= self.free() {
            (0, 0)
        } else {
            (self.left(), 0)
        })
    }

    fn has_room(&self, cost: i128) -> bool {
        self.count + cost <= MOST / 2
    }

    fn take(&mut self, cost: i128) {
        self.count += cost;
    }

    fn reset(&self) -> i128 {
        if self.count == 0 { 0 } else { self.left() }
    }

    fn mark(&self) -> i128 {
        self.start
    }

    fn back(&mut self, permits: i128, mark: i128) -> bool {
        if mark != self.start || self.count == 0 {
            return false;
        }
        self.count = (self.count - permits).max(0);
        true
    }

    fn is_stepped(&self) -> bool {
        self.is_stepped
    }

    fn used(&self) -> (i128, Part) {
        (self.count, Part::NONE)
    }

    fn kept(&self) -> Vec<(i128, i128)> {
        Vec::new()
    }

    fn numbers(&self) -> Vec<i128> {
        vec![self.start, self.count]
    }
}
