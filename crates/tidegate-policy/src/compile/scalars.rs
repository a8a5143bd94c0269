//! Numbers within bounds, times, sizes and addresses.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::file::{DurationText, Field, SizePerSecondText, SizeText};
use crate::grammar::{GrammarError, parse_duration, parse_size};
use crate::quote::quote;
use crate::report::{Finding, Report};
use crate::source::Span;

/// Longest timeout of the gateway.
const MAX_TIMEOUT: Duration = Duration::from_hours(24);

/// A whole number of a range.
pub(super) fn number(
    field: &Field<u64>,
    name: &str,
    range: RangeInclusive<u64>,
    report: &Report<'_>,
) -> Option<u64> {
    let (&number, place) = field.placed()?;
    within(number, place, name, &range, report)
}

fn within(
    number: u64,
    place: Span,
    name: &str,
    range: &RangeInclusive<u64>,
    report: &Report<'_>,
) -> Option<u64> {
    if range.contains(&number) {
        return Some(number);
    }
    let message = format!("`{name}` is from {} to {}", range.start(), range.end());
    let nearest = number.clamp(*range.start(), *range.end());
    report.push(Finding::error(place, message).help(format!("write `{name}: {nearest}`")));
    None
}

/// A size in bytes of a range.
pub(super) fn size(
    field: &Field<SizeText>,
    name: &str,
    range: &RangeInclusive<u64>,
    report: &Report<'_>,
) -> Option<u64> {
    let (text, place) = field.placed()?;
    let bytes = parsed(parse_size(text.as_str()), place, report)?;
    within(bytes, place, name, range, report)
}

/// A size in bytes per second of a range; no other time than a second can be said.
pub(super) fn size_per_second(
    field: &Field<SizePerSecondText>,
    name: &str,
    range: &RangeInclusive<u64>,
    report: &Report<'_>,
) -> Option<u64> {
    let (text, place) = field.placed()?;
    let text = text.as_str().trim();
    let size = text.strip_suffix('s').map(str::trim_end);
    let size = size.and_then(|text| text.strip_suffix('/'));
    let bytes = parse_size(size.unwrap_or(text)).map_err(|_| GrammarError {
        message: format!("{} is no number of bytes per second", quote(text)),
        help: format!("write `{name}: 240B/s` or `1KiB/s`"),
    });
    within(parsed(bytes, place, report)?, place, name, range, report)
}

/// Any time.
pub(super) fn duration(field: &Field<DurationText>, report: &Report<'_>) -> Option<Duration> {
    let (text, place) = field.placed()?;
    parsed(parse_duration(text.as_str()), place, report)
}

/// A time that somebody waits for something; 0 would be never.
pub(super) fn timeout(
    field: &Field<DurationText>,
    name: &str,
    report: &Report<'_>,
) -> Option<Duration> {
    let time = duration(field, report)?;
    if !time.is_zero() && time <= MAX_TIMEOUT {
        return Some(time);
    }
    let message = format!("`{name}` is above 0 and at most a day");
    let help = if time.is_zero() {
        format!("write `{name}: 1ms`")
    } else {
        format!("write `{name}: 1d`")
    };
    report.push(Finding::error(field.place()?, message).help(help));
    None
}

/// What a grammar gave, its error reported.
pub(super) fn parsed<T>(
    result: Result<T, GrammarError>,
    place: Span,
    report: &Report<'_>,
) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(GrammarError { message, help }) => {
            report.push(Finding::error(place, message).help(help));
            None
        }
    }
}

/// An address to listen on.
pub(super) fn listen(text: &str, place: Span, report: &Report<'_>) -> Option<SocketAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let port = text
        .rsplit(':')
        .next()
        .filter(|port| port.parse::<u16>().is_ok());
    let port = port.unwrap_or("8080");
    let message = format!("{} is no address to listen on", quote(text));
    let help = match text.strip_suffix(port) {
        Some("*:" | ":" | "0:") => {
            format!(
                "write `0.0.0.0:{port}` for all interfaces, `127.0.0.1:{port}` for this machine"
            )
        }
        _ => format!("write an IP address and a port, such as `127.0.0.1:{port}`"),
    };
    report.push(Finding::error(place, message).help(help));
    None
}
