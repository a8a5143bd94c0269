//! Bandwidths: `100KB/s`, `1.5 MiB/s`, `1GB per 5min`.

use tidegate::Quota;

use super::rate::{self, exact};
use super::size::{self, factor};
use super::token::{split_decimal, split_word};
use super::{GrammarError, RateText};

/// Reads a bandwidth: bytes over time, exactly. KB is 1000, KiB 1024.
pub(crate) fn parse_bandwidth(text: &str) -> Result<RateText, GrammarError> {
    let text = text.trim();
    let (number, rest) = split_decimal(text).ok_or_else(|| not_a_bandwidth(text))?;
    let (unit, rest) = split_word(rest.trim_start());
    let digits = text[..text.len() - rest.len()]
        .trim_end_matches(unit)
        .trim();
    if unit.is_empty() || unit == "per" {
        return Err(GrammarError::new(
            format!("`{text}` has no unit: so many of what?"),
            format!("write `{digits}B/s`, `{digits}KB/s` or `{digits}KiB/s`"),
        ));
    }
    let Some(factor) = factor(unit).filter(|_| unit.ends_with('B')) else {
        return Err(unknown_unit(text, digits, unit));
    };
    let rest = rest.trim_start();
    let time = match (rest.strip_prefix('/'), split_word(rest)) {
        (Some(time), _) | (None, ("per", time)) => time.trim(),
        (None, ("", "")) => {
            return Err(GrammarError::new(
                format!("a bandwidth needs a time: `{text}` of what?"),
                format!("write `{text}/s`"),
            ));
        }
        (None, _) => return Err(not_a_bandwidth(text)),
    };
    let too_many = || {
        let message = format!("`{text}` is more than {} bytes", Quota::MAX_PERMITS);
        GrammarError::new(message, "write a smaller number")
    };
    let number = number.scaled(factor).ok_or_else(too_many)?;
    exact(text, number, rate::period(text, time)?, too_many)
}

/// `10Mb/s` may be bits, and `10Mbit/s` are.
fn unknown_unit(text: &str, digits: &str, unit: &str) -> GrammarError {
    let lower = unit.to_ascii_lowercase();
    if unit.ends_with('b') || lower.starts_with("bit") || lower.ends_with("bit") {
        return GrammarError::new(
            format!("`{text}` is a bandwidth in bits, or looks like one"),
            "write it in bytes, with `B`: `10Mbit/s` are `1.25MB/s`",
        );
    }
    let help = match lower.as_str() {
        // nginx's `100k`.
        "k" | "m" | "g" => format!(
            "write `{digits}{}iB/s` (1024) or `{digits}{}B/s` (1000)",
            unit.to_ascii_uppercase(),
            unit.to_ascii_uppercase(),
        ),
        _ => format!("units are {}", size::UNIT_NAMES),
    };
    GrammarError::new(format!("`{unit}` is no unit of bytes"), help)
}

fn not_a_bandwidth(text: &str) -> GrammarError {
    if text.starts_with('-') {
        return GrammarError::new("a bandwidth cannot be negative", "write `100KB/s`");
    }
    GrammarError::new(
        format!("`{text}` is no bandwidth"),
        "write `100KB/s`, `1.5MiB/s` or `1GB per 5min`",
    )
}
