//! A token bucket: units in use.

use tidegate_redis::exact::Kind;

use super::{MOST, Part, State, Terms, Told, ceil_div};

#[derive(Debug)]
pub(super) struct Bucket {
    terms: Terms,
    pays_later: bool,
    used: i128,
    is_stepped: bool,
}

impl Bucket {
    fn of(kind: Kind, terms: Terms, used: i128) -> Self {
        Self {
            terms,
            pays_later: kind == Kind::PayLater,
            used,
            is_stepped: false,
        }
    }

    pub(super) fn fresh(kind: Kind, terms: Terms) -> Self {
        Self::of(kind, terms, terms.first * terms.b)
    }

    pub(super) fn rolled(kind: Kind, terms: Terms, used: i128, last: i128) -> Self {
        let passed = (terms.now - last).max(0);
        Self {
            is_stepped: terms.now < last,
            ..Self::of(kind, terms, (used - passed * terms.a).max(0))
        }
    }

    pub(super) fn assumed(kind: Kind, terms: Terms, (whole, part): (i128, Part)) -> Self {
        let units = if part.of == terms.b {
            part.rest
        } else {
            // As the script rounds it.
            (part.rest as f64 / part.of as f64 * terms.b as f64).ceil() as i128
        };
        Self::of(kind, terms, ((whole * terms.b).min(MOST) + units).min(MOST))
    }

    fn capacity(&self) -> i128 {
        self.terms.most * self.terms.b
    }

    /// Ticks in which so many units come back.
    fn ticks(&self, units: i128) -> i128 {
        ceil_div(units.max(0), self.terms.a)
    }

    fn pay_later(&self, cost: i128, patience: i128) -> Told {
        let units = cost * self.terms.b;
        if self.terms.most == 0 || units - self.capacity() > self.terms.y {
            return None;
        }
        let owed = self.ticks(self.used - self.capacity());
        let too_far = self.ticks(self.used + units - self.capacity() - self.terms.y);
        let retry = (owed - patience).max(too_far);
        Some(if retry > 0 { (retry, 0) } else { (0, owed) })
    }
}

impl State for Bucket {
    fn free(&self) -> i128 {
        (self.capacity() - self.used).max(0) / self.terms.b
    }

    fn ask(&self, cost: i128, patience: i128) -> Told {
        if self.pays_later {
            return self.pay_later(cost, patience);
        }
        if cost > self.terms.most {
            return None;
        }
        let wait = self.ticks(self.used + cost * self.terms.b - self.capacity());
        let patience = patience.min(MOST / 2 / self.terms.a);
        Some(if wait <= patience {
            (0, wait)
        } else {
            (wait - patience, 0)
        })
    }

    fn has_room(&self, cost: i128) -> bool {
        self.used + cost * self.terms.b <= MOST
    }

    fn take(&mut self, cost: i128) {
        self.used += cost * self.terms.b;
    }

    fn reset(&self) -> i128 {
        self.ticks(self.used)
    }

    fn mark(&self) -> i128 {
        0
    }

    fn back(&mut self, permits: i128, _mark: i128) -> bool {
        let before = self.used;
        self.used = (before - permits * self.terms.b).max(0);
        before > 0
    }

    fn is_stepped(&self) -> bool {
        self.is_stepped
    }

    fn used(&self) -> (i128, Part) {
        let Terms { b, .. } = self.terms;
        let part = Part {
            rest: self.used % b,
            of: b,
        };
        (self.used / b, part)
    }

    fn kept(&self) -> Vec<(i128, i128)> {
        Vec::new()
    }

    fn numbers(&self) -> Vec<i128> {
        vec![self.used, self.terms.now]
    }
}
