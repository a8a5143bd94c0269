//! Rates: `100/min`, `3 per 5s`, `0.5/s`.

use std::time::Duration;

use tidegate::{CalendarUnit, Quota};

use super::token::{Decimal, calendar_unit, split_decimal, split_word, time_unit};
use super::{GrammarError, parse_duration};

/// An exact rate: `permits` each `period`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RateText {
    pub(crate) permits: u64,
    pub(crate) period: Duration,
    /// The period by its name in the calendar: of `1/month`, not of `1 per 30d`.
    pub(crate) unit: Option<CalendarUnit>,
}

/// Reads a rate. A number with a decimal point is made whole over a longer period (`0.5/s` is
/// 1 per 2 s), so that nothing is rounded.
pub(crate) fn parse_rate(text: &str) -> Result<RateText, GrammarError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(GrammarError::new(
            "a rate is missing here",
            "write `100/min` or `10/s`",
        ));
    }
    let Some((number, rest)) = split_decimal(text) else {
        return Err(not_a_rate(text));
    };
    let rest = rest.trim_start();
    if rest.is_empty() {
        return Err(GrammarError::new(
            format!("a rate needs a time: `{text}` of what?"),
            format!("write `{text}/s`, `{text}/min` or `{text} per 5s`"),
        ));
    }
    let time = match rest.strip_prefix('/') {
        Some(time) => time,
        None => match split_word(rest) {
            ("per", time) => time,
            _ => return Err(not_a_rate(text)),
        },
    };
    let too_many = || {
        let message = format!("`{text}` is more than {} permits", Quota::MAX_PERMITS);
        GrammarError::new(message, "write a smaller number")
    };
    let rate = exact(text, number, period(text, time.trim())?, too_many)?;
    // 0.5/month is a rate over two of them.
    let is_one = number.places == 0;
    let unit = calendar_unit(time.trim()).filter(|_| is_one);
    Ok(RateText { unit, ..rate })
}

/// `min` is `1min`; anything else is a duration.
pub(super) fn period(text: &str, time: &str) -> Result<Duration, GrammarError> {
    if time.is_empty() {
        let number = text
            .trim_end_matches('/')
            .trim_end_matches("per")
            .trim_end();
        return Err(GrammarError::new(
            format!("`{text}` lacks its time"),
            format!("write `{number}/s`, `{number}/min` or `{number} per 5s`"),
        ));
    }
    if let (word, "") = split_word(time) {
        return time_unit(word).map(Duration::from_nanos);
    }
    let period = parse_duration(time)?;
    if period.is_zero() {
        return Err(GrammarError::new(
            format!("`{text}` is a rate over no time"),
            "write a time above 0, such as `100/s`",
        ));
    }
    Ok(period)
}

/// `number` each `period`, over a longer one where it is no whole number.
pub(super) fn exact(
    text: &str,
    number: Decimal,
    period: Duration,
    too_many: impl Fn() -> GrammarError,
) -> Result<RateText, GrammarError> {
    // Only as much longer as the number needs: 2.5/s is 5 per 2 s, not 25 per 10 s.
    let shared = gcd(number.digits, number.scale());
    let permits = u64::try_from(number.digits / shared).map_err(|_| too_many())?;
    if permits > Quota::MAX_PERMITS {
        return Err(too_many());
    }
    let nanos = period.as_nanos().saturating_mul(number.scale() / shared);
    let longest = Quota::MAX_PERIOD;
    match u64::try_from(nanos).map(Duration::from_nanos) {
        Ok(period) if period <= longest => Ok(RateText {
            permits,
            period,
            unit: None,
        }),
        _ => Err(GrammarError::new(
            format!(
                "`{text}` is a rate over more than {} days",
                longest.as_secs() / 86_400
            ),
            "write a shorter time, or fewer digits behind the point",
        )),
    }
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

/// Says what is usual among the texts that are no rate.
fn not_a_rate(text: &str) -> GrammarError {
    const EXAMPLES: &str = "write `100/min`, `10/s` or `3 per 5s`";
    let message = format!("`{text}` is no rate");
    if text.starts_with('-') {
        return GrammarError::new(
            "a rate cannot be negative",
            "write `0/s` to refuse everything",
        );
    }
    let first = text.split(['/', ' ']).next().unwrap_or_default();
    let digits: String = first.chars().filter(char::is_ascii_digit).collect();
    if first.contains(',') && !digits.is_empty() {
        let rest = &text[first.len()..];
        return GrammarError::new(
            message,
            format!("write the number without `,`: `{digits}{rest}`"),
        );
    }
    if first.starts_with(|c: char| c.is_ascii_digit()) {
        let is_bytes = |unit: &str| first.to_ascii_lowercase().ends_with(unit);
        if is_bytes("b") || is_bytes("bit") {
            return GrammarError::new(
                format!("`{text}` is a bandwidth, not a rate of requests"),
                "write it as `bandwidth: 100KB/s`",
            );
        }
        return GrammarError::new(
            message,
            format!("write the number in full: {}", &EXAMPLES[6..]),
        );
    }
    GrammarError::new(message, EXAMPLES)
}
