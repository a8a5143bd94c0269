//! `bandwidth:`, and what goes with it.

use std::time::Duration;

use tidegate::{Algorithm, Limit, Quota, QuotaError};

use super::overrides::{Matches, Seen};
use super::scalars::{parsed, size};
use crate::bandwidth_rule::{BandwidthRule, Direction};
use crate::file::{
    AlgorithmName, BandwidthText, BurstText, DirectionName, Field, LimitFile, OneOrMany, StoreName,
};
use crate::grammar::{RateText as Rate, parse_bandwidth, parse_size};
use crate::key::KeyPart;
use crate::limit_rule::Override;
use crate::report::{Finding, Report};
use crate::source::Span;

/// Timers tick in milliseconds: what a smaller burst lets through depends on how late they are.
const LEAST_BURST: Duration = Duration::from_millis(5);

/// What a limit of bandwidth is, and its overrides; `None` where something about it is wrong.
pub(super) fn compile(
    name: &str,
    file: &LimitFile,
    key: Option<&[KeyPart]>,
    ipv6_prefix: u8,
    report: &Report<'_>,
) -> Option<(Limit, BandwidthRule, Vec<Override>)> {
    let errors = report.errors();
    let is_nginx = is_nginx(file, report);
    refuse_strangers(file, report);
    if is_nginx {
        refuse_of_many_keys(file, report);
    }
    let after = size(&file.after, "after", &(0..=Quota::MAX_PERMITS), report);
    let rule = BandwidthRule {
        after: after.unwrap_or(0),
        direction: direction(file),
        is_nginx,
    };
    let written = Written {
        rate: &file.bandwidth,
        burst: &file.burst,
    };
    let limit = written.limit(name, is_nginx, report);
    let matching = Matches {
        key: key?,
        ipv6_prefix,
    };
    let overrides = overrides(name, file, limit.is_some(), matching, report);
    let is_right = report.errors() == errors && !file.direction.is_wrong();
    Some((limit.filter(|_| is_right)?, rule, overrides))
}

fn direction(file: &LimitFile) -> Direction {
    match file.direction.get().copied().unwrap_or_default() {
        DirectionName::Responses => Direction::Responses,
        DirectionName::Requests => Direction::Requests,
        DirectionName::Both => Direction::Both,
    }
}

/// Refuses what belongs to a limit of bandwidth where the limit is another one.
pub(super) fn refuse_elsewhere(file: &LimitFile, report: &Report<'_>) {
    for (name, place) in [
        ("after", file.after.place()),
        ("direction", file.direction.place()),
    ] {
        if let Some(place) = place {
            let message = format!("`{name}` is for limits of `bandwidth`");
            report.push(Finding::error(place, message).help(format!("leave `{name}` out")));
        }
    }
}

/// The burst of a rate of requests, which is no size.
pub(super) fn permits_of(burst: &BurstText, place: Span, report: &Report<'_>) -> Option<u64> {
    match burst {
        BurstText::Number(number) => Some(*number),
        BurstText::Size(_) => {
            let finding = Finding::error(place, "the burst of a rate is a whole number");
            report.push(finding.help("write `burst: 20`; a size is for `bandwidth`"));
            None
        }
    }
}

fn is_nginx(file: &LimitFile, report: &Report<'_>) -> bool {
    match file.algorithm.placed() {
        Some((AlgorithmName::Nginx, _)) => true,
        Some((_, place)) => {
            let message = "a limit of `bandwidth` is a token bucket of bytes, or `nginx`";
            let help = "leave `algorithm` out, or write `nginx` for its `limit_rate`";
            report.push(Finding::error(place, message).help(help));
            false
        }
        None => false,
    }
}

/// Settings of limits that decide on requests: this one decides on nothing, it holds bodies back.
fn refuse_strangers(file: &LimitFile, report: &Report<'_>) {
    if let Some(place) = file.on_limit.place() {
        let message = "a limit of `bandwidth` refuses nothing: it holds bodies back";
        report.push(Finding::error(place, message).help("leave `on_limit` out"));
    }
    if let Some((true, place)) = file.persist.placed() {
        let message = "of a limit of `bandwidth` nothing is left after a restart that matters";
        report.push(Finding::error(place, message).help("leave `persist` out"));
    }
    if let Some((store, place)) = file.store.placed()
        && *store != StoreName::Local
    {
        let message = "a bandwidth cannot be shared by nodes in this version";
        let help = "leave `store` out: each node counts for itself; with n of them write an nth";
        report.push(Finding::error(place, message).help(help));
    }
    for (name, place) in [
        ("scheme", file.scheme.place()),
        ("on_unavailable", file.on_unavailable.place()),
        ("then", file.then.place()),
        ("warm_up", file.warm_up.place()),
        ("cold_factor", file.cold_factor.place()),
        ("max_debt", file.max_debt.place()),
        ("parts", file.parts.place()),
        ("refill", file.refill.place()),
        ("initial", file.initial.place()),
        ("align", file.align.place()),
        ("delay", file.delay.place()),
        ("nodelay", file.nodelay.place()),
    ] {
        if let Some(place) = place {
            let message = format!("a limit of `bandwidth` has no `{name}`");
            report.push(Finding::error(place, message).help(format!("leave `{name}` out")));
        }
    }
}

/// nginx's limit is of one response: nothing is kept by key, or kept at all.
fn refuse_of_many_keys(file: &LimitFile, report: &Report<'_>) {
    for (name, place) in [
        ("key", file.key.place()),
        ("on_missing", file.on_missing.place()),
        ("max_keys", file.max_keys.place()),
        ("overrides", file.overrides.place()),
        ("burst", file.burst.place()),
        ("on_change", file.on_change.place()),
    ] {
        if let Some(place) = place {
            let message =
                format!("nginx's `limit_rate` is of each body for itself: it has no `{name}`");
            let help = match name {
                "burst" => "leave `burst` out: nginx sends a second's worth at once",
                _ => "leave `algorithm` out, for a count by key across connections",
            };
            report.push(Finding::error(place, message).help(help));
        }
    }
}

/// The numbers of a limit, or of an override with those of the limit where it has none.
#[derive(Clone, Copy)]
struct Written<'f> {
    rate: &'f Field<BandwidthText>,
    burst: &'f Field<OneOrMany<BurstText>>,
}

impl Written<'_> {
    fn limit(self, name: &str, is_nginx: bool, report: &Report<'_>) -> Option<Limit> {
        let (text, place) = self.rate.placed()?;
        let rate = parsed(parse_bandwidth(text.as_str()), place, report)?;
        if rate.permits == 0 {
            let finding = Finding::error(place, "a bandwidth of 0 would hold bodies for ever");
            report.push(finding.help("to refuse requests, write a limit of `rate: 0/s`"));
            return None;
        }
        if is_nginx && rate.period != Duration::from_secs(1) {
            let finding = Finding::error(place, "nginx counts whole bytes per second");
            report.push(finding.help("write a whole number a second: `100KiB/s` is its `100k`"));
            return None;
        }
        let (burst, burst_place) = if is_nginx {
            (rate.permits, None)
        } else {
            self.burst(rate, place, report)?
        };
        let quota = Quota::new(rate.permits, rate.period).burst(burst);
        match Limit::new(name, Algorithm::TokenBucket(quota)) {
            Ok(limit) => Some(limit),
            Err(error) => {
                report.push(refusal(&error, place, burst_place));
                None
            }
        }
    }

    /// The burst, and where it stands.
    fn burst(self, rate: Rate, place: Span, report: &Report<'_>) -> Option<(u64, Option<Span>)> {
        if !self.burst.is_written() {
            let burst = BandwidthRule::default_burst(rate.permits, rate.period.as_nanos());
            return Some((burst.min(Quota::MAX_PERMITS), None));
        }
        let mut items = self.burst.items();
        let (burst, at) = items.next().filter(|_| self.burst.is_all_right())?;
        if items.next().is_some() {
            let finding = Finding::error(self.burst.place()?, "a bandwidth has one burst");
            report.push(finding.help("write `burst: 64KB`"));
            return None;
        }
        let bytes = match burst {
            BurstText::Number(number) => *number,
            BurstText::Size(text) => parsed(parse_size(text), at, report)?,
        };
        let least = u128::from(rate.permits) * LEAST_BURST.as_nanos() / rate.period.as_nanos();
        let least = u64::try_from(least).unwrap_or(u64::MAX).max(1);
        if bytes < least {
            let message = format!(
                "a burst of {bytes} bytes is less than {} ms of the bandwidth, and timers are no \
                 finer",
                LEAST_BURST.as_millis()
            );
            let finding = Finding::error(at, message).related(place, "beside this");
            report.push(finding.help(format!("write `burst: {least}B` or more, or leave it out")));
            return None;
        }
        Some((bytes, Some(at)))
    }
}

/// What the engine refuses, in the words of the file.
fn refusal(error: &QuotaError, rate: Span, burst: Option<Span>) -> Finding {
    match error {
        QuotaError::TooManyPermits(_) => {
            let most = Quota::MAX_PERMITS;
            let message = format!("more than {most} bytes at once");
            Finding::error(burst.unwrap_or(rate), message).help(format!("write at most {most}"))
        }
        _ => Finding::error(rate, error.to_string()),
    }
}

fn overrides(
    name: &str,
    file: &LimitFile,
    is_limit_right: bool,
    matching: Matches<'_>,
    report: &Report<'_>,
) -> Vec<Override> {
    let mut compiled = Vec::new();
    let mut seen = Seen::default();
    for field in file.overrides.get().into_iter().flatten() {
        let Some((one, place)) = field.placed() else {
            continue;
        };
        let matches = matching.of(one, place, report);
        if let Some(stranger) = one.rate.place().or(one.concurrency.place()) {
            let message = "this limit has a bandwidth: an override cannot make it another kind";
            let finding = Finding::error(stranger, message);
            report.push(finding.help("make a limit of its own for what is of another kind"));
            continue;
        }
        if !one.bandwidth.is_written() && !one.burst.is_written() {
            if !report.has_unknown_key(place) {
                let finding = Finding::error(place, "this override changes nothing");
                report.push(finding.help("add what holds for these keys: `bandwidth: 1MB/s`"));
            }
            continue;
        }
        if !one.bandwidth.is_written() && !is_limit_right {
            continue; // what is wrong about the limit has been told
        }
        // A burst goes with the bandwidth that it was written for.
        let written = Written {
            rate: if one.bandwidth.is_written() {
                &one.bandwidth
            } else {
                &file.bandwidth
            },
            burst: &one.burst,
        };
        let limit = written.limit(name, false, report);
        if let Some(matches) = matches {
            seen.check(&matches, place, report);
            compiled.extend(limit.map(|limit| Override { matches, limit }));
        }
    }
    compiled
}
