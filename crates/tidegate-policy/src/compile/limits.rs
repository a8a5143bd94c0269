//! `limits:`

use super::algorithm::{self, Numbers};
use super::scalars::number;
use super::{check_count, overrides, queue};
use tidegate::OnChange;

use crate::file::{Field, LimitFile, Map, OnChangeName, OnMissingName};
use crate::key::{KeyPart, KeyPartError};
use crate::limit_rule::{LimitRule, OnMissing};
use crate::quote::quote;
use crate::report::{Finding, Report};
use crate::source::Span;
use crate::suggest::closest;

/// Most limits of a policy.
const MAX_LIMITS: usize = 10_000;
/// Most overrides of all limits of a policy.
const MAX_OVERRIDES: usize = 100_000;

pub(super) fn compile(
    limits: &Map<LimitFile>,
    ipv6_prefix: u8,
    report: &Report<'_>,
) -> Vec<LimitRule> {
    let first = limits.iter().next().map(|(_, place, _)| place);
    check_count(limits.len(), MAX_LIMITS, "limits", first, report);
    let overrides = limits
        .iter()
        .filter_map(|(_, _, limit)| limit.get()?.overrides.get());
    check_count(
        overrides.map(Vec::len).sum(),
        MAX_OVERRIDES,
        "overrides",
        first,
        report,
    );
    limits
        .iter()
        .filter_map(|(name, place, limit)| limit_rule(name, place, limit, ipv6_prefix, report))
        .collect()
}

fn limit_rule(
    name: &str,
    place: Span,
    field: &Field<LimitFile>,
    ipv6_prefix: u8,
    report: &Report<'_>,
) -> Option<LimitRule> {
    let (file, map) = field.placed()?;
    let key = key(file, report);
    let max_keys = number(
        &file.max_keys,
        "max_keys",
        1..=LimitRule::MAX_MAX_KEYS as u64,
        report,
    )
    .unwrap_or(LimitRule::DEFAULT_MAX_KEYS as u64);
    let kinds_are_right = check_kind(name, place, file, map, report);
    let settings = algorithm::settings(file, report);
    let settings = settings.filter(|_| kinds_are_right)?;

    let queue = queue::compile(file, settings.kind, report)?;
    let numbers = Numbers {
        rate: &file.rate,
        burst: &file.burst,
        concurrency: &file.concurrency,
        burst_is_inherited: false,
    };
    let limit = algorithm::limit(name, settings, numbers, report)?;
    let numbers_place = file
        .rate
        .place()
        .or(file.concurrency.place())
        .unwrap_or(place);
    let keys_at_most = if key.as_ref().is_some_and(Vec::is_empty) {
        1
    } else {
        max_keys
    };
    algorithm::warn(&limit, numbers_place, keys_at_most, report);
    let key = key?;
    let overrides = overrides::compile(name, file, settings, &key, ipv6_prefix, report);
    Some(LimitRule {
        limit,
        key,
        on_missing: match file.on_missing.get() {
            Some(OnMissingName::Deny) => OnMissing::Deny,
            Some(OnMissingName::Pass) => OnMissing::Pass,
            Some(OnMissingName::Shared) | None => OnMissing::Shared,
        },
        shadow: file.shadow.get().copied().unwrap_or(false),
        max_keys: usize::try_from(max_keys).ok()?,
        queue,
        on_change: on_change(file, report)?,
        overrides,
    })
}

/// What stays when the numbers change; `None` where there is nothing to choose.
fn on_change(file: &LimitFile, report: &Report<'_>) -> Option<OnChange> {
    let Some((name, place)) = file.on_change.placed() else {
        return (!file.on_change.is_wrong()).then_some(OnChange::KeepUsed);
    };
    if file.concurrency.is_written() {
        let message = "a limit of `concurrency` has nothing to choose: who is inside is inside";
        report.push(Finding::error(place, message).help("leave `on_change` out"));
        return None;
    }
    Some(match name {
        OnChangeName::KeepUsed => OnChange::KeepUsed,
        OnChangeName::KeepRemaining => OnChange::KeepRemaining,
        OnChangeName::Proportional => OnChange::Proportional,
        OnChangeName::AddGrowth => OnChange::AddGrowth,
        OnChangeName::Reset => OnChange::Reset,
    })
}

/// A limit is one of rate and concurrency; a burst goes with a rate.
fn check_kind(name: &str, place: Span, file: &LimitFile, map: Span, report: &Report<'_>) -> bool {
    match (file.rate.place(), file.concurrency.place()) {
        (Some(rate), Some(concurrency)) => {
            let message = format!("{} has both a rate and a concurrency", quote(name));
            let finding = Finding::error(concurrency, message).related(rate, "the rate");
            report.push(finding.help("make two limits of it; a route can have both"));
            false
        }
        // The unknown key is what has to be mended: `rte: 5/s`, or one of a later version.
        (None, None) if report.has_unknown_key(map) => false,
        (None, None) => {
            let message = format!("{} limits nothing", quote(name));
            let finding = Finding::error(place, message);
            report.push(finding.help("add `rate: 100/min` or `concurrency: 5`"));
            false
        }
        (None, Some(_)) => {
            if let Some(burst) = file.burst.place() {
                let message = "a limit of `concurrency` has no burst";
                report.push(Finding::error(burst, message).help("leave `burst` out"));
                return false;
            }
            true
        }
        (Some(_), None) => true,
    }
}

/// The key; `None` where a part of it is wrong.
fn key(file: &LimitFile, report: &Report<'_>) -> Option<Vec<KeyPart>> {
    let mut parts = Vec::<KeyPart>::new();
    let mut is_right = file.key.is_all_right();
    for (text, place) in file.key.items() {
        match key_part(text, place, report) {
            Some(part) if parts.contains(&part) => {
                let message = format!("{} is in this key twice", quote(text));
                report.push(Finding::error(place, message).help("keep one of them"));
                is_right = false;
            }
            Some(part) => parts.push(part),
            None => is_right = false,
        }
    }
    let most = LimitRule::MAX_KEY_PARTS;
    check_count(parts.len(), most, "key parts", file.key.place(), report);
    is_right.then_some(parts)
}

/// A key part by its text, reported where it is none.
pub(super) fn key_part(text: &str, place: Span, report: &Report<'_>) -> Option<KeyPart> {
    let error = match text.parse() {
        Ok(part) => return Some(part),
        Err(error) => error,
    };
    let (prefix, _) = text.split_once(':').unwrap_or((text, ""));
    let message = format!("{}: {error}", quote(text));
    let named = KeyPart::NAMED
        .iter()
        .find(|named| named.trim_end_matches(':') == prefix);
    let help = match (error, named) {
        (KeyPartError::BadName, _) => format!("write `{prefix}:NAME`, with a name that is sent"),
        (KeyPartError::Unknown, Some(named)) => {
            format!("write `{named}NAME`, such as `{named}user-id`")
        }
        (KeyPartError::Unknown, None) => {
            match closest(text, KeyPart::PLAIN).or(closest(prefix, KeyPart::NAMED)) {
                Some(meant) if meant.ends_with(':') => format!("did you mean `{meant}NAME`?"),
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!(
                    "write one of {}, or header:NAME, cookie:NAME, query:NAME",
                    KeyPart::PLAIN.join(", ")
                ),
            }
        }
    };
    report.push(Finding::error(place, message).help(help));
    None
}

/// Whether a field was written at all, whatever it is.
pub(super) fn is_any_written(fields: [&Field<u64>; 2]) -> bool {
    fields.iter().any(|field| field.is_written())
}
