//! What was told was not true.

use tidegate::{Algorithm, CalendarUnit, Clock, Retry};

use super::*;

// shows: A1, B4 (meter)
#[test]
fn bucket4j_88_a_wait_counts_what_has_dripped_in_already() {
    let (limiter, clock) = timed(Quota::per_second(1).burst(4));
    assert_eq!(pass(&limiter, 4), 4);
    clock.advance(millis(200));
    let wait = |permits| limiter.peek(Ask::new(permits)).retry_after();
    assert_eq!(wait(1), Some(millis(800)));
    assert_eq!(wait(3), Some(millis(2_800)));
    // Three each ten nanoseconds: the first is there after four, not three.
    let (limiter, clock) = timed(Quota::new(3, Duration::from_nanos(10)));
    assert_eq!(pass(&limiter, 4), 3);
    let wait = limiter.peek(Ask::ONE).retry_after().expect("a wait");
    assert_eq!(wait, Duration::from_nanos(4));
    clock.advance(wait);
    assert!(limiter.check().is_allowed());
}

// shows: A1
#[test]
fn traefik_8573_retry_after_zero_is_never_told() {
    let limits = [
        Algorithm::TokenBucket(Quota::per_second(3_000_000).burst(1)),
        Algorithm::TokenBucket(Quota::new(1 << 40, Duration::from_nanos(1)).burst(1)),
        Algorithm::FixedWindow {
            permits: 1,
            window: Duration::from_nanos(1),
        },
        Algorithm::SlidingLog {
            permits: 1,
            window: Duration::from_nanos(1),
        },
    ];
    for algorithm in limits {
        let (limiter, _) = timed(algorithm);
        assert_eq!(pass(&limiter, 1), 1);
        let wait = limiter.check().retry_after().expect("refused");
        assert!(wait >= Duration::from_nanos(1), "{algorithm:?}");
    }
}

// shows: B4 (meter)
#[test]
fn dragonfly_1008_the_reset_is_not_off_by_one() {
    let (limiter, clock) = timed(Quota::per_second(1).burst(2));
    let decision = limiter.check_ask(Ask::new(2));
    assert_eq!(decision.reset_after, seconds(2));
    clock.advance(seconds(2));
    assert_eq!(limiter.peek(Ask::ONE).remaining, 2);
    assert_eq!(limiter.peek(Ask::ONE).reset_after, Duration::ZERO);
}

// shows: B10 (sync)
#[test]
fn resilience4j_1968_who_cannot_wait_long_enough_is_refused_at_once() {
    let limits = [
        Algorithm::TokenBucket(Quota::per_minute(1)),
        Algorithm::FixedWindow {
            permits: 1,
            window: seconds(3_600),
        },
        Algorithm::SmoothBursty {
            quota: Quota::per_minute(1),
            max_debt: seconds(3_600),
        },
    ];
    for algorithm in limits {
        let (limiter, clock) = timed(algorithm);
        assert!(limiter.acquire(Ask::ONE).is_allowed());
        let before = clock.now();
        let refused = limiter.acquire_within(Ask::ONE, seconds(5));
        assert!(refused.is_denied());
        assert_eq!(clock.now(), before, "without sleeping: {algorithm:?}");
        // And it took nothing from who can wait.
        let waited = limiter.acquire(Ask::ONE);
        assert!(waited.is_allowed());
        assert!(clock.now().since(before) <= seconds(3_600));
    }
}

// shows: B10 (sync)
#[test]
fn guava_1754_who_waits_goes_on_in_the_order_of_coming_whatever_it_takes() {
    let (limiter, _) = timed(Quota::per_second(10));
    assert_eq!(pass(&limiter, 10), 10);
    let sizes = [5, 1, 10, 1, 2];
    let delays = sizes.map(|permits| {
        let patient = Ask::new(permits).within(seconds(60));
        limiter.check_ask(patient).delay()
    });
    assert!(delays.is_sorted(), "{delays:?}");
    assert_eq!(delays[4], millis(1_900));
}

// shows: A7 (cost and peek and give back)
#[test]
fn a_request_that_never_fits_is_not_told_to_wait() {
    for algorithm in [
        Algorithm::TokenBucket(Quota::per_second(10)),
        Algorithm::FixedWindow {
            permits: 10,
            window: seconds(1),
        },
        Algorithm::SlidingLog {
            permits: 10,
            window: seconds(1),
        },
    ] {
        let (limiter, clock) = timed(algorithm);
        let before = clock.now();
        let refused = limiter.acquire(Ask::new(11));
        assert_eq!(refused.retry(), Some(Retry::Never));
        assert_eq!(clock.now(), before);
    }
}

const NANO: Duration = Duration::from_nanos(1);

fn calendar(permits: u64, unit: CalendarUnit) -> Algorithm {
    Algorithm::CalendarWindow { permits, unit }
}

// There a month is 30 days from 1970 on. Ends of January 2027, of February 2028 and of 2100.
// shows: B1 (calendar)
#[test]
fn envoy_ratelimit_1206_a_month_is_that_of_the_calendar() {
    for (last_day, days) in [
        (1_801_353_600, 28),
        (1_835_395_200, 31),
        (4_107_456_000, 31),
    ] {
        let first = Timestamp::from_secs(last_day + 86_400);
        let (limiter, clock) = timed(calendar(2, CalendarUnit::Month));
        clock.set(Timestamp::from_nanos(first.as_nanos() - 1));
        assert_eq!(pass(&limiter, 5), 2, "at the end of the month");
        assert_eq!(limiter.check().retry_after(), Some(NANO));
        clock.advance(NANO);
        assert_eq!(pass(&limiter, 5), 2, "at the start of the next");
        let wait = limiter.check().retry_after();
        assert_eq!(wait, Some(Duration::from_hours(24 * days)));
    }
}

// There the counter of a month lives for 30 days, and the wait is told as a second.
// shows: B1 (calendar)
#[test]
fn kong_a_month_that_is_used_up_on_the_first_is_so_on_the_31st() {
    let first = Timestamp::from_secs(1_798_761_600); // of January 2027
    let (limiter, clock) = timed(calendar(1, CalendarUnit::Month));
    clock.set(first);
    assert!(limiter.check().is_allowed());
    for day in 1..31 {
        clock.set(first.after(Duration::from_hours(24 * day)));
        let rest = Duration::from_hours(24 * (31 - day));
        assert_eq!(limiter.check().retry_after(), Some(rest), "day {day}");
    }
    clock.set(first.after(Duration::from_hours(24 * 31)));
    assert!(limiter.check().is_allowed());
}

// shows: B1 (calendar)
#[test]
fn weeks_begin_on_monday_and_years_in_january() {
    let monday = Timestamp::from_secs(1_795_996_800); // 2026-11-30
    let new_year = Timestamp::from_secs(1_798_761_600); // 2027
    for (unit, edge) in [
        (CalendarUnit::Week, monday),
        (CalendarUnit::Day, monday),
        (CalendarUnit::Year, new_year),
    ] {
        let (limiter, clock) = timed(calendar(1, unit));
        clock.set(Timestamp::from_nanos(edge.as_nanos() - 3_600_000_000_000));
        assert_eq!(pass(&limiter, 5), 1);
        assert_eq!(
            limiter.check().retry_after(),
            Some(seconds(3_600)),
            "{unit:?}"
        );
        clock.set(edge);
        assert_eq!(pass(&limiter, 5), 1, "{unit:?}");
    }
}

// shows: B1 (from the first request)
#[test]
fn a_window_begins_with_the_first_request_after_the_window_before() {
    let (limiter, clock) = timed(Algorithm::WindowFromFirst {
        permits: 2,
        window: seconds(60),
    });
    clock.advance(seconds(17));
    assert!(limiter.check().is_allowed());
    clock.advance(seconds(59));
    assert_eq!(pass(&limiter, 5), 1);
    assert_eq!(limiter.check().retry_after(), Some(seconds(1)));
    // Over, but the next has not begun: it does when it is asked for.
    clock.advance(seconds(31));
    assert_eq!(limiter.peek(Ask::ONE).reset_after, Duration::ZERO);
    clock.advance(seconds(10));
    let (_, receipt) = limiter.reserve(Ask::ONE);
    assert_eq!(limiter.peek(Ask::ONE).reset_after, seconds(60));
    // A window in which nobody is any more never was.
    clock.advance(seconds(10));
    limiter.give_back(receipt.expect("taken")).expect("its own");
    clock.advance(seconds(10));
    assert_eq!(limiter.check().reset_after, seconds(60));
}
