//! `limits:`

use std::sync::Arc;

use tidegate::{Limit, OnChange};

use super::algorithm;
use super::names::NameSet;
use super::scalars::number;
use super::{Around, access, bandwidth, check_count, idle, on_limit, overrides, queue, rates};
use super::{sharing, state};

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

/// The rules that the limits become, those of one limit in a row.
pub(super) fn compile(
    limits: &Map<LimitFile>,
    names: &NameSet<'_>,
    upstreams: &mut NameSet<'_>,
    around: Around,
    report: &Report<'_>,
) -> Vec<LimitRule> {
    if are_too_many(limits, report) {
        // Lists of rates could make millions of rules of what is refused anyway.
        return Vec::new();
    }
    let rules = limits.iter().filter_map(|(name, place, limit)| {
        rates::check_names(name, place, limit.get()?, names, report);
        limit_rules(name, place, limit, upstreams, around, report)
    });
    rules.flatten().collect()
}

/// Whether there are more limits or overrides than a policy may have. Each rate of one counts.
fn are_too_many(limits: &Map<LimitFile>, report: &Report<'_>) -> bool {
    let errors = report.errors();
    let first = limits.iter().next().map(|(_, place, _)| place);
    let counts = limits.iter().map(|(_, _, limit)| {
        let overrides = limit.get().and_then(|file| file.overrides.get());
        (rates::count(limit), overrides.map_or(0, Vec::len))
    });
    let (rules, overrides) = counts.fold((0, 0), |(rules, overrides), (rates, of_limit)| {
        (rules + rates, overrides + rates * of_limit)
    });
    let each_rate = if rules > limits.len() {
        ", their rates counted,"
    } else {
        ""
    };
    for (count, most, what) in [
        (rules, MAX_LIMITS, "limits"),
        (overrides, MAX_OVERRIDES, "overrides"),
    ] {
        check_count(count, most, &format!("{what}{each_rate}"), first, report);
    }
    report.errors() > errors
}

/// A rule for each rate of a limit, or the one of its concurrency.
fn limit_rules(
    name: &str,
    place: Span,
    field: &Field<LimitFile>,
    upstreams: &mut NameSet<'_>,
    around: Around,
    report: &Report<'_>,
) -> Option<Vec<LimitRule>> {
    let (file, map) = field.placed()?;
    let key = key(file, report);
    let max_keys = number(
        &file.max_keys,
        "max_keys",
        1..=LimitRule::MAX_MAX_KEYS as u64,
        report,
    )
    .unwrap_or(LimitRule::DEFAULT_MAX_KEYS as u64);
    let on_limit = on_limit::compile(file, upstreams, report);
    let kinds_are_right = check_kind(name, place, file, map, report);
    if file.bandwidth.is_written() {
        let rule = of_bandwidth(name, file, (key, max_keys), around, report);
        return Some(vec![rule.filter(|_| kinds_are_right)?]);
    }
    bandwidth::refuse_elsewhere(file, report);
    let settings = algorithm::settings(file, report);
    let settings = settings.filter(|_| kinds_are_right)?;

    let queue = queue::compile(file, settings.kind, around.ipv6_prefix, report)?;
    let shared = sharing::compile(file, settings.kind, around.has_redis, report)?;
    let persist = state::persists(file, around.has_state, report)?;
    let numbers = rates::of_limit(file, settings.kind, report)?;
    let limits: Vec<_> = (numbers.iter().enumerate())
        .map(|(at, &of_rate)| algorithm::limit(&rates::name(name, at), settings, of_rate, report))
        .collect();
    let limits: Vec<Limit> = limits.into_iter().collect::<Option<_>>()?;
    let keys_at_most = if key.as_ref().is_some_and(Vec::is_empty) {
        1
    } else {
        max_keys
    };
    for (limit, of_rate) in limits.iter().zip(&numbers) {
        algorithm::warn(limit, of_rate.place(), keys_at_most, report);
    }
    if !file.overrides.is_written() {
        idle::warn(&limits, &numbers, report);
    }
    let (key, on_limit) = (key?, on_limit?);
    let overrides = overrides::compile(
        name,
        file,
        settings,
        &numbers,
        &key,
        around.ipv6_prefix,
        report,
    );
    let on_missing = on_missing(file);
    let (max_keys, on_change) = (usize::try_from(max_keys).ok()?, on_change(file, report)?);
    let exempt = Arc::new(access::lists(&file.exempt, report));
    let each = limits.into_iter().zip(overrides).enumerate();
    let rules = each.map(|(rate_index, (limit, overrides))| LimitRule {
        limit,
        rate_index,
        key: key.clone(),
        on_missing,
        exempt: exempt.clone(),
        shadow: file.shadow.get().copied().unwrap_or(false),
        max_keys,
        queue: queue.clone(),
        on_limit: on_limit.clone(),
        on_change,
        shared,
        persist,
        bandwidth: None,
        overrides,
    });
    Some(rules.collect())
}

fn on_missing(file: &LimitFile) -> OnMissing {
    match file.on_missing.get() {
        Some(OnMissingName::Deny) => OnMissing::Deny,
        Some(OnMissingName::Pass) => OnMissing::Pass,
        Some(OnMissingName::PassIfEmpty) => OnMissing::PassIfEmpty,
        Some(OnMissingName::Shared) | None => OnMissing::Shared,
    }
}

/// The rule of a limit of bandwidth.
fn of_bandwidth(
    name: &str,
    file: &LimitFile,
    (key, max_keys): (Option<Vec<KeyPart>>, u64),
    around: Around,
    report: &Report<'_>,
) -> Option<LimitRule> {
    let compiled = bandwidth::compile(name, file, key.as_deref(), around.ipv6_prefix, report);
    let (limit, bandwidth, overrides) = compiled?;
    Some(LimitRule {
        on_missing: on_missing(file),
        exempt: Arc::new(access::lists(&file.exempt, report)),
        shadow: file.shadow.get().copied().unwrap_or(false),
        max_keys: usize::try_from(max_keys).ok()?,
        on_change: on_change(file, report)?,
        bandwidth: Some(bandwidth),
        overrides,
        ..LimitRule::new(limit, key?)
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

/// A limit is one of rate, concurrency and bandwidth; a burst goes with a rate or a bandwidth.
fn check_kind(name: &str, place: Span, file: &LimitFile, map: Span, report: &Report<'_>) -> bool {
    let kinds = [
        ("rate", file.rate.place()),
        ("concurrency", file.concurrency.place()),
        ("bandwidth", file.bandwidth.place()),
    ];
    let mut written = kinds
        .iter()
        .filter_map(|&(kind, place)| Some((kind, place?)));
    match (written.next(), written.next()) {
        (Some((kind, first)), Some((other, second))) => {
            let message = format!("{} has both a {kind} and a {other}", quote(name));
            let finding = Finding::error(second, message).related(first, format!("the {kind}"));
            report.push(finding.help("make two limits of it; a route can have both"));
            false
        }
        // The unknown key is what has to be mended: `rte: 5/s`, or one of a later version.
        (None, _) if report.has_unknown_key(map) => false,
        (None, _) => {
            let message = format!("{} limits nothing", quote(name));
            let finding = Finding::error(place, message);
            report.push(
                finding.help("add `rate: 100/min`, `concurrency: 5` or `bandwidth: 100KB/s`"),
            );
            false
        }
        (Some(("concurrency", _)), None) => {
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
