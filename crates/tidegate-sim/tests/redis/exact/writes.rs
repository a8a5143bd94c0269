//! What the script writes: whole numbers, for as long as they matter, and nothing for a refusal.

use std::num::NonZeroU32;
use std::slice::from_ref;
use std::time::Duration;

use redis::{ConnectionLike, cmd};
use tidegate::{Algorithm, Ask, Quota};
use tidegate_redis::exact::{Asked, Group, Numbers, Reply, What, decide};

use super::store::Store;

const MINUTE: Duration = Duration::from_mins(1);

fn asked(key: &str, algorithm: impl Into<Algorithm>) -> Asked {
    Asked {
        key: key.into(),
        numbers: Numbers::of(&algorithm.into()).unwrap(),
    }
}

fn run(store: &Store, limits: &[Asked], groups: &[Group]) -> Reply {
    let answer = store.run(&decide(What::Check, limits, groups)).unwrap();
    Reply::read(&answer, limits.len(), groups.len()).unwrap()
}

fn one(ask: impl Into<Ask>) -> Group {
    Group {
        requests: 1,
        ask: ask.into(),
    }
}

/// One limit of each kind, of 10 permits, and in what time all of what one took is back.
fn each_kind() -> Vec<(Asked, Duration)> {
    let quota = Quota::per_minute(10);
    let interval = |aligned| Algorithm::IntervalBucket { quota, aligned };
    let (permits, window) = (10, MINUTE);
    let parts = NonZeroU32::new(6).unwrap();
    let six = Duration::from_secs(6);
    vec![
        (asked("bucket", quota), six),
        (asked("interval", interval(false)), MINUTE),
        (asked("aligned", interval(true)), MINUTE),
        (
            asked("fixed", Algorithm::FixedWindow { permits, window }),
            MINUTE,
        ),
        (
            asked("first", Algorithm::WindowFromFirst { permits, window }),
            MINUTE,
        ),
        (
            asked("counter", Algorithm::SlidingCounter { permits, window }),
            2 * MINUTE,
        ),
        (
            asked("log", Algorithm::SlidingLog { permits, window }),
            MINUTE,
        ),
        (
            asked(
                "parts",
                Algorithm::SlidingWindow {
                    permits,
                    window,
                    parts,
                },
            ),
            MINUTE + Duration::from_secs(10),
        ),
    ]
}

#[test]
fn a_key_lives_until_it_is_at_rest_and_a_second() {
    let store = Store::start();
    for (limit, whole) in each_kind() {
        let reply = run(&store, from_ref(&limit), &[one(1)]);
        let reset = reply.groups[0].limits[0].reset_after;
        assert!(!reset.is_zero() && reset <= whole, "{limit:?}: {reset:?}");
        let left = Duration::from_millis(store.pttl(&limit.key).try_into().unwrap());
        let most = reset + Duration::from_millis(1_001);
        assert!(
            left <= most && left + Duration::from_secs(10) > most,
            "{limit:?}: {left:?}"
        );
    }
    // One that is not full when it is new is kept for a day more, as what it has become.
    let quota = Quota::per_minute(10);
    let slow = asked("initial", quota.initial(3));
    let later = asked("later", Algorithm::smooth_bursty(quota));
    for limit in [slow, later] {
        run(&store, from_ref(&limit), &[one(1)]);
        assert!(store.pttl(&limit.key) > 86_400_000, "{limit:?}");
    }
}

#[test]
fn a_refusal_writes_nothing() {
    let store = Store::at_told_time();
    store.set_time(1_800_000_030_000_000);
    let written = || -> String {
        let counts: String = store
            .with(|redis| cmd("INFO").arg("persistence").query(redis))
            .unwrap();
        let line = counts
            .lines()
            .find(|line| line.starts_with("rdb_changes_since_last_save"));
        line.unwrap().to_owned()
    };
    for (limit, _) in each_kind() {
        let limits = from_ref(&limit);
        let full = run(&store, limits, &[one(10)]);
        assert_eq!(full.groups[0].requests, 1, "{limit:?}");
        let (state, changes) = (store.dump(&limit.key), written());
        let groups = [
            one(1),
            one(11),
            one(Ask::new(1).within(Duration::from_millis(1))),
            one(0),
            Group {
                requests: 4_096,
                ask: Ask::new(2),
            },
        ];
        let refused = run(&store, limits, &groups);
        let granted: Vec<_> = refused.groups.iter().map(|group| group.requests).collect();
        assert_eq!(granted, [0, 0, 0, 1, 0], "{limit:?}");
        assert_eq!(store.dump(&limit.key), state, "{limit:?}");
        assert_eq!(written(), changes, "{limit:?}");
    }
}

#[test]
fn numbers_are_whole_however_large() {
    let store = Store::at_told_time();
    // A year before 2^52 microseconds.
    store.set_time(4_472_063_627_370_496);
    let month = Quota::per_month((1 << 20) - 3);
    let limits = [
        asked("{a}bucket", month),
        asked("{a}fast", Quota::per_second(999_999_999)),
        asked("{a}later", Algorithm::smooth_bursty(Quota::per_month(5))),
        asked(
            "{a}window",
            Algorithm::FixedWindow {
                permits: 1 << 40,
                window: Duration::from_hours(24 * 400),
            },
        ),
        asked(
            "{a}counter",
            Algorithm::SlidingCounter {
                permits: 999_983,
                window: Duration::from_secs(2_000_000),
            },
        ),
        asked(
            "{a}log",
            Algorithm::SlidingLog {
                permits: 1_000,
                window: Duration::from_hours(24 * 400),
            },
        ),
    ];
    let groups = [
        one(5),
        one(Ask::new(700).forced()),
        one(Ask::new(1 << 38).forced()),
    ];
    run(&store, &limits, &groups);
    for limit in &limits {
        let text = match limit.numbers.kind {
            tidegate_redis::exact::Kind::Log => {
                let entries: Vec<String> = store
                    .with(|redis| cmd("LRANGE").arg(&limit.key).arg(0).arg(-1).query(redis))
                    .unwrap();
                entries.join(":")
            }
            _ => store.text(&limit.key),
        };
        let numbers: Vec<_> = text
            .split(':')
            .filter(|part| part.parse::<u8>().is_ok() || part.len() > 1)
            .collect();
        assert!(numbers.len() >= 2, "{text}");
        for number in numbers {
            let number: u64 = number
                .parse()
                .unwrap_or_else(|_| panic!("{number} of {text}"));
            assert!(number <= 1 << 53, "{text}");
        }
        assert!(store.pttl(&limit.key) > 0);
    }
    assert!(store.with(ConnectionLike::check_connection));
}

#[test]
fn all_limits_are_charged_or_none() {
    let store = Store::at_told_time();
    store.set_time(1_800_000_000_000_000);
    let quota = Quota::per_minute(10);
    let limits = [
        asked("{a}bucket", quota),
        asked(
            "{a}window",
            Algorithm::FixedWindow {
                permits: 3,
                window: MINUTE,
            },
        ),
        asked(
            "{a}log",
            Algorithm::SlidingLog {
                permits: 5,
                window: MINUTE,
            },
        ),
    ];
    let five = Group {
        requests: 5,
        ask: Ask::ONE,
    };
    let reply = run(&store, &limits, &[five]);
    assert_eq!(reply.groups[0].requests, 3, "as many as the smallest has");
    let remaining = |reply: &Reply| -> Vec<u64> {
        reply.groups[0]
            .limits
            .iter()
            .map(|said| said.remaining)
            .collect()
    };
    assert_eq!(remaining(&reply), [7, 0, 2]);
    let refused: Vec<_> = reply.groups[0]
        .limits
        .iter()
        .map(|said| said.retry.is_some())
        .collect();
    assert_eq!(
        refused,
        [false, true, false],
        "each says what it would do itself"
    );
    let states: Vec<_> = limits.iter().map(|limit| store.dump(&limit.key)).collect();
    for ask in [
        Ask::ONE,
        Ask::new(2),
        Ask::new(100),
        Ask::ONE.within(MINUTE / 2),
    ] {
        let reply = run(&store, &limits, &[one(ask)]);
        assert_eq!(reply.groups[0].requests, 0);
        assert_eq!(remaining(&reply), [7, 0, 2]);
    }
    let after: Vec<_> = limits.iter().map(|limit| store.dump(&limit.key)).collect();
    assert_eq!(after, states);
}

#[test]
fn a_batch_is_as_good_as_one_call_for_each() {
    let store = Store::at_told_time();
    store.set_time(1_800_000_030_000_000);
    for (limit, _) in each_kind() {
        let mut single = limit.clone();
        single.key.extend(b" one by one");
        for permits in [1, 3, 2] {
            let ask = Ask::new(permits);
            let batch = run(&store, from_ref(&limit), &[Group { requests: 4, ask }]);
            let granted = batch.groups[0].requests;
            let after = |at: u64| granted.checked_sub(at + 1);
            let of_batch = (0..4).map(|at| {
                batch.groups[0].limits[0].decision(limit.numbers.most, after(at), permits)
            });
            let one_by_one = (0..4).map(|_| {
                let reply = run(&store, from_ref(&single), &[one(ask)]);
                let after = reply.groups[0].requests.checked_sub(1);
                reply.groups[0].limits[0].decision(limit.numbers.most, after, permits)
            });
            for (mut a, b) in of_batch.zip(one_by_one) {
                // Of a batch all are told when it is at rest after the last of them.
                a.reset_after = b.reset_after;
                assert_eq!(a, b, "{limit:?}");
            }
        }
        assert_eq!(store.dump(&limit.key), store.dump(&single.key), "{limit:?}");
    }
}
