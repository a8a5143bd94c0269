//! Limits in the words of other systems: nginx's and Sentinel's numbers.

use std::time::Duration;

use tidegate::Algorithm;

use super::algorithm::Settings;
use super::rates::Numbers;
use crate::file::LimitFile;
use crate::grammar::RateText as Rate;
use crate::report::{Finding, Report};

/// Sentinel's warm-up period.
const DEFAULT_SENTINEL_WARM_UP: Duration = Duration::from_secs(10);

/// How many requests beyond nginx's rate are not delayed; `None` for none is.
pub(super) fn nginx_delay(file: &LimitFile, report: &Report<'_>) -> Option<u64> {
    match (file.nodelay.get(), file.delay.placed()) {
        (Some(true), Some((_, place))) => {
            let finding = Finding::error(place, "`delay` beside `nodelay: true`");
            report.push(finding.help("leave one of them out"));
            None
        }
        (Some(true), None) => None,
        (_, delay) => Some(delay.map_or(0, |(&delay, _)| delay)),
    }
}

/// `burst` includes the first request here, and not at nginx.
pub(super) fn nginx(
    settings: Settings,
    rate: Rate,
    burst: u64,
    numbers: Numbers,
    report: &Report<'_>,
) -> Option<Algorithm> {
    let per_minute = match rate.period.as_nanos() {
        1_000_000_000 => false,
        60_000_000_000 => true,
        _ => {
            let message = "nginx counts per second or per minute";
            let finding = Finding::error(numbers.place(), message);
            report.push(finding.help("write a whole number a second or a minute: `2/s`, `30/min`"));
            return None;
        }
    };
    let (requests, delay) = (rate.permits, settings.delay);
    let burst = burst.saturating_sub(1);
    Some(Algorithm::Nginx {
        requests,
        per_minute,
        burst,
        delay,
    })
}

/// The permits of a second, where the rate is a whole number of them.
pub(super) fn per_second(
    settings: Settings,
    rate: Rate,
    numbers: Numbers,
    report: &Report<'_>,
) -> Option<u64> {
    if rate.period == Duration::from_secs(1) {
        return Some(rate.permits);
    }
    let finding = Finding::error(
        numbers.place(),
        format!("`{}` counts by the second", settings.kind.as_str()),
    );
    report.push(finding.help("write a whole number a second: `10/s`"));
    None
}

/// The warm-up in whole seconds; Sentinel's default is 10.
pub(super) fn whole_seconds(
    settings: Settings,
    numbers: Numbers,
    report: &Report<'_>,
) -> Option<u32> {
    let warm_up = settings.warm_up.unwrap_or(DEFAULT_SENTINEL_WARM_UP);
    let seconds = u32::try_from(warm_up.as_secs()).ok();
    let whole = seconds.filter(|_| warm_up.subsec_nanos() == 0);
    if whole.is_none() {
        let message = format!("`{}` warms up in whole seconds", settings.kind.as_str());
        report.push(Finding::error(numbers.place(), message).help("write `warm_up: 10s`"));
    }
    whole
}
