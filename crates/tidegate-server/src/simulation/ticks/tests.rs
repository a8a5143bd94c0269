use super::*;

#[test]
fn steps_grow_to_the_end_of_time() {
    assert!(STEPS.windows(2).all(|pair| pair[0] < pair[1]), "{STEPS:?}");
    assert!(STEPS[STEPS.len() - 1] > 1 << 59);
}

#[test]
fn steps_are_few_and_round() {
    for (range, most, step) in [
        (4_200 * MILLI, 9, 500 * MILLI),
        (10 * SECOND, 9, 2 * SECOND),
        (90 * SECOND, 9, 10 * SECOND),
        (DAY, 9, 6 * HOUR),
        (1, 9, 1),
    ] {
        assert_eq!(time_step(range, most), step, "{range}");
    }
    for (range, step) in [
        (1, 1),
        (3, 1),
        (4, 2),
        (11, 5),
        (15, 5),
        (77, 20),
        (1_000, 500),
    ] {
        assert_eq!(count_step(range, 3), step, "{range}");
    }
    assert!(
        u64::MAX / count_step(u64::MAX, 3) <= 30,
        "also where there is no end"
    );
}

#[test]
fn labels_have_the_unit_that_fits() {
    let labels = |step: u64, range: u64, at: u64| label(at, step, range);
    assert_eq!(labels(500 * MILLI, 4_200 * MILLI, 1_500 * MILLI), "1.5 s");
    assert_eq!(labels(50 * MILLI, 400 * MILLI, 150 * MILLI), "150 ms");
    assert_eq!(labels(10 * SECOND, 90 * SECOND, 70 * SECOND), "70 s");
    assert_eq!(labels(30 * SECOND, 4 * MINUTE, 90 * SECOND), "1.5 min");
    assert_eq!(labels(6 * HOUR, DAY, 18 * HOUR), "18 h");
    assert_eq!(labels(20, 97, 80), "80 ns");
    assert_eq!(labels(2 * DAY, 20 * DAY, 4 * DAY), "4 d");
    assert_eq!(labels(1, 1, 0), "0");
}
