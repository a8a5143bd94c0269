//! Numbers, times and addresses, written without `fmt` where each line has them.

use std::io::Write;
use std::net::IpAddr;
use std::time::Duration;

use http::Version;
use tidegate::Timestamp;

use super::MAX_VALUE;

/// Appends `number`, with zeros in front up to `width` digits (at most 20).
pub(super) fn push_number(out: &mut Vec<u8>, mut number: u64, width: usize) {
    let mut digits = [b'0'; 20];
    let mut at = digits.len();
    while number > 0 {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    let at = at.min(digits.len() - width.clamp(1, 20));
    out.extend_from_slice(&digits[at..]);
}

/// Appends seconds with as many digits behind the point as `unit` (of a second) has zeros.
pub(super) fn push_seconds(out: &mut Vec<u8>, duration: Duration, digits: u32) {
    let unit = 10_u128.pow(digits);
    let total = duration.as_nanos() * unit / 10_u128.pow(9);
    push_number(out, u64::try_from(total / unit).unwrap_or(u64::MAX), 1);
    out.push(b'.');
    push_number(out, (total % unit) as u64, digits as usize);
}

/// Appends an address as text.
pub(super) fn push_address(out: &mut Vec<u8>, address: IpAddr) {
    if let IpAddr::V4(address) = address {
        for (index, octet) in address.octets().into_iter().enumerate() {
            if index > 0 {
                out.push(b'.');
            }
            push_number(out, u64::from(octet), 1);
        }
    } else {
        let _ = write!(out, "{address}"); // a Vec takes all of it
    }
}

/// A time in UTC.
pub(super) struct Moment {
    pub(super) year: u64,
    /// From 1.
    pub(super) month: usize,
    pub(super) day: u64,
    pub(super) hour: u64,
    pub(super) minute: u64,
    pub(super) second: u64,
    pub(super) milli: u64,
}

impl Moment {
    /// By Howard Hinnant's `civil_from_days`: years begin in March, so that the leap day is the
    /// last of a year.
    pub(super) fn of(at: Timestamp) -> Self {
        const DAY_MS: u64 = 86_400_000;
        let millis = at.as_nanos() / 1_000_000;
        let (days, in_day) = (millis / DAY_MS, millis % DAY_MS);
        let days = days + 719_468;
        let (era, day) = (days / 146_097, days % 146_097);
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        Self {
            year: era * 400 + year + u64::from(month <= 2),
            month: month as usize,
            day,
            hour: in_day / 3_600_000,
            minute: in_day / 60_000 % 60,
            second: in_day / 1_000 % 60,
            milli: in_day % 1_000,
        }
    }
}

/// What a request line says.
pub(super) fn version(version: Version) -> &'static str {
    match version {
        Version::HTTP_09 => "HTTP/0.9",
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2.0",
        Version::HTTP_3 => "HTTP/3.0",
        _ => "HTTP/1.1",
    }
}

/// As much of `value` as is logged.
pub(super) fn cut(value: &[u8]) -> &[u8] {
    &value[..value.len().min(MAX_VALUE)]
}
