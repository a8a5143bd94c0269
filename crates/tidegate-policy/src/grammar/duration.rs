//! Durations: `200ms`, `5s`, `1m30s`, `1.5h`.

use std::time::Duration;

use super::GrammarError;
use super::token::{split_decimal, split_word, time_unit};

/// Reads a duration; exact, in nanoseconds.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, GrammarError> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(GrammarError::new(
            "a duration is missing here",
            "write `5s` or `200ms`",
        ));
    }
    let mut total = 0_u128;
    while !rest.is_empty() {
        let Some((number, behind)) = split_decimal(rest) else {
            return Err(GrammarError::new(
                format!("`{text}` is no duration"),
                "write a number and a unit, such as `5s`, `200ms` or `1m30s`",
            ));
        };
        let (unit, behind) = split_word(behind.trim_start());
        if unit.is_empty() {
            return Err(unit_missing(text, behind));
        }
        let nanos = number.times(u128::from(time_unit(unit)?)).ok_or_else(|| {
            let message = format!("`{text}` is no whole number of nanoseconds");
            GrammarError::new(message, "write fewer digits behind the point")
        })?;
        total = total.saturating_add(nanos);
        rest = behind.trim_start();
    }
    let nanos = u64::try_from(total).map_err(|_| {
        GrammarError::new(
            format!("`{text}` is longer than 500 years"),
            "write a shorter time",
        )
    })?;
    Ok(Duration::from_nanos(nanos))
}

fn unit_missing(text: &str, behind: &str) -> GrammarError {
    if behind.is_empty() && split_decimal(text).is_some_and(|(_, rest)| rest.is_empty()) {
        return GrammarError::new(
            format!("a duration needs a unit: `{text}` of what?"),
            format!("write `{text}s` or `{text}ms`"),
        );
    }
    GrammarError::new(
        format!("`{text}` is no duration"),
        "write numbers with units, such as `5s`, `200ms` or `1m30s`",
    )
}
