//! A list of who came when, and a calendar that is leafed through day by day.

use tidegate::CalendarUnit;

use super::admissions::{Admissions, Window};

const DAY: i128 = 86_400 * 1_000_000_000;

/// At most so many in each day, week from Monday, month or year.
#[derive(Clone, Debug)]
pub struct CalendarWindowOracle {
    permits: i128,
    unit: CalendarUnit,
    admissions: Admissions,
}

impl CalendarWindowOracle {
    /// Nobody has come yet.
    pub fn new(permits: u64, unit: CalendarUnit) -> Self {
        Self {
            permits: i128::from(permits),
            unit,
            admissions: Admissions::default(),
        }
    }

    /// The first day of the unit that a time is in, and the first of the next.
    fn page(&self, at: i128) -> (i128, i128) {
        let day = at.div_euclid(DAY);
        match self.unit {
            CalendarUnit::Day => (day, day + 1),
            CalendarUnit::Week => {
                let monday = 4; // of January 1970
                let first = monday + (day - monday).div_euclid(7) * 7;
                (first, first + 7)
            }
            CalendarUnit::Month => {
                let (first, _, is_leap) = year_of(day);
                turn_to(day, first, month_lengths(is_leap))
            }
            CalendarUnit::Year => {
                let (first, next, _) = year_of(day);
                (first, next)
            }
        }
    }
}

fn month_lengths(is_leap: bool) -> [i128; 12] {
    let february = if is_leap { 29 } else { 28 };
    [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
}

/// The first day of a day's year, that of the next, and whether it has 366.
fn year_of(day: i128) -> (i128, i128, bool) {
    let is_leap = |year: i128| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let lengths = (1970..).map(|year| 365 + i128::from(is_leap(year)));
    let (first, next) = turn_to(day, 0, lengths);
    (first, next, next - first == 366)
}

/// Turns pages of these lengths, from the day `first` on, to that with `day` on it.
fn turn_to(day: i128, first: i128, lengths: impl IntoIterator<Item = i128>) -> (i128, i128) {
    let mut first = first;
    for length in lengths {
        if day < first + length {
            return (first, first + length);
        }
        first += length;
    }
    unreachable!("a calendar has more pages")
}

impl Window for CalendarWindowOracle {
    fn permits(&self) -> i128 {
        self.permits
    }

    fn admissions(&self) -> &Admissions {
        &self.admissions
    }

    fn admissions_mut(&mut self) -> &mut Admissions {
        &mut self.admissions
    }

    fn leaves(&self, at: i128) -> Option<i128> {
        Some(self.page(at).1 * DAY)
    }

    fn counted(&self, now: u64) -> i128 {
        let (first, next) = self.page(self.admissions.now(now));
        let inside = first * DAY..next * DAY;
        let list = self.admissions.list.iter();
        list.filter(|one| inside.contains(&one.at))
            .map(|one| one.permits)
            .sum()
    }
}
