//! `on_limit:` but for its queue.

use std::sync::Arc;

use super::answer::{self, Kind};
use super::names::NameSet;
use super::scalars::{number, timeout};
use crate::file::{AnswerFile, LimitFile, OnLimitFile, RedirectFile, TarpitFile};
use crate::on_limit::{Action, Answer, OnLimit, Tarpit};
use crate::quote::quote;
use crate::report::{Finding, Report};
use crate::source::Span;

/// Most requests of one limit that are kept waiting at once.
const MAX_TARPIT: u64 = 1_000_000;
const DEFAULT_TARPIT: u64 = 1_000;
/// Longest target of a redirect.
const MAX_TARGET_BYTES: usize = 4_096;

/// What becomes of requests that a limit refuses; `None` inside for what is always done, and
/// outside where something about it is wrong.
#[expect(clippy::option_option, reason = "nothing special is no fault")]
pub(super) fn compile(
    file: &LimitFile,
    upstreams: &mut NameSet<'_>,
    report: &Report<'_>,
) -> Option<Option<Arc<OnLimit>>> {
    let Some(place) = file.on_limit.place() else {
        return Some(None);
    };
    let errors = report.errors();
    let file = file.on_limit.get()?;
    let actions = [
        file.reject.place(),
        file.redirect.place(),
        file.degrade.place(),
    ];
    let mut written = actions.into_iter().flatten();
    if let (Some(first), Some(second)) = (written.next(), written.next()) {
        let message = "only one of `reject`, `redirect` and `degrade` can become of a request";
        let finding = Finding::error(second, message).related(first, "the first");
        report.push(finding.help("leave one of them out"));
    }
    if says_nothing(file) && !report.has_unknown_key(place) {
        let finding = Finding::error(place, "`on_limit` says nothing");
        report.push(finding.help("add `queue: { length: 100, max_wait: 200ms }`"));
    }
    let tarpit = file
        .tarpit
        .placed()
        .and_then(|(file, place)| tarpit(file, place, report));
    let action = if let Some(redirect) = file.redirect.placed() {
        self::redirect(redirect, report)
    } else if let Some(degrade) = file.degrade.placed() {
        self::degrade(degrade, upstreams, report)
    } else if let Some((reject, _)) = file.reject.placed() {
        reject_with(reject, report)
    } else {
        Some(Action::Answer(Answer::default()))
    };
    if report.errors() > errors {
        return None;
    }
    let action = action?;
    let is_default = tarpit.is_none() && action == Action::Answer(Answer::default());
    let on_limit = (!is_default).then(|| Arc::new(OnLimit { tarpit, action }));
    Some(on_limit)
}

fn says_nothing(file: &OnLimitFile) -> bool {
    !(file.queue.is_written()
        || file.tarpit.is_written()
        || file.reject.is_written()
        || file.redirect.is_written()
        || file.degrade.is_written())
}

fn tarpit(file: &TarpitFile, place: Span, report: &Report<'_>) -> Option<Tarpit> {
    if !file.delay.is_written() && !report.has_unknown_key(place) {
        let finding = Finding::error(place, "a tarpit needs a delay");
        report.push(finding.help("add `delay: 5s`"));
    }
    let length = number(&file.length, "length", 1..=MAX_TARPIT, report).unwrap_or(DEFAULT_TARPIT);
    Some(Tarpit {
        delay: timeout(&file.delay, "delay", report)?,
        length: usize::try_from(length).ok()?,
    })
}

fn reject_with(file: &AnswerFile, report: &Report<'_>) -> Option<Action> {
    if let Some(place) = file.upstream.place() {
        let finding = Finding::error(place, "an upstream does not reject");
        report.push(finding.help("write `degrade: { upstream: NAME }`"));
    }
    answer::compile(file, Kind::Reject, report).map(Action::Answer)
}

fn degrade(
    (file, place): (&AnswerFile, Span),
    upstreams: &mut NameSet<'_>,
    report: &Report<'_>,
) -> Option<Action> {
    let Some((name, of_name)) = file.upstream.placed() else {
        upstreams.all_seen &= !file.upstream.is_wrong();
        let answer = answer::compile(file, Kind::Degrade, report)?;
        if answer.pages.is_empty() && !report.has_unknown_key(place) {
            let finding = Finding::error(place, "`degrade` says nothing");
            report.push(finding.help("add `upstream: NAME`, or `html: ...` or another body"));
        }
        return Some(Action::Answer(answer));
    };
    if let Some(place) = answer::first_of(file) {
        let finding = Finding::error(place, "an upstream answers by itself");
        report.push(
            finding
                .related(of_name, "the upstream")
                .help("leave one of them out"),
        );
    }
    let index = upstreams.use_name(name);
    if index.is_none() {
        let message = format!("there is no upstream {}", quote(name));
        let help = upstreams.suggest(name, report);
        report.push(Finding::error(of_name, message).help(help));
    }
    index.map(Action::Upstream)
}

fn redirect((file, place): (&RedirectFile, Span), report: &Report<'_>) -> Option<Action> {
    let status = match file.status.placed() {
        None => 302,
        Some((&status @ (302 | 303 | 307), _)) => status as u16,
        Some((_, place)) => {
            let message = "being over a limit passes: only 302, 303 and 307 say so";
            report.push(Finding::error(place, message).help("write `status: 302`"));
            return None;
        }
    };
    let Some((to, place)) = file.to.placed() else {
        if !file.to.is_written() && !report.has_unknown_key(place) {
            let finding = Finding::error(place, "a redirect needs a target");
            report.push(finding.help("add `to: \"https://example.com/busy\"`"));
        }
        return None;
    };
    let is_target = to.starts_with('/') || to.starts_with("http://") || to.starts_with("https://");
    let is_plain = to.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_target || !is_plain || to.len() > MAX_TARGET_BYTES {
        let message = format!("{} is nothing to redirect to", quote(to));
        let help = format!(
            "write a URL (`https://...`) or a path (`/busy`), percent-encoded, of at most \
             {MAX_TARGET_BYTES} bytes"
        );
        report.push(Finding::error(place, message).help(help));
        return None;
    }
    let to = to.clone();
    Some(Action::Redirect { status, to })
}
