use super::*;

fn terms(quota: Quota) -> Result<LeaseTerms, LeaseError> {
    LeaseTerms::new(&quota, Scheme::Strict)
}

#[test]
fn times_follow_from_the_time_in_which_the_burst_refills() {
    let millis = |quota| terms(quota).unwrap().refresh().as_millis();
    assert_eq!(millis(Quota::per_second(100_000).burst(10_000)), 25);
    assert_eq!(millis(Quota::per_second(100_000).burst(2_000)), 5);
    assert_eq!(millis(Quota::per_second(1_000)), 100);
    assert_eq!(millis(Quota::per_hour(1_000)), 100);
    let terms = terms(Quota::per_second(100_000).burst(10_000)).unwrap();
    assert_eq!(terms.lease().as_millis(), 250);
    assert_eq!(terms.silence().as_millis(), 75);
    assert_eq!(terms.membership().as_secs(), 3);
    assert_eq!((terms.num, terms.den, terms.tick_micros), (1, 10, 1));
    assert_eq!(terms.most_lent(), 7_500);
    assert!(terms.suits(312) && !terms.suits(313));
}

#[test]
fn scales_are_exact_and_the_finest_that_fit() {
    let scale = |quota| terms(quota).map(|t| (t.num, t.den, t.tick_micros));
    assert_eq!(
        scale(Quota::per_second(99_991).burst(5_000)),
        Ok((99_991, 1_000_000, 1))
    );
    assert_eq!(scale(Quota::per_month(1_000)), Ok((1, 2_592_000_000, 1)));
    assert_eq!(scale(Quota::per_month(1_000_000)), Ok((1, 2_592_000, 1)));
    // 999,983 is a prime: nothing cancels, so ticks are coarser.
    assert_eq!(
        scale(Quota::per_day(999_983)),
        Ok((999_983, 864_000_000, 100))
    );
    assert_eq!(
        scale(Quota::per_month(999_999_937)),
        Err(LeaseError::Numbers)
    );
}

#[test]
fn what_cannot_be_leased_is_refused_with_a_way_out() {
    let small = LeaseError::BurstTooSmall { burst: 5, nodes: 1 };
    assert_eq!(terms(Quota::per_minute(5)), Err(small));
    assert!(small.to_string().contains("exact"));
    let fast = terms(Quota::per_second(1_000_000).burst(19_999));
    assert_eq!(fast, Err(LeaseError::RefillsTooFast));
    assert!(terms(Quota::per_second(1_000_000).burst(20_000)).is_ok());
    assert!(matches!(
        terms(Quota::per_second(0)),
        Err(LeaseError::BurstTooSmall { .. })
    ));
    assert!(matches!(
        terms(Quota::new(100, Duration::ZERO)),
        Err(LeaseError::Quota(_))
    ));
    assert_eq!(
        terms(Quota::per_second(100).initial(0)),
        Err(LeaseError::Initial)
    );
}

#[test]
fn clocks_that_differ_agree_on_what_has_passed() {
    assert_eq!(surely_within(1_000_000), 999_000);
    assert_eq!(surely_beyond(1_000_000), 1_001_000);
    assert_eq!(surely_within(0), 0);
    assert_eq!(surely_within(1), 0);
}

#[test]
fn windows_are_refreshed_ten_times_and_lent_whole() {
    let millis = Duration::from_millis;
    let refresh = |window| LeaseTerms::window(1_000, window).unwrap().refresh();
    assert_eq!(refresh(millis(50)), millis(5));
    assert_eq!(refresh(millis(250)), millis(25));
    assert_eq!(refresh(Duration::from_secs(1)), millis(100));
    assert_eq!(refresh(Duration::from_hours(24)), millis(100));
    let terms = LeaseTerms::window(1_000, millis(250)).unwrap();
    assert_eq!((terms.burst(), terms.most_lent()), (1_000, 1_000));
    assert_eq!(terms.window_length(), Some(millis(250)));
    assert!(terms.suits(31) && !terms.suits(32));
}

#[test]
fn windows_of_other_numbers_are_other_keys_than_these_and_than_buckets() {
    let family = |permits, millis| {
        let window = Duration::from_millis(millis);
        LeaseTerms::window(permits, window).unwrap().family()
    };
    let of = family(1_000, 1_000);
    assert!(of.starts_with("tgw") && of == family(1_000, 1_000), "{of}");
    assert_ne!(of, family(1_001, 1_000));
    assert_ne!(of, family(1_000, 1_001));
    let bucket = terms(Quota::per_second(1_000).burst(1_000)).unwrap();
    assert!(bucket.family().starts_with("tgb"));
}

#[test]
fn windows_that_cannot_be_leased_say_why() {
    let error = |permits, window| LeaseTerms::window(permits, window).unwrap_err();
    let second = Duration::from_secs(1);
    let (burst, nodes) = (31, 1);
    assert_eq!(
        error(31, second),
        LeaseError::BurstTooSmall { burst, nodes }
    );
    let short = Duration::from_millis(49);
    assert_eq!(error(100, short), LeaseError::WindowTooShort);
    let fine = second + Duration::from_nanos(1);
    assert_eq!(error(100, fine), LeaseError::WindowTooFine);
    let window = |scheme| {
        let (permits, window) = (100, second);
        LeaseTerms::of(&Algorithm::FixedWindow { permits, window }, scheme)
    };
    assert_eq!(window(Scheme::Strict), LeaseTerms::window(100, second));
    assert_eq!(window(Scheme::Optimistic), Err(LeaseError::Scheme));
    let first = Algorithm::WindowFromFirst {
        permits: 100,
        window: second,
    };
    let refused = LeaseTerms::of(&first, Scheme::Strict);
    assert_eq!(refused, Err(LeaseError::Algorithm));
}
