//! `store:`, and what goes with it.

use tidegate::{LeaseScheme, Sharing};

use crate::file::{
    AlgorithmName, AlignName, Field, LimitFile, OnChangeName, OnUnavailableName, RefillName,
    SchemeName, StoreName, ThenName,
};
use crate::limit_rule::{OnUnavailable, SharedRule};
use crate::report::{Finding, Report};

/// How nodes share a limit; `None` where something about it is wrong.
#[expect(clippy::option_option, reason = "a limit of one node is no fault")]
pub(super) fn compile(
    file: &LimitFile,
    kind: AlgorithmName,
    has_redis: bool,
    report: &Report<'_>,
) -> Option<Option<SharedRule>> {
    let errors = report.errors();
    let store = file.store.get().copied().unwrap_or_default();
    if store == StoreName::Local {
        refuse_rest(file, report);
        return (report.errors() == errors).then_some(None);
    }
    let place = file.store.place()?;
    if !has_redis {
        let message = format!("`store: {}` needs a Redis", store.as_str());
        let finding = Finding::error(place, message);
        report.push(finding.help("add `redis: { url: \"redis://127.0.0.1:6379\" }` to the policy"));
    }
    let sharing = if file.concurrency.is_written() {
        of_concurrency(file, store, report)
    } else {
        if let Some(why) = cannot_be_shared(file, kind, store) {
            report.push(Finding::error(place, why).help("leave `store` out, or count another way"));
        }
        of_rate(file, kind, store, report)
    };
    refuse_on_change(file, store, report);
    let on_unavailable = on_unavailable(file, report);
    let sharing = sharing.filter(|_| report.errors() == errors)?;
    Some(Some(SharedRule {
        sharing,
        on_unavailable,
    }))
}

/// What goes with a store that is shared only.
fn refuse_rest(file: &LimitFile, report: &Report<'_>) {
    let refuse = |name: &str, place| {
        if let Some(place) = place {
            let message = format!("`{name}` is for limits that nodes share");
            report.push(Finding::error(place, message).help("add `store: exact` or `leased`"));
        }
    };
    refuse("scheme", file.scheme.place());
    refuse("on_unavailable", file.on_unavailable.place());
    refuse("then", file.then.place());
}

/// What nodes share is kept without the burst that it was counted with: what was used is all that
/// is known of it. A lease is of the numbers it was made with.
fn refuse_on_change(file: &LimitFile, store: StoreName, report: &Report<'_>) {
    let Some((&name, place)) = file.on_change.placed() else {
        return;
    };
    // Of places there is nothing to choose at all, which is said elsewhere.
    if file.concurrency.is_written() {
        return;
    }
    let (message, help) = match (store, name) {
        (StoreName::Exact, OnChangeName::KeepUsed) => return,
        (StoreName::Exact, _) => (
            "what nodes share keeps what was used, whatever its numbers become",
            "leave `on_change` out, or write `keep_used`",
        ),
        (StoreName::Leased | StoreName::Auto | StoreName::Local, _) => (
            "what is leased begins anew when its numbers change: there is nothing to choose",
            "leave `on_change` out, or take `store: exact`, which keeps what was used",
        ),
    };
    report.push(Finding::error(place, message).help(help));
}

/// Why a rate that is counted like this cannot be shared like that.
fn cannot_be_shared(file: &LimitFile, kind: AlgorithmName, store: StoreName) -> Option<String> {
    use AlgorithmName::{
        FixedWindow, SlidingCounter, SlidingLog, SlidingWindow, SmoothBursty, TokenBucket,
    };
    let is_leased = matches!(store, StoreName::Leased | StoreName::Auto);
    let is_greedy = file
        .refill
        .get()
        .is_none_or(|refill| *refill == RefillName::Greedy);
    let can = match kind {
        TokenBucket => !is_leased || is_greedy,
        // Each key is leased, or none is: what would choose between the two is of buckets.
        FixedWindow => {
            store != StoreName::Auto
                && file
                    .align
                    .get()
                    .is_none_or(|align| *align == AlignName::Epoch)
        }
        SlidingWindow | SlidingLog | SlidingCounter | SmoothBursty => !is_leased,
        _ => false,
    };
    if !can {
        let (kind, store) = (kind.as_str(), store.as_str());
        return Some(format!(
            "`{kind}`, as it is here, cannot be `store: {store}`"
        ));
    }
    if !file.on_limit.is_written() {
        return None;
    }
    match kind {
        _ if is_leased => Some("nobody waits in line for a lease".to_owned()),
        // What is told of these holds for the moment only: there is no place ahead to be given.
        FixedWindow | SlidingWindow | SlidingLog => {
            let kind = kind.as_str();
            Some(format!(
                "nobody waits in line for a `{kind}` that nodes share"
            ))
        }
        _ => None,
    }
}

fn of_rate(
    file: &LimitFile,
    kind: AlgorithmName,
    store: StoreName,
    report: &Report<'_>,
) -> Option<Sharing> {
    let scheme = match file.scheme.placed() {
        None | Some((SchemeName::Strict, _)) => LeaseScheme::Strict,
        Some((SchemeName::Optimistic, place)) if kind == AlgorithmName::FixedWindow => {
            let message = "a `fixed_window` is leased with scheme `strict` only";
            report.push(Finding::error(place, message).help("leave `scheme` out"));
            return None;
        }
        Some((SchemeName::Optimistic, _)) => LeaseScheme::Optimistic,
        Some((scheme, place)) => {
            let message = format!("`{}` is a scheme of `concurrency`", scheme.as_str());
            report.push(Finding::error(place, message).help("write `strict` or `optimistic`"));
            return None;
        }
    };
    match store {
        StoreName::Leased => Some(Sharing::Leased(scheme)),
        StoreName::Auto => Some(Sharing::Auto(scheme)),
        StoreName::Exact | StoreName::Local => {
            if let Some(place) = file.scheme.place() {
                let message = "`exact` has one scheme only";
                report.push(Finding::error(place, message).help("leave `scheme` out"));
            }
            Some(Sharing::Exact)
        }
    }
}

fn of_concurrency(file: &LimitFile, store: StoreName, report: &Report<'_>) -> Option<Sharing> {
    if let Some(place) = file.on_limit.place() {
        let message = "nobody waits in line for a place that nodes share";
        report.push(Finding::error(place, message).help("leave `on_limit` out"));
    }
    match file.scheme.placed() {
        None if store == StoreName::Exact => Some(Sharing::Slots),
        None | Some((SchemeName::NodeShare, _)) => Some(Sharing::NodeShare),
        Some((SchemeName::Slots, _)) => Some(Sharing::Slots),
        Some((SchemeName::DoubleWindow, _)) => Some(Sharing::DoubleWindow),
        Some((scheme, place)) => {
            let message = format!("`{}` is a scheme of rates", scheme.as_str());
            let finding = Finding::error(place, message);
            report.push(finding.help("write `node_share`, `slots` or `double_window`"));
            None
        }
    }
}

fn on_unavailable(file: &LimitFile, report: &Report<'_>) -> OnUnavailable {
    let is_open = |then: &Field<ThenName>| then.get() == Some(&ThenName::Open);
    let name = file.on_unavailable.get().copied().unwrap_or_default();
    if name != OnUnavailableName::LocalShare
        && let Some(place) = file.then.place()
    {
        let message = "`then` is for after the time of a local share";
        report.push(Finding::error(place, message).help("leave `then` out"));
    }
    match name {
        OnUnavailableName::LocalShare => OnUnavailable::LocalShare {
            then_open: is_open(&file.then),
        },
        OnUnavailableName::Open => OnUnavailable::Open,
        OnUnavailableName::Closed => OnUnavailable::Closed,
    }
}
