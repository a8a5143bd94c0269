//! The engine's rows of a million keys: one by one, in batches, refused.

use std::cell::RefCell;
use std::hint::black_box;
use std::num::NonZeroU32;
use std::sync::Mutex;
use std::time::SystemTime;

use governor::RateLimiter as Governor;
use governor::clock::DefaultClock;
use governor::state::keyed::DefaultKeyedStateStore;
use throttlecrab::{PeriodicStore, RateLimiter as Throttlecrab};
use tidegate::{Answer, KeyedLimiter, Quota};

use crate::engine::shut;
use crate::floor::Table;
use crate::keys::{KEYS, STREAM, Spread, address, stream};
use crate::pairs::{Side, Target, row};
use crate::quanta_clock::QuantaClock;

/// Checks at once.
const MANY: usize = 16;
const MOST: i64 = 1_000_000_000;

thread_local! {
    /// Where a thread's answers go.
    static ANSWERS: RefCell<Vec<Answer>> = const { RefCell::new(Vec::new()) };
}

/// So many at once that all are allowed, on both sides, and one a minute: a key that has been asked
/// is in use for longer than the fill takes. One that is as good as new may be forgotten when a
/// table grows, and a table of few keys is no table of a million.
fn open() -> (governor::Quota, Quota) {
    let burst = NonZeroU32::MIN.saturating_add(99_999_999);
    let theirs = governor::Quota::per_minute(NonZeroU32::MIN).allow_burst(burst);
    (theirs, Quota::per_minute(1).burst(u64::from(burst.get())))
}

/// Runs all rows of this spread whose title has `filter` in it.
pub(crate) fn run(filter: &str, spread: Spread) {
    let title = format!("1M IPv4-text keys, {spread:?}").to_lowercase();
    let batches = format!("{title}, allowed, batches of {MANY}");
    let rows = [
        format!("{title}, allowed, 1 thread(s)"),
        format!("{title}, allowed, 2 thread(s)"),
        format!("{title}, denied, 1 thread(s)"),
        batches.clone(),
    ];
    if !rows.iter().any(|row| row.contains(filter)) {
        return;
    }
    let keys = stream(spread);
    let target = Target::Ratio(match spread {
        Spread::Uniform => 0.4,
        Spread::Zipf => 0.45,
    });
    let Some(stores) = Stores::full(open()) else {
        return;
    };
    for threads in [1, 2] {
        let title = format!("{title}, allowed, {threads} thread(s)");
        row(&title, (filter, target), threads, &stores.sides(&keys));
    }
    if spread == Spread::Uniform {
        row(
            &batches,
            (filter, Target::Nanos(100.0)),
            1,
            &stores.batches(&keys),
        );
    }
    drop(stores);
    let title = format!("{title}, denied, 1 thread(s)");
    if !title.contains(filter) {
        return; // Filling takes a minute.
    }
    let Some(stores) = Stores::full(shut()) else {
        return;
    };
    row(&title, (filter, Target::Nothing), 1, &stores.sides(&keys));
}

/// One store of each side, with all keys in it.
struct Stores {
    governor: Governor<String, DefaultKeyedStateStore<String>, DefaultClock>,
    throttlecrab: Mutex<Throttlecrab<PeriodicStore>>,
    floor: Table,
    quanta: quanta::Clock,
    tidegate: KeyedLimiter<QuantaClock>,
    /// How far ahead of the time the floor's entries may be.
    tolerance: u64,
    most: i64,
}

impl Stores {
    fn full((theirs, ours): (governor::Quota, Quota)) -> Option<Self> {
        let built = KeyedLimiter::builder(ours)
            .max_keys(2 * KEYS as usize)
            .clock(QuantaClock::new());
        let is_open = ours.burst_permits() > 1;
        let stores = Self {
            governor: Governor::keyed(theirs),
            throttlecrab: Mutex::new(Throttlecrab::new(PeriodicStore::new())),
            floor: Table::new(KEYS as usize),
            quanta: quanta::Clock::new(),
            tidegate: built.build().ok()?,
            tolerance: if is_open { 1 << 50 } else { 0 },
            most: if is_open { MOST } else { 1 },
        };
        for key in (0..KEYS).map(address) {
            let _ = stores.governor.check_key(&key);
            stores.throttle(&key);
            stores
                .floor
                .check(&key, stores.quanta.raw(), 1 << 40, stores.tolerance);
            let _ = stores.tidegate.check(key.as_str());
        }
        let keys = stores.tidegate.stats().keys;
        assert_eq!(keys, KEYS as usize, "what is measured is a million keys");
        Some(stores)
    }

    fn throttle(&self, key: &str) {
        if let Ok(mut limiter) = self.throttlecrab.lock() {
            let (most, now) = (self.most, SystemTime::now());
            let _ = black_box(limiter.rate_limit(key, most, most, 36_000, 1, now));
        }
    }

    fn sides<'a>(&'a self, keys: &'a [String]) -> [Side<'a>; 4] {
        let key = |index: usize| &keys[index & (STREAM - 1)];
        [
            Side::new("governor String", move |index| {
                black_box(self.governor.check_key(key(index)).is_ok());
            }),
            Side::new("throttlecrab", move |index| self.throttle(key(index))),
            Side::new("floor table", move |index| {
                let now = self.quanta.raw();
                black_box(self.floor.check(key(index), now, 1, self.tolerance));
            }),
            Side::new("tidegate", move |index| {
                black_box(self.tidegate.check(key(index).as_str()).is_allowed());
            }),
        ]
    }

    /// governor has no call for several keys of one limit: one by one.
    fn batches<'a>(&'a self, keys: &'a [String]) -> [Side<'a>; 4] {
        let batch = |index: usize| {
            let from = index & (STREAM - 1) & !(MANY - 1);
            &keys[from..from + MANY]
        };
        [
            Side::by(MANY, "governor String, one by one", move |index| {
                for key in batch(index) {
                    black_box(self.governor.check_key(key).is_ok());
                }
            }),
            Side::by(MANY, "floor table", move |index| {
                let now = self.quanta.raw();
                black_box(self.floor.check_batch(batch(index), now, self.tolerance));
            }),
            Side::by(MANY, "tidegate, one by one", move |index| {
                for key in batch(index) {
                    black_box(self.tidegate.check(key.as_str()).is_allowed());
                }
            }),
            Side::by(MANY, "tidegate", move |index| {
                ANSWERS.with_borrow_mut(|answers| {
                    answers.clear();
                    self.tidegate.check_batch(batch(index), 1, answers);
                    let allowed = answers.iter().filter(|one| one.decision.is_allowed());
                    black_box(allowed.count());
                });
            }),
        ]
    }
}
