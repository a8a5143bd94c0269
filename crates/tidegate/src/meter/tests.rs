use core::time::Duration;

use proptest::prelude::*;

use super::*;

use crate::{Quota, Retry};

fn take<M: Meter>(meter: &M, state: &mut M::State, now: Timestamp, ask: &Ask) -> Decision {
    let plan = meter.plan(state, now, ask);
    if let Some(change) = plan.change {
        let _ = meter.commit(state, change);
    }
    plan.decision
}

#[test]
fn a_wait_that_64_bits_cannot_say_is_not_told_as_one_nanosecond() {
    let meter = TokenBucket::<u128>::new(Quota::per_month(1).burst(296_229)).unwrap();
    let now = Timestamp::EPOCH;
    let mut state = meter.fresh(now);
    assert!(take(&meter, &mut state, now, &Ask::new(296_229)).is_allowed());
    // 7,405 months are 608 years; a u64 of nanoseconds ends at 584.
    let patient = Ask::new(7_405).within(Duration::from_hours(24 * 365 * 580));
    let retry = meter.plan(&state, now, &patient).decision.retry();
    let years = Duration::from_hours(24 * 365 * 20);
    assert!(
        matches!(retry, Some(Retry::After(wait)) if wait > years),
        "{retry:?}"
    );
}

#[test]
fn a_warm_up_stores_what_its_integral_says_rounded_once() {
    let limit = |quota: Quota, warm_up, cold_factor| {
        let warm_up = Duration::from_nanos(warm_up);
        let meter = SmoothWarmUp::new(quota, warm_up, cold_factor, Duration::from_secs(1)).unwrap();
        let now = Timestamp::EPOCH;
        let plan = meter.plan(&meter.fresh(now), now, &Ask::new(0));
        plan.decision.limit
    };
    // 1/2 + 2/4 of a permit are one.
    assert_eq!(limit(Quota::new(1, Duration::from_nanos(1)), 1, 3), 1);
    // 573/200 + 2 * 573/8200 are 3.0048.
    assert_eq!(limit(Quota::per_second(10_000_000), 573, 81), 3);
}

#[test]
fn a_warm_up_whose_debt_never_admits_is_refused() {
    let quota = Quota::per_second(2);
    let warm_up = |debt| SmoothWarmUp::new(quota, Duration::from_secs(4), 3, debt);
    // What it stores costs six seconds; a cold permit, one and a half.
    assert!(matches!(
        warm_up(Duration::from_millis(5_999)),
        Err(crate::QuotaError::Debt(_))
    ));
    let meter = warm_up(Duration::from_secs(6)).unwrap();
    let now = Timestamp::from_secs(1);
    let mut state = meter.fresh(now);
    let stored = take(&meter, &mut state, now, &Ask::new(0)).remaining;
    assert!(take(&meter, &mut state, now, &Ask::new(stored)).is_allowed());
    // A permit an hour: warming up for a minute stores less than one, and one costs an hour.
    let slow = |debt| SmoothWarmUp::new(Quota::per_hour(1), Duration::from_mins(1), 3, debt);
    assert!(slow(Duration::from_hours(1)).is_err());
    assert!(slow(Duration::from_mins(62)).is_ok());
}

#[test]
fn a_bucket_of_64_bits_refuses_numbers_that_do_not_fit_it() {
    let quota = Quota::per_second(999_999_937);
    assert!(!TokenBucket::<u64>::fits(quota));
    assert!(TokenBucket::<u64>::new(quota).is_err());
    assert!(TokenBucket::<u128>::new(quota).is_ok());
}

#[test]
fn an_interval_bucket_says_no_wait_that_64_bits_cannot() {
    let quota = Quota::per_month(1).burst(296_229);
    let meter = IntervalBucket::new(quota, false).unwrap();
    let now = Timestamp::from_secs(1_700_000_000);
    let mut state = meter.fresh(now);
    assert!(take(&meter, &mut state, now, &Ask::new(296_229)).is_allowed());
    // 7,405 months are 608 years, more than any caller can offer to wait.
    let patient = Ask::new(7_405).within(Duration::MAX);
    let decision = take(&meter, &mut state, now, &patient);
    assert!(decision.retry_after().is_some(), "{decision:?}");
    assert_eq!(decision.remaining, 0);
}

#[test]
fn a_shorter_period_does_not_refill_for_the_longer_one_that_has_passed() {
    let long = IntervalBucket::new(Quota::per_minute(1).burst(10), false).unwrap();
    let short = IntervalBucket::new(Quota::per_second(1).burst(10), false).unwrap();
    let start = Timestamp::from_secs(1_700_000_000);
    let mut state = long.fresh(start);
    assert!(take(&long, &mut state, start, &Ask::new(10)).is_allowed());
    let now = start.after(Duration::from_secs(59));
    long.migrate(&short, &mut state, now);
    assert_eq!(short.used(&state, now), Used::permits(10));
    let later = now.after(Duration::from_secs(1));
    assert_eq!(short.used(&state, later), Used::permits(9));
}

#[test]
fn a_window_of_parts_shorter_than_a_nanosecond_is_refused() {
    // Their numbers would not fit: all that comes after half a year would be in one part.
    let parts = |parts, nanos| {
        let parts = core::num::NonZeroU32::new(parts).unwrap();
        SlidingWindow::new(1, Duration::from_nanos(nanos), parts)
    };
    assert_eq!(
        parts(1_000, 999),
        Err(crate::QuotaError::TooManyParts(1_000))
    );
    let meter = parts(1_000, 1_000).unwrap();
    let now = Timestamp::from_nanos(Timestamp::MAX.as_nanos() - 2_000);
    let mut state = meter.fresh(now);
    assert!(take(&meter, &mut state, now, &Ask::ONE).is_allowed());
    assert!(take(&meter, &mut state, now.after_nanos(1_000), &Ask::ONE).is_denied());
    assert!(take(&meter, &mut state, now.after_nanos(1_001), &Ask::ONE).is_allowed());
}

#[test]
fn nginxs_first_request_is_in_use() {
    let meter = Nginx::new(2, false, 4, None).unwrap();
    let now = Timestamp::from_secs(1_700_000_000);
    let mut state = meter.fresh(now);
    let decision = take(&meter, &mut state, now, &Ask::ONE);
    assert_eq!((decision.limit, decision.remaining), (5, 4));
    assert_eq!(decision.reset_after, Duration::from_millis(500));
    // Else the key would be forgotten first, and its next request be free again.
    assert_eq!(meter.used(&state, now), Used::permits(1));
    assert_eq!(meter.at_stake(&state, now), Some(1));
}

#[test]
fn nginx_tells_who_does_not_wait_when_it_goes_on_without_delay() {
    let meter = Nginx::new(2, false, 4, Some(0)).unwrap();
    let now = Timestamp::from_secs(1_700_000_000);
    let mut state = meter.fresh(now);
    let patient = Ask::ONE.within(Duration::from_secs(2));
    for _ in 0..5 {
        assert!(take(&meter, &mut state, now, &patient).is_allowed());
    }
    // The burst has room for one in 500 ms; for one that is not delayed, in 2.5 s.
    let retry = |ask: &Ask| meter.plan(&state, now, ask).decision.retry();
    let after = |millis| Some(Retry::After(Duration::from_millis(millis)));
    assert_eq!(retry(&patient), after(500));
    assert_eq!(retry(&Ask::ONE), after(2_500));
    // Two at once never go ahead without delay.
    assert_eq!(retry(&Ask::new(2)), Some(Retry::Never));
}

#[test]
fn nginx_takes_over_any_debt() {
    let now = Timestamp::from_secs(1_700_000_000);
    for delay in [None, Some(0)] {
        let meter = Nginx::new(1, true, 0, delay).unwrap();
        let state = meter.assume(Used::permits(u64::MAX), now);
        let decision = meter.plan(&state, now, &Ask::ONE).decision;
        assert!(decision.retry_after().is_some() && decision.remaining == 0);
    }
}

proptest! {
    // proves: F4
    #[test]
    fn usage_loses_less_than_a_unit_and_never_to_the_callers_favour(
        permits in 0..=Quota::MAX_PERMITS,
        rest in any::<u64>(),
        per_permit in 1..=Quota::MAX_PERIOD.as_nanos() as u64,
    ) {
        let units = u128::from(permits) * u128::from(per_permit) + u128::from(rest % per_permit);
        let used = Used::units(units, per_permit);
        let back = used.to_units(per_permit);
        prop_assert!(back >= units && back - units <= 1, "{} became {}", units, back);
        let whole = u64::try_from(units.div_ceil(u128::from(per_permit))).unwrap();
        prop_assert_eq!(used.permits_ceil(), whole);
    }
}

proptest! {
    #[test]
    fn a_part_of_a_whole_is_exact(
        whole in 0..1_u128 << 64,
        of in 1..1_u128 << 62,
        thousandths in 0..=1_000_u128,
    ) {
        let part = of * thousandths / 1_000;
        prop_assert_eq!(word::mul_div(whole, part, of), whole * part / of);
    }
}

#[test]
fn a_part_of_a_whole_whose_product_fits_no_word() {
    let most = u128::from(Quota::MAX_PERMITS) << 55;
    assert_eq!(word::mul_div(most, most, most), most);
    assert_eq!(word::mul_div(most, most / 2, most), most / 2);
    assert_eq!(word::mul_div(most, 0, most), 0);
    assert_eq!(word::mul_div(most - 1, most - 1, most), most - 2);
}

#[test]
fn without_a_bound_of_debt_the_first_caller_of_a_slow_limit_goes_on_at_once() {
    let hour = Duration::from_hours(1);
    let month = Quota::per_month(1);
    for (quota, default) in [
        (Quota::per_second(5), hour),
        (Quota::per_hour(100), hour),
        (
            Quota::per_hour(100).burst(101),
            hour + Duration::from_secs(36),
        ),
        (month, month.period()),
        (Quota::per_day(100).burst(3), Duration::from_secs(3 * 864)),
        // Rounded up.
        (
            Quota::per_hour(7).burst(8),
            hour * 8 / 7 + Duration::from_nanos(1),
        ),
        (Quota::per_second(0), hour),
    ] {
        let default = default.max(hour);
        assert_eq!(SmoothBursty::default_max_debt(quota), default, "{quota:?}");
        let meter = SmoothBursty::new(quota, default).unwrap();
        let now = Timestamp::from_secs(1);
        let mut state = meter.fresh(now);
        let burst = Ask::new(quota.burst_permits());
        let all = take(&meter, &mut state, now, &burst);
        assert!(all.is_allowed() && all.delay().is_zero(), "{quota:?}");
    }
}

#[test]
fn without_a_bound_of_debt_every_warm_up_is_a_limit() {
    let hour = Duration::from_hours(1);
    let quotas = [
        Quota::per_month(1),
        Quota::per_second(2),
        Quota::per_minute(59),
        Quota::new(999_983, Duration::from_hours(1)),
    ];
    for quota in quotas {
        for cold_factor in [2, 3, 7, 100] {
            for nanos in [1, 997, 1_000_000_007, 3_600_000_000_011, 86_400_000_000_000] {
                let warm_up = Duration::from_nanos(nanos);
                let default = SmoothWarmUp::default_max_debt(quota, warm_up, cold_factor);
                let made = SmoothWarmUp::new(quota, warm_up, cold_factor, default);
                let Ok(meter) = made else {
                    assert!(
                        matches!(made, Err(crate::QuotaError::WarmUp(_))),
                        "{made:?}"
                    );
                    continue;
                };
                let one = quota.period() * cold_factor / u32::try_from(quota.permits()).unwrap();
                let most = hour.max(warm_up * 3 / 2).max(one);
                assert!(
                    default <= most + Duration::from_nanos(200),
                    "{default:?} {most:?}"
                );
                if default > hour {
                    let less = default.saturating_sub(Duration::from_nanos(1));
                    assert!(SmoothWarmUp::new(quota, warm_up, cold_factor, less).is_err());
                }
                // A new key takes one at once, and all that is stored.
                let now = Timestamp::from_secs(1);
                for permits in [
                    1,
                    meter
                        .plan(&meter.fresh(now), now, &Ask::new(0))
                        .decision
                        .remaining,
                ] {
                    let mut state = meter.fresh(now);
                    assert!(take(&meter, &mut state, now, &Ask::new(permits)).is_allowed());
                }
            }
        }
    }
    assert_eq!(
        SmoothWarmUp::default_max_debt(Quota::per_second(2), 2 * hour, 3),
        3 * hour
    );
}

#[test]
fn states_are_as_large_as_the_guide_says() {
    assert_eq!(size_of::<Tat<u64>>(), 8);
    assert_eq!(size_of::<Tat<u128>>(), 16);
    assert_eq!(size_of::<Window>(), 24);
    assert_eq!(size_of::<Log>(), 48);
    assert_eq!(size_of::<Windows>(), 24);
    assert_eq!(size_of::<Warmth>(), 32);
}
