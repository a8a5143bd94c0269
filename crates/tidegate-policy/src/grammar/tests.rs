use std::time::Duration;

use proptest::prelude::*;

use super::*;

const NS: u64 = 1_000_000_000;

fn rate(text: &str) -> (u64, u64) {
    let rate = parse_rate(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    (rate.permits, u64::try_from(rate.period.as_nanos()).unwrap())
}

#[test]
fn rates() {
    for (text, permits, nanos) in [
        ("100/min", 100, 60 * NS),
        ("10/s", 10, NS),
        ("3 per 5s", 3, 5 * NS),
        ("3/5s", 3, 5 * NS),
        ("1/month", 1, 30 * 86_400 * NS),
        ("1/week", 1, 7 * 86_400 * NS),
        ("2/year", 2, 365 * 86_400 * NS),
        ("100 / minute", 100, 60 * NS),
        ("7 per day", 7, 86_400 * NS),
        ("7 per 2 hours", 7, 7_200 * NS),
        ("5/1m30s", 5, 90 * NS),
        ("1_000/s", 1_000, NS),
        ("0/s", 0, NS),
        ("10000000/s", 10_000_000, NS),
        ("1/us", 1, 1_000),
        (" 1/ms ", 1, 1_000_000),
    ] {
        assert_eq!(rate(text), (permits, nanos), "{text}");
    }
}

#[test]
fn decimals_are_exact() {
    assert_eq!(rate("0.5/s"), (1, 2 * NS));
    assert_eq!(rate("2.5/s"), (5, 2 * NS));
    assert_eq!(rate("0.1/s"), (1, 10 * NS));
    assert_eq!(rate("1.0/s"), (1, NS));
    assert_eq!(rate("1.50/min"), (3, 120 * NS));
    assert_eq!(rate("0.001/s"), (1, 1_000 * NS));
    assert_eq!(rate("0.0/s"), (0, NS));
    assert_eq!(rate("1 per 1.5s"), (1, NS + NS / 2));
}

/// A text, what is wrong with it, and what to write instead.
const NO_RATES: &[(&str, &str, &str)] = &[
    (
        "100",
        "a rate needs a time: `100` of what?",
        "write `100/s`, `100/min` or `100 per 5s`",
    ),
    ("", "a rate is missing here", "write `100/min` or `10/s`"),
    (
        "100/",
        "`100/` lacks its time",
        "write `100/s`, `100/min` or `100 per 5s`",
    ),
    (
        "3 per",
        "`3 per` lacks its time",
        "write `3/s`, `3/min` or `3 per 5s`",
    ),
    ("5/mins", "`mins` is no unit of time", "did you mean `min`?"),
    (
        "5/fortnight",
        "`fortnight` is no unit of time",
        "units are ns, us, ms, s, min, h, d, week, month and year",
    ),
    (
        "5/5",
        "a duration needs a unit: `5` of what?",
        "write `5s` or `5ms`",
    ),
    (
        "5/0s",
        "`5/0s` is a rate over no time",
        "write a time above 0, such as `100/s`",
    ),
    (
        "-5/s",
        "a rate cannot be negative",
        "write `0/s` to refuse everything",
    ),
    (
        "1,000/s",
        "`1,000/s` is no rate",
        "write the number without `,`: `1000/s`",
    ),
    (
        "5k/s",
        "`5k/s` is no rate",
        "write the number in full: `100/min`, `10/s` or `3 per 5s`",
    ),
    (
        "100KB/s",
        "`100KB/s` is a bandwidth, not a rate of requests",
        "write it as `bandwidth: 100KB/s`",
    ),
    (
        "fast",
        "`fast` is no rate",
        "write `100/min`, `10/s` or `3 per 5s`",
    ),
    (
        "1e13/s",
        "`1e13/s` is no rate",
        "write the number in full: `100/min`, `10/s` or `3 per 5s`",
    ),
    (
        "9999999999999/s",
        "`9999999999999/s` is more than 1099511627776 permits",
        "write a smaller number",
    ),
    (
        "1/500d",
        "`1/500d` is a rate over more than 400 days",
        "write a shorter time, or fewer digits behind the point",
    ),
    (
        "0.0000000001/d",
        "`0.0000000001/d` is a rate over more than 400 days",
        "write a shorter time, or fewer digits behind the point",
    ),
];

#[test]
fn what_is_no_rate_says_what_to_write() {
    for &(text, message, help) in NO_RATES {
        let error = parse_rate(text).unwrap_err();
        assert_eq!(
            (error.message.as_str(), error.help.as_str()),
            (message, help),
            "{text}"
        );
    }
}

#[test]
fn durations() {
    for (text, nanos) in [
        ("200ms", NS / 5),
        ("5s", 5 * NS),
        ("1m", 60 * NS),
        ("1h", 3_600 * NS),
        ("2d", 172_800 * NS),
        ("1m30s", 90 * NS),
        ("1m 30s", 90 * NS),
        ("1.5h", 5_400 * NS),
        ("0s", 0),
        ("3 us", 3_000),
        ("3\u{b5}s", 3_000),
        ("7ns", 7),
        ("0.000000001s", 1),
    ] {
        assert_eq!(
            parse_duration(text),
            Ok(Duration::from_nanos(nanos)),
            "{text}"
        );
    }
    for (text, message, help) in [
        (
            "30",
            "a duration needs a unit: `30` of what?",
            "write `30s` or `30ms`",
        ),
        ("", "a duration is missing here", "write `5s` or `200ms`"),
        (
            "5 parsecs",
            "`parsecs` is no unit of time",
            "units are ns, us, ms, s, min, h, d, week, month and year",
        ),
        ("5secs", "`secs` is no unit of time", "did you mean `sec`?"),
        (
            "1m30",
            "`1m30` is no duration",
            "write numbers with units, such as `5s`, `200ms` or `1m30s`",
        ),
        (
            "-5s",
            "`-5s` is no duration",
            "write a number and a unit, such as `5s`, `200ms` or `1m30s`",
        ),
        (
            "0.5ns",
            "`0.5ns` is no whole number of nanoseconds",
            "write fewer digits behind the point",
        ),
        (
            "9999999d",
            "`9999999d` is longer than 500 years",
            "write a shorter time",
        ),
    ] {
        let error = parse_duration(text).unwrap_err();
        assert_eq!(
            (error.message.as_str(), error.help.as_str()),
            (message, help),
            "{text}"
        );
    }
}

#[test]
fn sizes() {
    for (text, bytes) in [
        ("32768", 32_768),
        ("32KiB", 32_768),
        ("32 kib", 32_768),
        ("64KB", 64_000),
        ("1.5KiB", 1_536),
        ("1MiB", 1 << 20),
        ("10B", 10),
    ] {
        assert_eq!(parse_size(text), Ok(bytes), "{text}");
    }
    for text in ["", "KB", "5TB", "5 apples", "1.5", "-1", "1KB1KB"] {
        assert!(parse_size(text).is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn no_text_is_too_strange(text in "[0-9a-zµ./, _-]{0,24}|\\PC{0,12}") {
        let _ = (parse_rate(&text), parse_duration(&text), parse_size(&text));
    }

    #[test]
    fn a_rate_is_what_its_text_says(whole in 0_u64..1_000_000, thousandths in 0_u64..1_000) {
        let text = format!("{whole}.{thousandths:03}/s");
        let (permits, nanos) = rate(&text);
        // permits / nanos = (whole + thousandths / 1000) / 1 s, without rounding.
        let written = u128::from(whole * 1_000 + thousandths);
        prop_assert_eq!(u128::from(permits) * 1_000 * u128::from(NS), written * u128::from(nanos));
    }
}

#[test]
fn a_bandwidth_is_exact() {
    let of = |text| {
        let rate = parse_bandwidth(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        (rate.permits, rate.period.as_nanos())
    };
    let second = 1_000_000_000;
    for (text, bytes, nanos) in [
        ("100KB/s", 100_000, second),
        ("100 KB / s", 100_000, second),
        ("100KiB/s", 102_400, second),
        ("1.5MiB per s", 1_572_864, second),
        ("0.5B/s", 1, 2 * second),
        ("0.0015KB/s", 3, 2 * second),
        ("10GB/s", 10_000_000_000, second),
        ("1GiB/min", 1 << 30, 60 * second),
        ("1_000 B per 5s", 1_000, 5 * second),
        ("1kB/h", 1_000, 3_600 * second),
        ("0B/s", 0, second),
    ] {
        assert_eq!(of(text), (bytes, nanos), "{text}");
    }
}
