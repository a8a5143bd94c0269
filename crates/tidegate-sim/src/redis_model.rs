//! What the script of exact mode does, once more, in exact integers: keys, a time, an answer.
//!
//! The real script and this run the same calls in the tests. Where a state is a list in Redis it
//! is a plain list of admissions here; nothing is bisected, and nothing is a double but the one
//! quotient that the script rounds, too.

mod bucket;
mod counter;
mod fixed;
mod interval;
mod log;

use std::collections::BTreeMap;
use std::fmt::Debug;

use tidegate::Quota;
use tidegate_redis::exact::{Asked, Group, Kind, Numbers, What};

/// What no number of the script passes.
const MOST: i128 = 1 << 52;

/// A time after which a key at rest is forgotten, in milliseconds.
const GRACE_MS: i128 = 1_000;
/// And one that is not, at rest, as a new one would be.
const KEPT_MS: i128 = 86_400_000;

/// A Redis that knows this script. Keys do not expire: a test says what time it is.
#[derive(Clone, Debug, Default)]
pub struct RedisModel {
    keys: BTreeMap<Vec<u8>, Kept>,
}

/// A key's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// What Redis would show.
    pub value: Value,
    /// In how many milliseconds it is forgotten, from when it was written.
    pub ttl_ms: i128,
}

/// The value itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Whose numbers it has, and what they say.
    Text(Of, Vec<i128>),
    /// Admissions that still count: when (us), and how many permits.
    List(Vec<(i128, i128)>),
}

/// By which numbers a state counts: they are kept beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Of {
    kind: Kind,
    a: i128,
    b: i128,
    tick: i128,
}

impl Value {
    /// As the text that Redis keeps; `None` for a list.
    pub fn text(&self) -> Option<String> {
        let Self::Text(of, numbers) = self else {
            return None;
        };
        let mut parts = vec![of.kind.letter().to_owned()];
        parts.extend(
            [of.a, of.b, of.tick]
                .iter()
                .chain(numbers)
                .map(ToString::to_string),
        );
        Some(parts.join(":"))
    }
}

/// The numbers of a limit and the time, as its state counts it.
#[derive(Clone, Copy, Debug)]
struct Terms {
    a: i128,
    b: i128,
    most: i128,
    first: i128,
    y: i128,
    /// In ticks.
    now: i128,
    us: i128,
}

/// What an ask is told: how long until it might be granted (nothing: now), or after what delay it
/// is granted; `None` where never.
type Told = Option<(i128, i128)>;

/// A state that has come to the time of a call.
trait State: Debug {
    fn free(&self) -> i128;
    fn ask(&self, cost: i128, patience: i128) -> Told;
    /// Whether a forced ask has room.
    fn has_room(&self, cost: i128) -> bool;
    fn take(&mut self, cost: i128);
    fn reset(&self) -> i128;
    fn mark(&self) -> i128;
    fn back(&mut self, permits: i128, mark: i128) -> bool;
    /// Whether the clock stepped back so far that the state has to follow it.
    fn is_stepped(&self) -> bool;
    /// Permits in use, and parts of one more.
    fn used(&self) -> (i128, Part);
    fn kept(&self) -> Vec<(i128, i128)>;
    fn numbers(&self) -> Vec<i128>;
}

/// A part of a permit: so many of so many.
#[derive(Clone, Copy, Debug)]
struct Part {
    rest: i128,
    of: i128,
}

impl Part {
    const NONE: Self = Self { rest: 0, of: 1 };

    fn ceil(self) -> i128 {
        i128::from(self.rest > 0)
    }
}

/// A limit of a call: its state, and what happened to it.
#[derive(Debug)]
struct Loaded {
    state: Box<dyn State>,
    of: Of,
    first: i128,
    is_new: bool,
    is_taken: bool,
    is_told: bool,
}

impl RedisModel {
    /// What is kept of a key.
    pub fn get(&self, key: &[u8]) -> Option<&Kept> {
        self.keys.get(key)
    }

    /// Decides these groups at this time, in order, and answers as the script does.
    pub fn decide(&mut self, us: u64, what: What, limits: &[Asked], groups: &[Group]) -> Vec<i64> {
        let mut loaded: Vec<_> = limits.iter().map(|limit| self.load(us, limit)).collect();
        let mut answer: Vec<i128> = loaded.iter().map(|limit| limit.state.mark()).collect();
        for group in groups {
            decide_group(&mut loaded, group, &mut answer);
        }
        if what == What::Check {
            for (limit, loaded) in limits.iter().zip(loaded) {
                let begins = loaded.is_new && loaded.is_told && loaded.first > 0;
                if loaded.is_taken || loaded.state.is_stepped() || begins {
                    self.save(&limit.key, &loaded);
                }
            }
        }
        answer.into_iter().map(|number| number as i64).collect()
    }

    /// Gives back so many permits of each limit, by their marks.
    pub fn give_back(&mut self, us: u64, limits: &[Asked], taken: &[(u64, i64)]) {
        for (limit, (permits, mark)) in limits.iter().zip(taken) {
            let mut loaded = self.load(us, limit);
            if !loaded.is_new && loaded.state.back((*permits).into(), (*mark).into()) {
                let ttl_ms = self.keys.get(&limit.key).map(|kept| kept.ttl_ms);
                self.save(&limit.key, &loaded);
                if let (Kind::Log, Some(ttl_ms), Some(kept)) =
                    (loaded.of.kind, ttl_ms, self.keys.get_mut(&limit.key))
                {
                    // Nothing is taken: what there is lasts as long as before.
                    kept.ttl_ms = ttl_ms;
                }
            }
        }
    }

    /// Forgets these keys.
    pub fn forget(&mut self, limits: &[Asked]) {
        for limit in limits {
            self.keys.remove(&limit.key);
        }
    }

    fn load(&self, us: u64, limit: &Asked) -> Loaded {
        let Numbers {
            kind, a, b, tick, ..
        } = limit.numbers;
        let of = Of {
            kind,
            a: a.into(),
            b: b.into(),
            tick: tick.into(),
        };
        let terms = Terms {
            a: of.a,
            b: of.b,
            most: limit.numbers.most.into(),
            first: limit.numbers.first.into(),
            y: limit.numbers.y.into(),
            now: i128::from(us) / of.tick,
            us: us.into(),
        };
        let kept = self.keys.get(&limit.key).map(|kept| &kept.value);
        let state = match kept {
            None => fresh(kind, terms),
            Some(Value::List(entries)) => Box::new(log::Log::of(terms, entries)),
            Some(Value::Text(old, numbers)) if *old == of => rolled(kind, terms, numbers),
            Some(Value::Text(old, numbers)) => {
                let then = Terms {
                    a: old.a,
                    b: old.b,
                    most: 0,
                    first: 0,
                    y: 0,
                    now: terms.us / old.tick,
                    us: terms.us,
                };
                assumed(kind, terms, rolled(old.kind, then, numbers).used())
            }
        };
        Loaded {
            state,
            of,
            first: terms.first,
            is_new: kept.is_none(),
            is_taken: false,
            is_told: false,
        }
    }

    fn save(&mut self, key: &[u8], loaded: &Loaded) {
        let Loaded {
            state, of, first, ..
        } = loaded;
        let reset = state.reset();
        if reset == 0 && *first == 0 {
            self.keys.remove(key);
            return;
        }
        let value = match of.kind {
            Kind::Log => Value::List(state.kept()),
            _ => Value::Text(*of, state.numbers()),
        };
        let kept = if *first > 0 { KEPT_MS } else { 0 };
        let ttl_ms = ceil_div((reset * of.tick).min(MOST), 1_000) + GRACE_MS + kept;
        self.keys.insert(key.to_vec(), Kept { value, ttl_ms });
    }
}

fn fresh(kind: Kind, terms: Terms) -> Box<dyn State> {
    match kind {
        Kind::Bucket | Kind::PayLater => Box::new(bucket::Bucket::fresh(kind, terms)),
        Kind::Interval => Box::new(interval::Interval::fresh(terms)),
        Kind::Fixed => Box::new(fixed::Fixed::fresh(terms)),
        Kind::Counter => Box::new(counter::Counter::fresh(terms)),
        Kind::Log => Box::new(log::Log::of(terms, &[])),
    }
}

fn rolled(kind: Kind, terms: Terms, numbers: &[i128]) -> Box<dyn State> {
    match (kind, numbers) {
        (Kind::Bucket | Kind::PayLater, [used, last]) => {
            Box::new(bucket::Bucket::rolled(kind, terms, *used, *last))
        }
        (Kind::Interval, [used, since]) => {
            Box::new(interval::Interval::rolled(terms, *used, *since))
        }
        (Kind::Fixed, [start, count]) => Box::new(fixed::Fixed::rolled(terms, *start, *count)),
        (Kind::Counter, [index, count, before]) => {
            Box::new(counter::Counter::rolled(terms, *index, *count, *before))
        }
        other => unreachable!("{other:?} is kept by no kind"),
    }
}

fn assumed(kind: Kind, terms: Terms, used: (i128, Part)) -> Box<dyn State> {
    match kind {
        Kind::Bucket | Kind::PayLater => Box::new(bucket::Bucket::assumed(kind, terms, used)),
        Kind::Interval => Box::new(interval::Interval::assumed(terms, used)),
        Kind::Fixed => Box::new(fixed::Fixed::assumed(terms, used)),
        Kind::Counter => Box::new(counter::Counter::assumed(terms, used)),
        Kind::Log => unreachable!("a log has keys of its own"),
    }
}

fn decide_group(limits: &mut [Loaded], group: &Group, answer: &mut Vec<i128>) {
    let n = i128::from(group.requests);
    let cost = match group.ask.permits() {
        permits @ ..=Quota::MAX_PERMITS => permits.into(),
        _ => MOST + 1,
    };
    let patience = group.ask.max_delay().as_micros();
    let patience_us = i128::try_from(patience).unwrap_or(MOST).min(MOST / 2);
    let forced = group.ask.is_forced();
    let told = |limit: &Loaded| -> Told {
        if forced {
            limit.state.has_room(cost).then_some((0, 0))
        } else {
            limit.state.ask(cost, patience_us / limit.of.tick)
        }
    };
    let mut granted = 0;
    let mut delays: Vec<i128> = vec![0; limits.len()];
    // One after the other, until one is refused.
    while granted < n {
        let all: Vec<_> = limits
            .iter()
            .map(|limit| if cost == 0 { Some((0, 0)) } else { told(limit) })
            .collect();
        if !all.iter().all(|told| matches!(told, Some((0, _)))) {
            break;
        }
        granted += 1;
        for ((limit, told), delay) in limits.iter_mut().zip(all).zip(&mut delays) {
            *delay = told.map_or(0, |(_, delay)| delay);
            if cost > 0 {
                limit.state.take(cost);
                limit.is_taken = true;
            }
        }
    }
    answer.push(granted);
    for (limit, delay) in limits.iter_mut().zip(delays) {
        let retry = if granted < n && cost > 0 {
            told(limit).map_or(-1, |(retry, _)| (retry * limit.of.tick).min(MOST))
        } else {
            0
        };
        limit.is_told |= retry > 0;
        let reset = (limit.state.reset() * limit.of.tick).min(MOST);
        let delay = (delay * limit.of.tick).min(MOST);
        answer.extend([limit.state.free(), retry, reset, delay]);
    }
}

/// `a / b`, rounded up; `b` is above 0.
const fn ceil_div(a: i128, b: i128) -> i128 {
    a.div_euclid(b) + if a.rem_euclid(b) > 0 { 1 } else { 0 }
}
