//! `state:`, and `persist:` of the limits that are kept there.

use std::time::Duration;

use super::scalars::duration;
use crate::file::{Field, LimitFile, Map, PolicyFile, StateFile, StoreName};
use crate::report::{Finding, Report};
use crate::source::Span;
use crate::state::StateSettings;

pub(super) fn compile(file: &PolicyFile, report: &Report<'_>) -> Option<StateSettings> {
    let (state, place) = file.state.placed()?;
    if file.limits.get().is_none_or(|limits| !is_used(limits)) {
        let message = "no limit persists: nothing is kept in this file";
        let finding = Finding::warning(place, message);
        report.push(finding.help("write `persist: true` in a limit, or leave `state` out"));
    }
    let every = every(state, report);
    let path = path(state, place, report);
    Some(StateSettings {
        file: path?,
        every: every?,
    })
}

fn path(state: &StateFile, place: Span, report: &Report<'_>) -> Option<String> {
    let Some((path, place)) = state.file.placed() else {
        if !state.file.is_wrong() && !report.has_unknown_key(place) {
            let finding = Finding::error(place, "`state` does not say where it is kept");
            report.push(finding.help("add `file: tidegate.state`"));
        }
        return None;
    };
    if path.is_empty() || path.ends_with('/') || path.contains('\0') {
        let finding = Finding::error(place, "this is no file");
        report.push(finding.help("write `file: tidegate.state`"));
        return None;
    }
    Some(path.clone())
}

fn is_used(limits: &Map<LimitFile>) -> bool {
    let mut limits = limits.iter().filter_map(|(_, _, limit)| limit.get());
    limits.any(|limit| limit.persist.get() == Some(&true) || limit.persist.is_wrong())
}

fn every(state: &StateFile, report: &Report<'_>) -> Option<Duration> {
    if !state.every.is_written() {
        return Some(StateSettings::DEFAULT_EVERY);
    }
    let every = duration(&state.every, report)?;
    let within = every.clamp(StateSettings::LEAST_EVERY, StateSettings::MOST_EVERY);
    if every == within {
        return Some(every);
    }
    let help = if every < within { "1s" } else { "1d" };
    let message = "`every` is from 1s to 1d";
    let finding = Finding::error(state.every.place()?, message);
    report.push(finding.help(format!("write `every: {help}`")));
    None
}

/// Whether a limit's counts survive a restart; `None` where they cannot.
pub(super) fn persists(limit: &LimitFile, has_state: bool, report: &Report<'_>) -> Option<bool> {
    let Some((&true, place)) = limit.persist.placed() else {
        return (!limit.persist.is_wrong()).then_some(false);
    };
    let is_local =
        |store: &Field<StoreName>| store.get().is_none_or(|store| *store == StoreName::Local);
    let (message, help) = if limit.concurrency.is_written() {
        (
            "places do not persist: who is inside is inside this process, and gone with it",
            "leave `persist` out",
        )
    } else if !is_local(&limit.store) {
        (
            "what nodes share is in Redis, which keeps it by itself",
            "leave `persist` out",
        )
    } else if has_state {
        return Some(true);
    } else {
        (
            "this policy does not say where counts are kept",
            "add `state: { file: tidegate.state }` to the policy",
        )
    };
    report.push(Finding::error(place, message).help(help));
    None
}
