//! Days, weeks, months and years of the calendar: UTC, Gregorian, without leap seconds.
//!
//! Dates of day numbers, and back: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms",
//! `civil_from_days` and `days_from_civil`. Years begin in March there, so that the leap day is
//! the last of a year.

use core::time::Duration;

const DAY: u64 = 86_400_000_000_000;
/// Days of 400 years, after which the calendar repeats itself.
const ERA: u64 = 146_097;
/// Days from 0000-03-01 to 1970-01-01.
const BEFORE_EPOCH: u64 = 719_468;

/// A unit of the calendar (UTC).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CalendarUnit {
    /// From midnight to midnight.
    Day,
    /// From Monday on, as ISO 8601 has it.
    Week,
    /// From the first on: 28 to 31 days.
    Month,
    /// From the first of January on: 365 or 366 days.
    Year,
}

impl CalendarUnit {
    /// The most that it lasts.
    pub const fn longest(self) -> Duration {
        let days = match self {
            Self::Day => 1,
            Self::Week => 7,
            Self::Month => 31,
            Self::Year => 366,
        };
        Duration::from_nanos(days * DAY)
    }

    /// Which one a time (Unix nanoseconds) is in, counted from that of 1970-01-01.
    pub(crate) const fn index_at(self, nanos: u64) -> u64 {
        let days = nanos / DAY;
        let (year, month) = year_and_month(days);
        match self {
            Self::Day => days,
            // 1970-01-01 was a Thursday.
            Self::Week => (days + 3) / 7,
            Self::Month => (year - 1970) * 12 + month - 1,
            Self::Year => year - 1970,
        }
    }

    /// When one begins; the epoch for those of 1970-01-01, and never later than 2^64 ns.
    pub(crate) const fn start_of(self, index: u64) -> u64 {
        let days = match self {
            Self::Day => index,
            Self::Week => index.saturating_mul(7).saturating_sub(3),
            Self::Month => first_of(1970 + index / 12, index % 12 + 1),
            Self::Year => first_of(1970 + index, 1),
        };
        days.saturating_mul(DAY)
    }
}

/// The year and the month (from 1) of a day, counted from the epoch.
const fn year_and_month(days: u64) -> (u64, u64) {
    let days = days + BEFORE_EPOCH;
    let (era, day_of_era) = (days / ERA, days % ERA);
    let leap_days = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let year = era * 400 + year_of_era;
    if from_march < 10 {
        (year, from_march + 3)
    } else {
        (year + 1, from_march - 9)
    }
}

/// The first day of a month, counted from the epoch.
const fn first_of(year: u64, month: u64) -> u64 {
    let (year, from_march) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let (era, year_of_era) = (year / 400, year % 400);
    let day_of_year = (153 * from_march + 2) / 5;
    let day_of_era = 365 * year_of_era + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * ERA + day_of_era - BEFORE_EPOCH
}

#[cfg(test)]
mod tests {
    use super::CalendarUnit::{Day, Month, Week, Year};
    use super::*;

    /// Days from 1970 to 2500, one by one, with the rule that people know.
    fn each_day() -> impl Iterator<Item = (u64, u64, u64, u64)> {
        let is_leap = |year: u64| {
            year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
        };
        let (mut day, mut date) = (0, (1970, 1, 0));
        core::iter::from_fn(move || {
            let (mut year, mut month, mut of_month) = date;
            of_month += 1;
            let length = match month {
                2 => 28 + u64::from(is_leap(year)),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            if of_month > length {
                (month, of_month) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
            date = (year, month, of_month);
            day += 1;
            (year < 2500).then_some((day - 1, year, month, of_month))
        })
    }

    #[test]
    fn each_day_is_in_its_week_month_and_year() {
        let (mut weeks, mut months) = (0, 0);
        for (day, year, month, of_month) in each_day() {
            if day % 7 == 4 {
                weeks += 1; // 1970-01-05 was a Monday
            }
            if of_month == 1 && day > 0 {
                months += 1;
            }
            let first = day * DAY;
            for nanos in [first, first + 1, first + DAY - 1] {
                assert_eq!(Day.index_at(nanos), day);
                assert_eq!(Week.index_at(nanos), weeks);
                assert_eq!(Month.index_at(nanos), months, "{year}-{month}-{of_month}");
                assert_eq!(Year.index_at(nanos), year - 1970);
            }
            assert_eq!(Day.start_of(day), first);
            if day % 7 == 4 {
                assert_eq!(Week.start_of(weeks), first);
            }
            if of_month == 1 {
                assert_eq!(Month.start_of(months), first, "{year}-{month}");
            }
            if (month, of_month) == (1, 1) {
                assert_eq!(Year.start_of(year - 1970), first);
            }
        }
        assert_eq!(Week.start_of(0), 0);
    }

    #[test]
    fn none_lasts_longer_than_its_longest() {
        for unit in [Day, Week, Month, Year] {
            let mut longest = 0;
            for index in 1..500 {
                longest = longest.max(unit.start_of(index + 1) - unit.start_of(index));
            }
            assert_eq!(u128::from(longest), unit.longest().as_nanos());
            assert_eq!(unit.start_of(1 << 40), u64::MAX);
        }
    }
}
