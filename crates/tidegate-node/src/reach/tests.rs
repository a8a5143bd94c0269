use tidegate::Timestamp;

use super::{Change, Reach};

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(1_000_000 + millis)
}

/// What changes, and when, where each of these comes after so many milliseconds: a miss (`true`)
/// or an answer.
fn changes(came: impl IntoIterator<Item = (u64, bool)>) -> Vec<(u64, Change)> {
    let mut reach = Reach::default();
    let came = came.into_iter().map(|(millis, is_miss)| {
        let change = if is_miss {
            reach.missed(at(millis))
        } else {
            reach.answered(at(millis))
        };
        change.map(|change| (millis, change))
    });
    came.flatten().collect()
}

/// The log said "does not answer" and "answers again" with each of them.
#[test]
fn misses_mixed_with_answers_are_one_change_and_their_end_another() {
    let mixed = (0..5_000).map(|milli| (milli, milli % 2 == 0));
    let well = (5_000..10_000).map(|milli| (milli, false));
    let changes = changes(mixed.chain(well));
    assert_eq!(changes, [(1_000, Change::Away), (5_998, Change::Back)]);
}

#[test]
fn an_outage_is_told_at_the_third_miss_and_its_end_a_second_after_the_last() {
    let away = (0..2_000).map(|milli| (milli, true));
    let well = (2_000..4_000).map(|milli| (milli, false));
    let changes = changes(away.chain(well));
    assert_eq!(changes, [(2, Change::Away), (2_999, Change::Back)]);
}

#[test]
fn who_is_asked_rarely_is_away_at_the_second_miss() {
    assert_eq!(
        changes([(0, true), (60_000, true), (120_000, true), (180_000, false)]),
        [(60_000, Change::Away), (180_000, Change::Back)]
    );
}

#[test]
fn single_misses_are_no_change() {
    let came = (0..100_000).step_by(10);
    let came = came.map(|milli| (milli, milli % 2_000 == 0));
    assert_eq!(changes(came), []);
    // Nor where nobody asks for long in between.
    assert_eq!(changes([(0, true), (100, false), (9_000, true)]), []);
}
