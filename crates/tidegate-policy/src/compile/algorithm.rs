//! How a limit counts: the numbers of a file and the algorithm they are for.

use std::num::NonZeroU32;
use std::time::Duration;

use tidegate::meter::{SlidingWindow, SmoothBursty, SmoothWarmUp};
use tidegate::{Algorithm, Limit, Quota, QuotaError};

use super::dialects::{nginx, nginx_delay, per_second, whole_seconds};
use super::rates::Numbers;
use super::scalars::{duration, number};
use crate::file::{AlgorithmName, AlignName, Field, LimitFile, RefillName};
use crate::grammar::RateText as Rate;
use crate::report::{Finding, Report};
use crate::source::Span;

/// What a sliding log remembers of each permit, in bytes.
const LOG_BYTES_PER_PERMIT: u64 = 16;
/// Guava's cold factor.
const DEFAULT_COLD_FACTOR: u32 = 3;
/// Parts of a sliding window.
const DEFAULT_PARTS: NonZeroU32 = NonZeroU32::new(10).expect("10 is not 0");

/// What a limit says about counting besides its numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) kind: AlgorithmName,
    pub(super) warm_up: Option<Duration>,
    cold_factor: u32,
    max_debt: Option<Duration>,
    parts: NonZeroU32,
    refill: RefillName,
    align: AlignName,
    /// Of nginx: how many are not delayed; `None` for none is.
    pub(super) delay: Option<u64>,
}

/// Reads the settings of a limit; `None` where something about them is wrong.
pub(super) fn settings(file: &LimitFile, report: &Report<'_>) -> Option<Settings> {
    let errors = report.errors();
    let kind = match (file.algorithm.placed(), file.concurrency.is_written()) {
        (Some((_, place)), true) => {
            let message = "a limit of `concurrency` has no algorithm: it counts what is inside";
            report.push(Finding::error(place, message).help("leave `algorithm` out"));
            return None;
        }
        (Some((&kind, _)), false) => kind,
        (None, _) => AlgorithmName::default(),
    };
    refuse_strangers(kind, file, report);
    let warm_up = duration(&file.warm_up, report);
    if kind == AlgorithmName::SmoothWarmUp && !file.warm_up.is_written() {
        let place = file.algorithm.place().unwrap_or_default();
        let finding = Finding::error(
            place,
            "`smooth_warm_up` needs the time that warming up takes",
        );
        report.push(finding.help("add `warm_up: 10s`"));
    }
    let cold_factor = number(
        &file.cold_factor,
        "cold_factor",
        2..=u64::from(SmoothWarmUp::MAX_COLD_FACTOR),
        report,
    );
    let settings = Settings {
        kind,
        warm_up,
        cold_factor: cold_factor
            .and_then(|factor| u32::try_from(factor).ok())
            .unwrap_or(DEFAULT_COLD_FACTOR),
        max_debt: duration(&file.max_debt, report),
        parts: parts(&file.parts, report),
        refill: file.refill.get().copied().unwrap_or_default(),
        align: file.align.get().copied().unwrap_or_default(),
        delay: nginx_delay(file, report),
    };
    (report.errors() == errors && !file.algorithm.is_wrong()).then_some(settings)
}

/// Settings that belong to another algorithm.
fn refuse_strangers(kind: AlgorithmName, file: &LimitFile, report: &Report<'_>) {
    use AlgorithmName::{
        FixedWindow, Nginx, SentinelWarmUp, SentinelWarmUpQueue, SlidingWindow, SmoothBursty,
        SmoothWarmUp, TokenBucket,
    };
    let of_warm_up: &[_] = &[SmoothWarmUp, SentinelWarmUp, SentinelWarmUpQueue];
    let settings: [(&str, Option<Span>, &[AlgorithmName]); 9] = [
        ("warm_up", file.warm_up.place(), of_warm_up),
        ("cold_factor", file.cold_factor.place(), of_warm_up),
        (
            "max_debt",
            file.max_debt.place(),
            &[SmoothBursty, SmoothWarmUp],
        ),
        ("parts", file.parts.place(), &[SlidingWindow]),
        ("refill", file.refill.place(), &[TokenBucket]),
        ("initial", file.initial.place(), &[TokenBucket]),
        ("align", file.align.place(), &[FixedWindow]),
        ("delay", file.delay.place(), &[Nginx]),
        ("nodelay", file.nodelay.place(), &[Nginx]),
    ];
    for (name, place, owners) in settings {
        if let Some(place) = place.filter(|_| !owners.contains(&kind) && !file.algorithm.is_wrong())
        {
            let owners: Vec<&str> = owners.iter().map(|owner| owner.as_str()).collect();
            let message = format!("`{name}` is for `algorithm: {}`", owners.join(" or "));
            report.push(Finding::error(place, message).help(format!("leave `{name}` out")));
        }
    }
}

fn parts(field: &Field<u64>, report: &Report<'_>) -> NonZeroU32 {
    let most = u64::from(SlidingWindow::MAX_PARTS);
    number(field, "parts", 1..=most, report)
        .and_then(|parts| u32::try_from(parts).ok())
        .and_then(NonZeroU32::new)
        .unwrap_or(DEFAULT_PARTS)
}

/// The limit that settings and numbers make; `None`, and reported, where they make none.
pub(super) fn limit(
    name: &str,
    settings: Settings,
    numbers: Numbers,
    report: &Report<'_>,
) -> Option<Limit> {
    let algorithm = if let Some((max, _)) = numbers.concurrency {
        Algorithm::Concurrency { max }
    } else {
        let (rate, _) = numbers.rate?;
        of_rate(settings, rate, numbers, report)?
    };
    match Limit::new(name, algorithm) {
        Ok(limit) => Some(limit),
        Err(error) => {
            report.push(refusal(&error, numbers));
            None
        }
    }
}

fn of_rate(
    settings: Settings,
    rate: Rate,
    numbers: Numbers,
    report: &Report<'_>,
) -> Option<Algorithm> {
    let Rate {
        permits,
        period: window,
        ..
    } = rate;
    let burst = burst(settings.kind, permits, numbers, report)?;
    let quota = Quota::new(permits, window).burst(burst);
    Some(match settings.kind {
        AlgorithmName::TokenBucket => {
            let quota = numbers
                .initial
                .map_or(quota, |(initial, _)| quota.initial(initial));
            match settings.refill {
                RefillName::Greedy => Algorithm::TokenBucket(quota),
                RefillName::Interval => Algorithm::IntervalBucket {
                    quota,
                    aligned: false,
                },
                RefillName::Aligned => Algorithm::IntervalBucket {
                    quota,
                    aligned: true,
                },
            }
        }
        AlgorithmName::FixedWindow => fixed_window(settings.align, rate, numbers, report)?,
        AlgorithmName::SlidingWindow => {
            let parts = settings.parts;
            Algorithm::SlidingWindow {
                permits,
                window,
                parts,
            }
        }
        AlgorithmName::SlidingCounter => Algorithm::SlidingCounter { permits, window },
        AlgorithmName::SlidingLog => Algorithm::SlidingLog { permits, window },
        AlgorithmName::SentinelQueue => Algorithm::TokenBucket(quota.burst(u64::from(permits > 0))),
        AlgorithmName::SentinelWarmUp => Algorithm::SentinelWarmUp {
            count: per_second(settings, rate, numbers, report)?,
            warm_up_seconds: whole_seconds(settings, numbers, report)?,
            cold_factor: settings.cold_factor,
        },
        AlgorithmName::SentinelWarmUpQueue => Algorithm::SentinelWarmUpQueue {
            count: per_second(settings, rate, numbers, report)?,
            warm_up_seconds: whole_seconds(settings, numbers, report)?,
            cold_factor: settings.cold_factor,
        },
        AlgorithmName::Nginx => nginx(settings, rate, burst, numbers, report)?,
        AlgorithmName::SmoothBursty => {
            let default = || SmoothBursty::default_max_debt(quota);
            let max_debt = settings.max_debt.unwrap_or_else(default);
            Algorithm::SmoothBursty { quota, max_debt }
        }
        AlgorithmName::SmoothWarmUp => {
            let (warm_up, cold_factor) = (settings.warm_up?, settings.cold_factor);
            let default = || SmoothWarmUp::default_max_debt(quota, warm_up, cold_factor);
            Algorithm::SmoothWarmUp {
                quota,
                warm_up,
                cold_factor,
                max_debt: settings.max_debt.unwrap_or_else(default),
            }
        }
    })
}

fn fixed_window(
    align: AlignName,
    rate: Rate,
    numbers: Numbers,
    report: &Report<'_>,
) -> Option<Algorithm> {
    let (permits, window) = (rate.permits, rate.period);
    match (align, rate.unit) {
        (AlignName::Epoch, _) => Some(Algorithm::FixedWindow { permits, window }),
        (AlignName::First, _) => Some(Algorithm::WindowFromFirst { permits, window }),
        (AlignName::Calendar, Some(unit)) => Some(Algorithm::CalendarWindow { permits, unit }),
        (AlignName::Calendar, None) => {
            let message = "`align: calendar` is for a whole number a day, week, month or year";
            let finding = Finding::error(numbers.place(), message);
            report.push(finding.help(
                "write `100/day` or `1/month`; minutes and hours are aligned to the clock without",
            ));
            None
        }
    }
}

/// The burst that is written, or the one that goes without saying.
fn burst(kind: AlgorithmName, permits: u64, numbers: Numbers, report: &Report<'_>) -> Option<u64> {
    let has_burst = matches!(
        kind,
        AlgorithmName::TokenBucket | AlgorithmName::SmoothBursty | AlgorithmName::Nginx
    );
    if let Some((_, place)) = numbers
        .burst
        .filter(|_| !has_burst && !numbers.burst_is_inherited)
    {
        let message = format!("`{}` has no burst", kind.as_str());
        report.push(Finding::error(place, message).help(match kind {
            AlgorithmName::SmoothWarmUp => {
                "leave `burst` out: what is saved follows from `warm_up`"
            }
            AlgorithmName::SentinelQueue | AlgorithmName::SentinelWarmUpQueue => {
                "leave `burst` out: requests leave one at a time"
            }
            _ => "leave `burst` out: the permits of a window may come at once",
        }));
        return None;
    }
    match numbers.burst {
        // Whatever the limit saves up, nothing is saved up at a rate of 0.
        Some(_) if numbers.burst_is_inherited && permits == 0 => Some(0),
        Some((burst, place)) => {
            check_burst(burst, permits, place, numbers, report)?;
            Some(burst)
        }
        // nginx's own default: nothing beyond the rate.
        None if kind == AlgorithmName::Nginx => Some(permits.min(1)),
        None => Some(permits),
    }
}

/// A burst of 0 beside a rate admits nothing; a burst beside a rate of 0 says two things.
fn check_burst(
    burst: u64,
    permits: u64,
    place: Span,
    numbers: Numbers,
    report: &Report<'_>,
) -> Option<()> {
    let finding = match (burst, permits) {
        (0, 1..) => Finding::error(place, "a burst of 0 never admits anything")
            .help("write `burst: 1` to save nothing up, or `rate: 0/s` to refuse everything"),
        (1.., 0) => Finding::error(place, format!("a burst of {burst} beside a rate of 0"))
            .help("leave `burst` out: a rate of 0 refuses everything"),
        _ => return Some(()),
    };
    report.push(match numbers.rate {
        Some((_, rate)) => finding.related(rate, "beside this rate"),
        None => finding,
    });
    None
}

/// What the engine refuses, in the words of the file.
fn refusal(error: &QuotaError, numbers: Numbers) -> Finding {
    let (most, place) = (Quota::MAX_PERMITS, numbers.place());
    match *error {
        QuotaError::TooManyPermits(_) => {
            let burst = numbers.burst.filter(|&(burst, _)| burst > most);
            let place = burst.map_or(place, |(_, place)| place);
            Finding::error(place, error.to_string()).help(format!("write at most {most}"))
        }
        QuotaError::LogTooLong(_) => Finding::error(place, error.to_string())
            .help("write a smaller rate, or `algorithm: token_bucket`"),
        QuotaError::InitialAboveBurst { .. } => {
            let place = numbers.initial.map_or(place, |(_, place)| place);
            let finding = Finding::error(place, error.to_string());
            match (numbers.burst, numbers.rate) {
                (Some((_, burst)), _) => finding.related(burst, "beside this burst"),
                (None, Some((_, rate))) => finding.related(rate, "beside this rate"),
                (None, None) => finding,
            }
            .help("write a smaller `initial`")
        }
        QuotaError::RateCutToNothing => Finding::error(place, error.to_string())
            .help("write `algorithm: token_bucket`, which is exact"),
        QuotaError::ColdFactor(_) | QuotaError::WarmUp(_) => {
            Finding::error(place, error.to_string())
                .help("write a shorter `warm_up` or a smaller `cold_factor`")
        }
        _ => Finding::error(place, error.to_string()),
    }
}

/// Warns about what a limit may do that its writer may not expect.
pub(super) fn warn(limit: &Limit, place: Span, max_keys: u64, report: &Report<'_>) {
    let permits = match *limit.algorithm() {
        Algorithm::TokenBucket(quota)
        | Algorithm::IntervalBucket { quota, .. }
        | Algorithm::SmoothBursty { quota, .. }
        | Algorithm::SmoothWarmUp { quota, .. } => quota.permits(),
        Algorithm::FixedWindow { permits, .. }
        | Algorithm::WindowFromFirst { permits, .. }
        | Algorithm::CalendarWindow { permits, .. }
        | Algorithm::SlidingWindow { permits, .. }
        | Algorithm::SlidingCounter { permits, .. }
        | Algorithm::SlidingLog { permits, .. } => permits,
        Algorithm::SentinelWarmUp { count, .. } | Algorithm::SentinelWarmUpQueue { count, .. } => {
            count
        }
        Algorithm::Concurrency { max } => max,
        _ => return,
    };
    if permits == 0 {
        let message = "this limit refuses every request";
        report.push(
            Finding::warning(place, message)
                .help("0 is never \"no limit\": to let everything pass, leave the limit out"),
        );
    } else if let Algorithm::SlidingLog { .. } = limit.algorithm() {
        let each = permits * LOG_BYTES_PER_PERMIT;
        let all = u128::from(each) * u128::from(max_keys);
        let message = format!(
            "a sliding log remembers each permit: about {} for a key{}",
            in_units(u128::from(each)),
            if max_keys == 1 {
                String::new()
            } else {
                format!(", {} for {max_keys} keys", in_units(all))
            }
        );
        report.push(Finding::warning(place, message).help(
            "`algorithm: sliding_counter` and `fixed_window` cost 24 bytes a key whatever the \
             rate; or write a smaller `max_keys`",
        ));
    }
}

/// A size for people, rounded up.
fn in_units(bytes: u128) -> String {
    let units = ["bytes", "KB", "MB", "GB", "TB"];
    let (mut size, mut unit) = (bytes, 0);
    while size >= 10_000 && unit + 1 < units.len() {
        size = size.div_ceil(1_000);
        unit += 1;
    }
    format!("{size} {}", units[unit])
}
