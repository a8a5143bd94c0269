//! A sliding log, or a window of parts: a list of admissions.

use super::{MOST, Part, State, Terms, Told, ceil_div};

#[derive(Debug)]
pub(super) struct Log {
    terms: Terms,
    /// When (us), and how many permits: those that count.
    entries: Vec<(i128, i128)>,
    /// The time as it counts, in us.
    at: i128,
    is_stepped: bool,
}

impl Log {
    pub(super) fn of(terms: Terms, kept: &[(i128, i128)]) -> Self {
        let last = kept.last().map_or(0, |(at, _)| *at);
        let at = last.max(terms.us);
        let entries: Vec<_> = kept
            .iter()
            .copied()
            .filter(|(entry, _)| leaves(terms, *entry) > at)
            .collect();
        let mut log = Self {
            terms,
            entries,
            at,
            is_stepped: false,
        };
        if last - terms.us > terms.a * terms.y {
            let used = log.in_use();
            log.at = terms.us;
            log.is_stepped = true;
            log.entries = if used > 0 {
                vec![(terms.us, used)]
            } else {
                Vec::new()
            };
        }
        log
    }

    fn in_use(&self) -> i128 {
        self.entries.iter().map(|(_, permits)| permits).sum()
    }
}

/// The part of a time; without parts each microsecond is one.
fn part(terms: Terms, us: i128) -> i128 {
    if terms.b == 0 {
        us
    } else {
        us / terms.y * terms.b / terms.a
    }
}

/// When what was taken then does not count any more.
fn leaves(terms: Terms, us: i128) -> i128 {
    if terms.b == 0 {
        return us + terms.a;
    }
    let gone = part(terms, us) + terms.b + 1;
    ceil_div(gone * terms.a, terms.b) * terms.y
}

impl State for Log {
    fn free(&self) -> i128 {
        (self.terms.most - self.in_use()).max(0)
    }

    fn ask(&self, cost: i128, _patience: i128) -> Told {
        if cost > self.terms.most {
            return None;
        }
        let mut in_use = self.in_use();
        let mut wait = 0;
        let mut entries = self.entries.iter();
        while in_use + cost > self.terms.most {
            let (at, permits) = entries.next()?;
            in_use -= permits;
            wait = leaves(self.terms, *at) - self.terms.us;
        }
        Some((wait, 0))
    }

    fn has_room(&self, cost: i128) -> bool {
        self.in_use() + cost <= MOST / 2
    }

    fn take(&mut self, cost: i128) {
        let now = part(self.terms, self.at);
        match self.entries.last_mut() {
            Some((at, permits)) if part(self.terms, *at) == now => {
                *at = self.at;
                *permits += cost;
            }
            _ => self.entries.push((self.at, cost)),
        }
    }

    fn reset(&self) -> i128 {
        let last = self.entries.last();
        last.map_or(0, |(at, _)| leaves(self.terms, *at) - self.terms.us)
    }

    fn mark(&self) -> i128 {
        self.at
    }

    fn back(&mut self, permits: i128, mark: i128) -> bool {
        let mark = part(self.terms, mark);
        let found = |(at, _): &&mut (i128, i128)| part(self.terms, *at) == mark;
        let Some((_, had)) = self.entries.iter_mut().find(found) else {
            return false;
        };
        if permits == 0 {
            return false;
        }
        *had = (*had - permits).max(0);
        self.entries.retain(|(_, permits)| *permits > 0);
        true
    }

    fn is_stepped(&self) -> bool {
        self.is_stepped
    }

    fn used(&self) -> (i128, Part) {
        (self.in_use(), Part::NONE)
    }

    fn kept(&self) -> Vec<(i128, i128)> {
        self.entries.clone()
    }

    fn numbers(&self) -> Vec<i128> {
        Vec::new()
    }
}
