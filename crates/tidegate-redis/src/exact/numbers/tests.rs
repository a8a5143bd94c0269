use super::*;

fn numbers(algorithm: impl Into<Algorithm>) -> Result<(u64, u64, u64), NotShared> {
    Numbers::of(&algorithm.into()).map(|numbers| (numbers.a, numbers.b, numbers.tick))
}

#[test]
fn rates_are_in_lowest_terms_at_the_finest_tick() {
    assert_eq!(numbers(Quota::per_minute(10)), Ok((1, 6_000_000, 1)));
    assert_eq!(numbers(Quota::per_second(3)), Ok((3, 1_000_000, 1)));
    assert_eq!(numbers(Quota::per_second(80_000)), Ok((2, 25, 1)));
    assert_eq!(numbers(Quota::per_second(3_000_000)), Ok((3, 1, 1)));
    assert_eq!(numbers(Quota::per_month(1)), Ok((1, 2_592_000_000_000, 1)));
    assert_eq!(numbers(Quota::per_second(0)), Ok((1_000, 1, 1)));
    // 99,991 is a prime: 2.6e12 us a month, times the burst, is too much. Milliseconds are not.
    let prime = Quota::per_month(99_991);
    assert_eq!(numbers(prime), Ok((99_991, 2_592_000_000, 1_000)));
}
