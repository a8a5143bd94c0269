//! `overrides:`

use std::collections::{BTreeMap, HashMap};

use super::algorithm::{self, Settings};
use super::rates::{self, Numbers};
use crate::file::{LimitFile, OverrideFile};
use crate::key::KeyPart;
use crate::limit_rule::Override;
use crate::quote::quote;
use crate::report::{Finding, Report};
use crate::source::Span;
use crate::suggest::closest;

/// The overrides of each rate of a limit that has `base` for numbers.
pub(super) fn compile(
    name: &str,
    file: &LimitFile,
    settings: Settings,
    base: &[Numbers],
    key: &[KeyPart],
    ipv6_prefix: u8,
    report: &Report<'_>,
) -> Vec<Vec<Override>> {
    let mut compiled = vec![Vec::new(); base.len()];
    let mut seen = Seen::default();
    for field in file.overrides.get().into_iter().flatten() {
        let Some((one, place)) = field.placed() else {
            continue;
        };
        let matches = Matches { key, ipv6_prefix }.of(one, place, report);
        let numbers = numbers(one, place, file, base, report).unwrap_or_default();
        let limits: Vec<_> = (numbers.into_iter().enumerate())
            .map(|(at, numbers)| {
                algorithm::limit(&rates::name(name, at), settings, numbers, report)
            })
            .collect();
        let Some(matches) = matches else { continue };
        seen.check(&matches, place, report);
        for (of_rate, limit) in compiled.iter_mut().zip(limits) {
            of_rate.extend(limit.map(|limit| Override {
                matches: matches.clone(),
                limit,
            }));
        }
    }
    compiled
}

/// The override's numbers, or those of the limit where it has none.
fn numbers(
    one: &OverrideFile,
    place: Span,
    file: &LimitFile,
    base: &[Numbers],
    report: &Report<'_>,
) -> Option<Vec<Numbers>> {
    let is_written = [
        one.rate.is_written(),
        one.burst.is_written(),
        one.concurrency.is_written(),
        one.bandwidth.is_written(),
    ];
    if !is_written.contains(&true) {
        if report.has_unknown_key(place) {
            return None; // told already, and most likely the cause
        }
        let finding = Finding::error(place, "this override changes nothing");
        let help = if file.concurrency.is_written() {
            "concurrency: 10"
        } else {
            "rate: 1000/min"
        };
        report.push(finding.help(format!("add what holds for these keys: `{help}`")));
        return None;
    }
    let of_concurrency = file.concurrency.is_written();
    let stranger = if of_concurrency {
        one.rate.place().or(one.burst.place())
    } else {
        one.concurrency.place()
    };
    let stranger = stranger.or(one.bandwidth.place());
    if let Some(stranger) = stranger {
        let kind = if of_concurrency {
            "concurrency"
        } else {
            "rate"
        };
        let other = match kind {
            _ if one.bandwidth.is_written() => "bandwidth",
            "rate" => "concurrency",
            _ => "rate",
        };
        let message = format!("this limit has a {kind}: an override cannot make it another kind");
        let help = format!("make a limit of its own for what has a {other}");
        report.push(Finding::error(stranger, message).help(help));
        return None;
    }
    rates::of_override(one, file, base, report)
}

/// What overrides match by.
#[derive(Clone, Copy)]
pub(super) struct Matches<'a> {
    pub(super) key: &'a [KeyPart],
    pub(super) ipv6_prefix: u8,
}

impl Matches<'_> {
    /// What the override matches, part by part; `None` where something about it is wrong.
    pub(super) fn of(
        self,
        one: &OverrideFile,
        place: Span,
        report: &Report<'_>,
    ) -> Option<Vec<Option<Box<[u8]>>>> {
        let Self { key, ipv6_prefix } = self;
        let Some(named) = one.matches.get() else {
            if !one.matches.is_written() {
                let example = key
                    .first()
                    .map_or_else(|| "client_ip".to_owned(), ToString::to_string);
                let finding = Finding::error(place, "an override needs `match`: whom is it for?");
                report.push(finding.help(format!("add `match: {{ \"{example}\": ... }}`")));
            }
            return None;
        };
        let mut matches = vec![None; key.len()];
        let mut is_right = true;
        for (text, place, value) in named.iter() {
            let part = part_index(text, place, key, report);
            let value = value
                .placed()
                .zip(part)
                .and_then(|((value, place), index)| {
                    let parsed = key[index].parse_value(value.as_str(), ipv6_prefix);
                    let parsed = parsed.map_err(|error| {
                        let message = format!("{}: {error}", quote(value.as_str()));
                        report.push(Finding::error(place, message).help(error.help()));
                    });
                    parsed.ok().map(|bytes| (index, bytes))
                });
            match value {
                Some((index, bytes)) => matches[index] = Some(bytes),
                None => is_right = false,
            }
        }
        is_right.then_some(matches)
    }
}

/// Which part of the key `text` is.
fn part_index(text: &str, place: Span, key: &[KeyPart], report: &Report<'_>) -> Option<usize> {
    let part = text.parse::<KeyPart>().ok();
    if let Some(index) = part.and_then(|part| key.iter().position(|of_key| *of_key == part)) {
        return Some(index);
    }
    let message = format!("{} is not in the key of this limit", quote(text));
    let names: Vec<_> = key.iter().map(ToString::to_string).collect();
    let meant = closest(text, names.iter().map(String::as_str));
    report.push(
        Finding::error(place, message).help(match (meant, names.as_slice()) {
            (Some(meant), _) => format!("did you mean `{meant}`?"),
            (None, []) => "the limit has no `key`: give it one".to_owned(),
            (None, _) => format!("its key is {}", names.join(", ")),
        }),
    );
    None
}

/// What earlier overrides match, so that one that cannot be reached is found at once.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// By which parts are named (a bit each), the values named, and where.
    by_parts: BTreeMap<u32, HashMap<Values, Span>>,
}

type Values = Vec<Box<[u8]>>;

impl Seen {
    /// Warns where an earlier override matches all that this one does; then remembers this one.
    pub(super) fn check(
        &mut self,
        matches: &[Option<Box<[u8]>>],
        place: Span,
        report: &Report<'_>,
    ) {
        let named = |mask: u32| -> Values {
            let values = matches
                .iter()
                .enumerate()
                .filter(|(index, _)| mask >> index & 1 == 1);
            values.filter_map(|(_, value)| value.clone()).collect()
        };
        let bits = matches
            .iter()
            .enumerate()
            .filter(|(_, value)| value.is_some());
        let mask = bits.fold(0_u32, |mask, (index, _)| mask | 1 << index);
        let earlier = self
            .by_parts
            .iter()
            .filter(|(parts, _)| *parts & mask == **parts)
            .find_map(|(parts, seen)| seen.get(&named(*parts)));
        if let Some(&earlier) = earlier {
            let message = "an earlier override matches all that this one does";
            let finding =
                Finding::warning(place, message).related(earlier, "the first that matches wins");
            report.push(finding.help("put the one that matches less first, or leave one out"));
        }
        self.by_parts
            .entry(mask)
            .or_default()
            .entry(named(mask))
            .or_insert(place);
    }
}
