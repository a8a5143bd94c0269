//! Numbers and words, as all grammars here read them.

use tidegate::CalendarUnit;

use super::GrammarError;

/// An exact decimal: `digits / 10^places`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    pub(crate) digits: u128,
    pub(crate) places: u32,
}

impl Decimal {
    /// 10^places.
    pub(crate) fn scale(self) -> u128 {
        10_u128.pow(self.places)
    }

    /// `self * factor`, if that is a whole number that fits.
    pub(crate) fn times(self, factor: u128) -> Option<u128> {
        let product = self.digits.checked_mul(factor)?;
        product
            .is_multiple_of(self.scale())
            .then(|| product / self.scale())
    }
}

impl Decimal {
    /// `self * factor`, exactly; `None` where that has more digits than fit.
    pub(crate) fn scaled(self, factor: u128) -> Option<Self> {
        let digits = self.digits.checked_mul(factor)?;
        Some(Self { digits, ..self })
    }
}

/// Most digits of a number: enough for any that has a meaning here, and 10^19 times 10^18
/// still fits.
const MAX_DIGITS: usize = 19;

/// Splits a decimal number off the front of `text`: digits, perhaps with `_` between them,
/// perhaps with a point and more digits. `None` where there is none or it is too long.
pub(crate) fn split_decimal(text: &str) -> Option<(Decimal, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
        .unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let is_digits = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_digit())
            && part.ends_with(|c: char| c.is_ascii_digit())
            && !part.contains(['.'])
    };
    if !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let fraction = fraction.replace('_', "");
    let fraction = fraction.trim_end_matches('0');
    let digits = format!("{}{fraction}", whole.replace('_', ""));
    let digits = digits.trim_start_matches('0');
    if digits.len() > MAX_DIGITS || fraction.len() > MAX_DIGITS {
        return None;
    }
    let places = u32::try_from(fraction.len()).ok()?;
    let digits = if digits.is_empty() {
        0
    } else {
        digits.parse().ok()?
    };
    Some((Decimal { digits, places }, rest))
}

/// Splits letters off the front of `text`.
pub(crate) fn split_word(text: &str) -> (&str, &str) {
    text.split_at(
        text.find(|c: char| !c.is_alphabetic())
            .unwrap_or(text.len()),
    )
}

/// Units of time, in nanoseconds. `month` is 30 days, `year` 365.
const TIME_UNITS: &[(&[&str], u64)] = &[
    (&["ns"], 1),
    (&["us", "\u{b5}s", "\u{3bc}s"], 1_000),
    (&["ms"], 1_000_000),
    (&["s", "sec", "second", "seconds"], 1_000_000_000),
    (&["m", "min", "minute", "minutes"], 60_000_000_000),
    (&["h", "hour", "hours"], 3_600_000_000_000),
    (&["d", "day", "days"], 86_400_000_000_000),
    (&["week", "weeks"], 604_800_000_000_000),
    (&["month", "months"], 2_592_000_000_000_000),
    (&["year", "years"], 31_536_000_000_000_000),
];

/// The nanoseconds of a unit of time.
pub(crate) fn time_unit(word: &str) -> Result<u64, GrammarError> {
    let unit = TIME_UNITS.iter().find(|(names, _)| names.contains(&word));
    unit.map(|&(_, nanos)| nanos).ok_or_else(|| {
        let names = TIME_UNITS
            .iter()
            .flat_map(|(names, _)| names.iter().copied());
        let help = match crate::suggest::closest(word, names) {
            Some(name) => format!("did you mean `{name}`?"),
            None => "units are ns, us, ms, s, min, h, d, week, month and year".to_owned(),
        };
        GrammarError::new(format!("`{word}` is no unit of time"), help)
    })
}

/// What the calendar calls a unit of time, where it has a name for it.
pub(crate) fn calendar_unit(word: &str) -> Option<CalendarUnit> {
    match word {
        "d" | "day" | "days" => Some(CalendarUnit::Day),
        "week" | "weeks" => Some(CalendarUnit::Week),
        "month" | "months" => Some(CalendarUnit::Month),
        "year" | "years" => Some(CalendarUnit::Year),
        _ => None,
    }
}
