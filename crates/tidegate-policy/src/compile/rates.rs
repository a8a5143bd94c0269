//! The rates of a limit, with the numbers that go with each.
//!
//! A limit of several rates becomes one rule for each of them. They stand in a row, count by the
//! same key, and are asked together wherever the limit is named.

use std::ops::Range;

use tidegate::MAX_LIMITS_PER_CHECK;

use super::bandwidth::permits_of;
use super::check_count;
use super::names::{MAX_NAME_BYTES, NameSet};
use super::scalars::parsed;
use crate::file::{
    AlgorithmName, BurstText, Field, LimitFile, Map, OneOrMany, OverrideFile, RateText, RefillName,
};
use crate::grammar::{RateText as Rate, parse_rate};
use crate::quote::quote;
use crate::report::{Finding, Report};
use crate::source::Span;

/// The numbers of one rate of a limit or an override, and where they stand.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbers {
    pub(super) rate: Option<(Rate, Span)>,
    pub(super) burst: Option<(u64, Span)>,
    pub(super) initial: Option<(u64, Span)>,
    /// Instead of a rate.
    pub(super) concurrency: Option<(u64, Span)>,
    /// Whether the burst is the limit's and the rate an override's own.
    pub(super) burst_is_inherited: bool,
}

impl Numbers {
    /// Where the rate stands, or the concurrency.
    pub(super) fn place(&self) -> Span {
        let rate = self.rate.map(|(_, place)| place);
        let concurrency = self.concurrency.map(|(_, place)| place);
        rate.or(concurrency).unwrap_or_default()
    }
}

/// What the rule of a limit's rate at `index` is called: the first as the limit.
pub(super) fn name(limit: &str, index: usize) -> String {
    match index {
        0 => limit.to_owned(),
        _ => format!("{limit}:{}", index + 1),
    }
}

/// Which rules each limit becomes, in the order of the file.
pub(crate) fn rules(limits: &Map<LimitFile>) -> Vec<Range<usize>> {
    let mut next = 0;
    let ranges = limits.iter().map(|(_, _, limit)| {
        let start = next;
        next += count(limit);
        start..next
    });
    ranges.collect()
}

/// How many rules a limit becomes.
pub(super) fn count(limit: &Field<LimitFile>) -> usize {
    let rates = limit.get().and_then(|file| file.rate.count());
    rates.unwrap_or(1).max(1)
}

/// The numbers of each rate of a limit, or of its concurrency; `None` where some are wrong.
pub(super) fn of_limit(
    file: &LimitFile,
    kind: AlgorithmName,
    report: &Report<'_>,
) -> Option<Vec<Numbers>> {
    if let Some((&max, place)) = file.concurrency.placed() {
        return Some(vec![Numbers {
            concurrency: Some((max, place)),
            ..Numbers::default()
        }]);
    }
    let place = file.rate.place()?;
    let count = file.rate.count()?;
    if count == 0 {
        let finding = Finding::error(place, "`rate` is a list of nothing");
        report.push(finding.help("write `rate: 100/min`"));
        return None;
    }
    let can_be_several = count == 1 || can_be_several(kind, count, file, report);
    let rates = parsed_rates(&file.rate, report);
    let whose = format!("for {}", counted(count, "rate", "rates"));
    let or_leave_out = |name, default| {
        format!(
            "write one for each rate, in the same order; or leave `{name}` out: it is {default}"
        )
    };
    let burst_help = or_leave_out("burst", "the permits of each one's period");
    let initial_help = or_leave_out("initial", "each one's burst");
    let one_each = OneEach {
        rates: count,
        whose: &whose,
        place,
        help: &burst_help,
    };
    let burst = one_each.bursts(&file.burst, report);
    let one_each = OneEach {
        help: &initial_help,
        ..one_each
    };
    let initial = one_each.of(&file.initial, "initial", report);
    let (rates, burst, initial) = (rates?, burst?, initial?);
    let each = rates.iter().enumerate().map(|(index, &rate)| Numbers {
        rate: Some(rate),
        burst: burst.get(index).copied(),
        initial: number_at(&initial, index),
        ..Numbers::default()
    });
    can_be_several.then(|| each.collect())
}

/// The numbers of each rate of an override: its own, or those of the limit.
pub(super) fn of_override(
    one: &OverrideFile,
    file: &LimitFile,
    base: &[Numbers],
    report: &Report<'_>,
) -> Option<Vec<Numbers>> {
    let one_each = OneEach {
        rates: base.len(),
        whose: &format!("for the limit's {}", counted(base.len(), "rate", "rates")),
        place: file.rate.place().unwrap_or_default(),
        help: "write one for each rate of the limit, in the same order",
    };
    let rates =
        (one_each.of(&one.rate, "rate", report)).and_then(|_| parsed_rates(&one.rate, report));
    let burst = one_each.bursts(&one.burst, report);
    let (rates, burst) = (rates?, burst?);
    let concurrency = one.concurrency.placed().map(|(&max, place)| (max, place));
    let each = base.iter().enumerate().map(|(index, base)| Numbers {
        rate: rates.get(index).copied().or(base.rate),
        burst: burst.get(index).copied().or(base.burst),
        initial: base.initial,
        concurrency: concurrency.or(base.concurrency),
        burst_is_inherited: !one.burst.is_written(),
    });
    (!one.concurrency.is_wrong()).then(|| each.collect())
}

/// Entries of which there have to be as many as there are rates.
struct OneEach<'a> {
    rates: usize,
    /// `for 2 rates`.
    whose: &'a str,
    /// Where the rates stand.
    place: Span,
    help: &'a str,
}

impl OneEach<'_> {
    /// The bursts of rates, which are numbers of permits.
    fn bursts(
        &self,
        field: &Field<OneOrMany<BurstText>>,
        report: &Report<'_>,
    ) -> Option<Vec<(u64, Span)>> {
        let bursts = self.of(field, "burst", report)?.into_iter();
        let permits = bursts.map(|(burst, at)| Some((permits_of(burst, at, report)?, at)));
        permits.collect()
    }

    /// The entries of `field`, or none where it is not written; `None` where there is something
    /// wrong about it.
    fn of<'f, T>(
        &self,
        field: &'f Field<OneOrMany<T>>,
        name: &str,
        report: &Report<'_>,
    ) -> Option<Vec<(&'f T, Span)>> {
        let entries = field.count().zip(field.place());
        if let Some((entries, place)) = entries.filter(|&(entries, _)| entries != self.rates) {
            let entries = counted(entries, "entry", "entries");
            let finding = Finding::error(place, format!("`{name}` has {entries} {}", self.whose));
            report.push(finding.related(self.place, "beside this").help(self.help));
            return None;
        }
        field.is_all_right().then(|| field.items().collect())
    }
}

/// What the rates are; `None`, and reported, where some are none.
fn parsed_rates(
    field: &Field<OneOrMany<RateText>>,
    report: &Report<'_>,
) -> Option<Vec<(Rate, Span)>> {
    let rates: Vec<_> = (field.items())
        .map(|(text, place)| Some((parsed(parse_rate(text.as_str()), place, report)?, place)))
        .collect();
    let rates = rates.into_iter().collect::<Option<Vec<_>>>()?;
    field.is_all_right().then_some(rates)
}

fn number_at(numbers: &[(&u64, Span)], index: usize) -> Option<(u64, Span)> {
    numbers.get(index).map(|&(&number, place)| (number, place))
}

fn counted(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// Whether this limit can have several rates.
fn can_be_several(
    kind: AlgorithmName,
    rates: usize,
    file: &LimitFile,
    report: &Report<'_>,
) -> bool {
    use AlgorithmName::{FixedWindow, SlidingCounter, SlidingLog, SlidingWindow, TokenBucket};
    let errors = report.errors();
    let place = file.rate.place();
    check_count(
        rates,
        MAX_LIMITS_PER_CHECK,
        "rates of one limit",
        place,
        report,
    );
    // The others are those of a system that knows one rate only, or they delay by themselves: what
    // waits for one rate goes ahead at that one's pace, which may be none of the others'.
    if !matches!(
        kind,
        TokenBucket | FixedWindow | SlidingWindow | SlidingCounter | SlidingLog
    ) {
        let message = format!("`{}` counts one rate, not {rates}", kind.as_str());
        let finding = Finding::error(place.unwrap_or_default(), message);
        report.push(finding.help("make a limit of each; a route can have them all"));
    }
    // A line moves when its slowest rate lets it. If that gives many permits at once, all who
    // have them go ahead together, however slowly the other rates gave theirs.
    let is_even = kind == TokenBucket
        && !matches!(
            file.refill.get(),
            Some(RefillName::Interval | RefillName::Aligned)
        );
    if let Some(queue) = file.on_limit.place().filter(|_| !is_even) {
        let message =
            "several rates have a line to wait in only where permits come back one by one";
        let finding = Finding::error(queue, message);
        report.push(
            finding.help("leave `on_limit` out, or count by `token_bucket` with `refill: greedy`"),
        );
    }
    report.errors() == errors
}

/// Reports the rates of a limit whose rules cannot be called what they would be called.
pub(super) fn check_names(
    limit: &str,
    limit_place: Span,
    file: &LimitFile,
    limits: &NameSet<'_>,
    report: &Report<'_>,
) {
    for (index, (_, place)) in file.rate.items().enumerate().skip(1) {
        let (name, number) = (name(limit, index), index + 1);
        if limit.len() <= MAX_NAME_BYTES && name.len() > MAX_NAME_BYTES {
            let message = format!(
                "this name has no room for the `:{number}` of its rate {number}: \
                 a name is at most {MAX_NAME_BYTES}"
            );
            let finding = Finding::error(limit_place, message).related(place, "this rate");
            report.push(finding.help("call the limit something shorter"));
            return;
        }
        if let Some((_, other)) = limits.find(&name) {
            let (name, limit) = (quote(&name), quote(limit));
            let message = format!("{name} is what rate {number} of {limit} is called");
            let finding = Finding::error(other, message).related(place, "this rate");
            report.push(finding.help("call this limit something else"));
        }
    }
}

/// The limit and the number of its rate that `name` is, where it is no limit's.
pub(super) fn split_name(name: &str) -> Option<(&str, usize)> {
    let (limit, number) = name.rsplit_once(':')?;
    Some((limit, number.parse().ok()?))
}
