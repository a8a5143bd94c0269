use super::*;
use crate::{Meter, Quota};

const START: u64 = 1_700_000_000;
const MILLI: u64 = 1_000_000;

fn meter(count: u64, warm_up_seconds: u32, cold_factor: u32) -> SentinelWarmUpQueue {
    SentinelWarmUpQueue::new(count, warm_up_seconds, cold_factor).expect("valid")
}

fn take(meter: &SentinelWarmUpQueue, line: &mut Line, now: Timestamp, ask: &Ask) -> Decision {
    let plan = meter.plan(line, now, ask);
    if let Some(change) = plan.change {
        let _ = meter.commit(line, change);
    }
    plan.decision
}

/// When requests go on, in nanoseconds from the start: at each millisecond for so many seconds
/// more come than are let in, and each would wait so long.
fn goes_on(meter: &SentinelWarmUpQueue, seconds: u64, patience: Duration) -> Vec<u64> {
    let start = Timestamp::from_secs(START);
    let mut line = meter.fresh(start);
    let ask = Ask::ONE.within(patience);
    let mut all = Vec::new();
    for milli in 0..seconds * 1_000 {
        let now = start.after_nanos(milli * MILLI);
        loop {
            let decision = take(meter, &mut line, now, &ask);
            if decision.is_denied() {
                break;
            }
            all.push(milli * MILLI + u64::try_from(decision.delay().as_nanos()).unwrap());
        }
    }
    all
}

fn by_second(goes_on: &[u64], seconds: u64) -> Vec<usize> {
    let of = |second| goes_on.iter().filter(|at| **at / SECOND == second).count();
    (0..seconds).map(of).collect()
}

// 10/s over 10 s: 50 tokens above the line when cold, each of which costs 4 ms more. So at first
// one each 300 ms; and where the second before passed four, 16 ms less.
// shows: B7 (local)
#[test]
fn the_pace_of_sentinels_formulas_while_a_limit_gets_warm() {
    let all = goes_on(&meter(10, 10, 3), 30, Duration::from_millis(500));
    let first = [
        0, 300, 600, 900, 1_200, 1_484, 1_768, 2_052, 2_336, 2_608, 2_880, 3_152, 3_424, 3_680,
    ];
    assert_eq!(all[..14], first.map(|millis| millis * MILLI));
    let per_second = by_second(&all, 30);
    let warming = [4, 3, 4, 4, 4, 4, 5, 5, 6, 6, 8, 9];
    assert_eq!(per_second[..12], warming);
    assert!(per_second[12..].iter().all(|passed| *passed == 10));
}

// A line of five seconds is let in at what a permit costs now, and is warm as late as it goes on.
// shows: B7 (local)
#[test]
fn a_long_line_warms_up_by_what_goes_on_and_not_by_what_comes() {
    let all = goes_on(&meter(10, 10, 3), 40, Duration::from_secs(5));
    let warming = [
        4, 3, 3, 4, 3, 4, 3, 4, 4, 4, 4, 5, 5, 5, 6, 6, 8, 8, 10, 10, 10, 9,
    ];
    assert_eq!(by_second(&all, 22), warming);
    let all = goes_on(&meter(20, 5, 3), 15, Duration::from_millis(500));
    let warming = [7, 7, 8, 9, 10, 14, 17, 20, 20, 20, 20, 20, 20, 20, 20];
    assert_eq!(by_second(&all, 15), warming);
}

// Sentinel rounds what one costs to milliseconds: above 1,000/s to 1 ms, above 2,000/s to none.
// shows: B7 (local)
#[test]
fn sentinel_1615_a_queue_above_a_thousand_a_second_is_as_fast_as_it_says() {
    for count in [3, 999, 1_500, 3_000, 1 << 32] {
        let meter = meter(count, 1, 2);
        let mut now = Timestamp::from_secs(START);
        let mut line = meter.fresh(now);
        let patient = Ask::ONE.within(SentinelWarmUpQueue::MAX_WAIT);
        let mut next = || {
            let decision = take(&meter, &mut line, now, &patient);
            assert!(decision.is_allowed());
            now = now.after(decision.delay());
            now.as_nanos()
        };
        // Warm after as many as are stored above the line; then exactly.
        let warm_after = (2 * count).clamp(10, 10_000);
        let first = (0..warm_after).map(|_| next()).last().expect("some");
        if count <= 5_000 {
            let last = (0..3_000).map(|_| next()).last().expect("some");
            let exact = 3_000 * SECOND / count;
            assert!((last - first).abs_diff(exact) <= 1, "{count}");
        }
    }
}

// shows: B7 (local)
#[test]
fn a_queue_below_its_cold_factor_is_never_stuck() {
    for count in 1..=5 {
        for warm_up in [1, 2, 3, 10] {
            for cold_factor in [2, 3, 4, 100] {
                let meter = meter(count, warm_up, cold_factor);
                let mut now = Timestamp::from_secs(START);
                let mut line = meter.fresh(now);
                let mut waits = Vec::new();
                for _ in 0..200 {
                    assert!(take(&meter, &mut line, now, &Ask::ONE).is_allowed());
                    let told = take(&meter, &mut line, now, &Ask::ONE);
                    let wait = told.retry_after().expect("one at a time");
                    waits.push(wait.as_nanos());
                    now = now.after(wait);
                }
                let warm = u128::from(SECOND).div_ceil(count.into());
                let cold = warm * u128::from(cold_factor);
                assert!(
                    waits.iter().all(|wait| *wait <= cold),
                    "{meter:?} {waits:?}"
                );
                assert!(waits[199] <= warm && waits[199] + 1 >= warm, "{meter:?}");
            }
        }
    }
}

// shows: B7 (local)
#[test]
fn more_than_one_at_once_is_no_queue() {
    let meter = meter(10, 10, 3);
    let now = Timestamp::from_secs(START);
    let mut line = meter.fresh(now);
    for permits in [2, 10, u64::MAX] {
        let ask = Ask::new(permits).within(Duration::MAX);
        let decision = take(&meter, &mut line, now, &ask);
        assert_eq!(decision.retry(), Some(Retry::Never));
    }
    assert_eq!(take(&meter, &mut line, now, &Ask::ONE).limit, 1);
}

// shows: B7 (local)
#[test]
fn a_line_is_at_most_ten_minutes_long_and_so_is_its_memory() {
    let meter = meter(1, 1, 2);
    let now = Timestamp::from_secs(START);
    let mut line = meter.fresh(now);
    let patient = Ask::ONE.within(Duration::MAX);
    let mut longest = Duration::ZERO;
    loop {
        let decision = take(&meter, &mut line, now, &patient);
        if let Some(wait) = decision.retry_after() {
            assert!(wait <= Duration::from_secs(2));
            break;
        }
        longest = decision.delay();
    }
    assert_eq!(longest, SentinelWarmUpQueue::MAX_WAIT);
    assert!(line.passes.permits().count() <= 601);
}

// shows: B7 (local)
#[test]
fn the_largest_and_the_smallest_queues_there_are() {
    let seconds = u32::try_from(Quota::MAX_PERIOD.as_secs()).expect("34,560,000");
    let most_cold = super::super::SmoothWarmUp::MAX_COLD_FACTOR;
    for count in [0, 1, Quota::MAX_PERMITS >> 8] {
        for (warm_up, cold_factor) in [(1, 2), (1, most_cold), (seconds, 2), (seconds, most_cold)] {
            let meter = meter(count, warm_up, cold_factor);
            for start in [
                Timestamp::EPOCH,
                Timestamp::from_secs(START),
                Timestamp::MAX,
            ] {
                let debt = meter.assume(Used::permits(u64::MAX), start);
                for mut line in [meter.fresh(start), debt] {
                    for now in [start, Timestamp::MAX, Timestamp::EPOCH] {
                        for permits in [0, 1, 2, u64::MAX] {
                            for ask in [Ask::new(permits), Ask::new(permits).within(Duration::MAX)]
                            {
                                let decision = take(&meter, &mut line, now, &ask);
                                assert!(decision.remaining <= decision.limit);
                                assert!(decision.is_denied() || permits <= count.min(1));
                            }
                        }
                        let taken = Taken {
                            permits: 1,
                            at: now,
                            detail: SECOND,
                        };
                        meter.undo(&mut line, &taken, now);
                        meter.migrate(&self::meter(1 << 32, 1, 2), &mut line, now);
                        let _ = meter.at_stake(&line, now);
                    }
                }
            }
        }
    }
    assert!(SentinelWarmUpQueue::new(u64::MAX, 1, 3).is_err());
    assert!(SentinelWarmUpQueue::new(1, u32::MAX, 3).is_err());
    assert!(SentinelWarmUpQueue::new(1, 0, 3).is_err());
    assert!(SentinelWarmUpQueue::new(1, 1, 1).is_err());
}
