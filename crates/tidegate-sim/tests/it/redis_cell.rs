//! redis-cell's dialect: what `CL.THROTTLE` answers, and what users of redis-cell have met.

use core::time::Duration;

use tidegate::{Algorithm, Ask, Decision, Limiter, ManualClock, QuotaError, Retry, Timestamp};
use tidegate_http::whole_seconds_up;

/// `CL.THROTTLE`'s five integers: whether it is limited, the limit, what remains, seconds until
/// a retry (-1: not limited, or never) and until all is back.
///
/// Seconds are rounded up. redis-cell drops a rest below a millisecond, so that a limited client
/// is told 0 and comes back at once.
fn reply(decision: &Decision) -> [i64; 5] {
    let whole = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let seconds = |time: Duration| whole(whole_seconds_up(time));
    [
        i64::from(decision.is_denied()),
        whole(decision.limit),
        whole(decision.remaining),
        decision.retry_after().map_or(-1, seconds),
        seconds(decision.reset_after),
    ]
}

const START: Timestamp = Timestamp::from_secs(1_700_000_000);

fn cell(max_burst: u64, count: u64, period_seconds: u64) -> Algorithm {
    Algorithm::RedisCell {
        max_burst,
        count,
        period_seconds,
    }
}

#[derive(Debug)]
struct Key {
    limiter: Limiter<ManualClock>,
    clock: ManualClock,
}

impl Key {
    fn new(algorithm: Algorithm) -> Self {
        let clock = ManualClock::new(START);
        let limiter = Limiter::with_clock(algorithm, clock.clone()).expect("valid");
        Self { limiter, clock }
    }

    fn throttle(&self, quantity: u64) -> [i64; 5] {
        reply(&self.limiter.check_ask(Ask::new(quantity)))
    }
}

// Its README has 15 of 30 in a minute: case 7.
// shows: B4 (redis-cell)
#[test]
fn a_fresh_key_of_the_readme() {
    let key = Key::new(cell(15, 30, 60));
    assert_eq!(key.throttle(1), [0, 16, 15, -1, 2]);
    assert_eq!(key.throttle(1), [0, 16, 14, -1, 4]);
    key.clock.advance(Duration::from_millis(500));
    assert_eq!(key.throttle(1), [0, 16, 13, -1, 6]);
}

// Case 8, and a quantity that never fits.
// shows: B4 (redis-cell)
#[test]
fn five_a_second_and_the_sixth() {
    let key = Key::new(cell(4, 1, 1));
    assert_eq!(key.throttle(6), [1, 5, 5, -1, 0]);
    for taken in 1..=5 {
        assert_eq!(key.throttle(1), [0, 5, 5 - taken, -1, taken]);
    }
    assert_eq!(key.throttle(1), [1, 5, 0, 1, 5]);
    assert_eq!(key.throttle(3), [1, 5, 0, 3, 5]);
    assert_eq!(key.throttle(6), [1, 5, 0, -1, 5]);
}

// shows: B4 (redis-cell), A7 (cost and peek and give back)
#[test]
fn a_quantity_of_0_looks_and_is_never_limited() {
    let key = Key::new(cell(4, 1, 1));
    assert_eq!(key.throttle(0), [0, 5, 5, -1, 0]);
    assert_eq!(key.throttle(5), [0, 5, 0, -1, 5]);
    assert_eq!(key.throttle(0), [0, 5, 0, -1, 5]);
}

// shows: B4 (redis-cell)
#[test]
fn redis_cell_a_limited_client_is_never_told_to_wait_0_seconds() {
    let key = Key::new(cell(0, 10_000, 1));
    assert_eq!(key.throttle(1), [0, 1, 0, -1, 1]);
    // 0.1 ms, which redis-cell says is 0.
    assert_eq!(key.throttle(1), [1, 1, 0, 1, 1]);
}

// shows: B4 (redis-cell)
#[test]
fn dragonfly_1008_two_seconds_are_not_told_as_three() {
    let key = Key::new(cell(1, 1, 1));
    assert_eq!(key.throttle(2), [0, 2, 0, -1, 2]);
    assert_eq!(key.throttle(2), [1, 2, 0, 2, 2]);
}

// Its whole microseconds make 6,023 of 6,000 there.
// shows: B4 (redis-cell)
#[test]
fn redis_cell_50_the_dialect_has_no_more_than_its_limit() {
    for (max_burst, count) in [
        (5_999, 6_000),
        (6_000, 6_000),
        (9, 10_000_000),
        (0, 1 << 29),
    ] {
        let key = Key::new(cell(max_burst, count, 1));
        let limit = i64::try_from(max_burst + 1).expect("small");
        assert_eq!(key.throttle(1)[..3], [0, limit, limit - 1]);
        let rest = key.limiter.peek(Ask::ONE).remaining;
        assert_eq!(key.throttle(rest)[..3], [0, limit, 0]);
        assert_eq!(key.throttle(1)[..3], [1, limit, 0]);
    }
}

// shows: B4 (redis-cell)
#[test]
fn redis_cell_11_thousands_a_second_are_no_error_and_less_than_a_nanosecond_is_one() {
    for count in [8_000, 10_000, 1_000_000, 1_000_000_000] {
        assert_eq!(cell(0, count, 1).validate(), Ok(()), "{count}");
    }
    for (count, period) in [(0, 60), (30, 0), (1_000_000_001, 1), (u64::MAX, 60)] {
        let refused = cell(15, count, period).validate();
        assert_eq!(refused, Err(QuotaError::NoInterval), "{count} {period}");
    }
}

// Its products overflow; 2^63 of 2^62 ns each are 0.
// shows: B4 (redis-cell)
#[test]
fn redis_cell_a_quantity_beyond_64_bits_of_time_is_refused() {
    let key = Key::new(cell(15, 1, 34_560_000));
    for quantity in [17, 1 << 62, 1 << 63, u64::MAX] {
        let decision = key.limiter.check_ask(Ask::new(quantity));
        assert_eq!(decision.retry(), Some(Retry::Never), "{quantity}");
        assert_eq!(reply(&decision)[..4], [1, 16, 16, -1]);
    }
    assert_eq!(key.throttle(16), [0, 16, 0, -1, 16 * 34_560_000]);
}

// 3 a second are one each 333,333,333 ns there, so that the fourth is a nanosecond early.
// shows: B4 (redis-cell)
#[test]
fn the_dialect_is_as_inexact_as_redis_cell() {
    let key = Key::new(cell(2, 3, 1));
    assert_eq!(key.throttle(3), [0, 3, 0, -1, 1]);
    key.clock.advance(Duration::from_nanos(999_999_998));
    assert_eq!(key.throttle(3)[..3], [1, 3, 2]);
    key.clock.advance(Duration::from_nanos(1));
    assert_eq!(key.throttle(3)[..3], [0, 3, 0]);
}
