//! A two-window counter.

use super::{MOST, Part, State, Terms, Told, ceil_div};

#[derive(Debug)]
pub(super) struct Counter {
    terms: Terms,
    index: i128,
    count: i128,
    before: i128,
    is_stepped: bool,
}

impl Counter {
    fn of(terms: Terms, index: i128, count: i128, before: i128) -> Self {
        Self {
            terms,
            index,
            count,
            before,
            is_stepped: false,
        }
    }

    pub(super) fn fresh(terms: Terms) -> Self {
        Self::of(terms, terms.now / terms.a, 0, 0)
    }

    pub(super) fn rolled(terms: Terms, index: i128, count: i128, before: i128) -> Self {
        let current = terms.now / terms.a;
        match current - index {
            ..-1 => Self {
                is_stepped: true,
                ..Self::of(terms, current, count, before)
            },
            -1 | 0 => Self::of(terms, index, count, before),
            1 => Self::of(terms, current, 0, count),
            _ => Self::of(terms, current, 0, 0),
        }
    }

    pub(super) fn assumed(terms: Terms, (whole, part): (i128, Part)) -> Self {
        Self {
            count: whole + part.ceil(),
            ..Self::fresh(terms)
        }
    }

    fn estimate(&self) -> i128 {
        let end = (self.index + 1) * self.terms.a;
        let left = (end - self.terms.now).clamp(0, self.terms.a);
        self.count + ceil_div((self.before * left).min(MOST), self.terms.a)
    }

    /// The first tick from `start` on at which no more than `most` of `before` counts.
    fn falls_to(&self, start: i128, before: i128, most: i128) -> i128 {
        if before <= most {
            return start;
        }
        start + self.terms.a - most * self.terms.a / before
    }
}

impl State for Counter {
    fn free(&self) -> i128 {
        (self.terms.most - self.estimate()).max(0)
    }

    fn ask(&self, cost: i128, _patience: i128) -> Told {
        let Terms { a, most, now, .. } = self.terms;
        if cost > most {
            return None;
        }
        if cost <= self.free() {
            return Some((0, 0));
        }
        let start = self.index * a;
        let room = most - self.count - cost;
        let at = if room >= 0 {
            self.falls_to(start, self.before, room)
        } else {
            self.falls_to(start + a, self.count, most - cost)
        };
        Some((at - now, 0))
    }

    fn has_room(&self, cost: i128) -> bool {
        self.count + cost <= MOST / 2
    }

    fn take(&mut self, cost: i128) {
        self.count += cost;
    }

    fn reset(&self) -> i128 {
        let windows = match (self.count, self.before) {
            (0, 0) => return 0,
            (0, _) => 1,
            _ => 2,
        };
        (self.index + windows) * self.terms.a - self.terms.now
    }

    fn mark(&self) -> i128 {
        self.index
    }

    fn back(&mut self, permits: i128, mark: i128) -> bool {
        let count = match self.index - mark {
            0 => &mut self.count,
            1 => &mut self.before,
            _ => return false,
        };
        let had = *count;
        *count = (had - permits).max(0);
        had > 0
    }

    fn is_stepped(&self) -> bool {
        self.is_stepped
    }

    fn used(&self) -> (i128, Part) {
        (self.estimate(), Part::NONE)
    }

    fn kept(&self) -> Vec<(i128, i128)> {
        Vec::new()
    }

    fn numbers(&self) -> Vec<i128> {
        vec![self.index, self.count, self.before]
    }
}
