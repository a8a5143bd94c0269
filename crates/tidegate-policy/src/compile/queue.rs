//! `on_limit: { queue: ... }`

use std::sync::Arc;
use std::time::Duration;

use tidegate::meter;

use super::check_count;
use super::limits::key_part;
use super::scalars::{number, timeout};
use crate::file::{AlgorithmName, LimitFile, QueueFile, QueueOrder};
use crate::limit_rule::{Priorities, Queue};
use crate::quote::quote;
use crate::report::{Finding, Report};

/// Most permits that wait in one line.
const MAX_LENGTH: u64 = 1_000_000;
const DEFAULT_LENGTH: u64 = 100;
const DEFAULT_MAX_WAIT: Duration = Duration::from_secs(30);
/// Sentinel's `maxQueueingTimeMs`. It bounds the wait only.
const SENTINELS: Queue = Queue {
    length: MAX_LENGTH,
    max_wait: Duration::from_millis(500),
    first: None,
};

/// Whether permits can be taken ahead of time.
const fn can_queue(kind: AlgorithmName) -> bool {
    matches!(
        kind,
        AlgorithmName::TokenBucket
            | AlgorithmName::FixedWindow
            | AlgorithmName::SlidingWindow
            | AlgorithmName::SlidingLog
            | AlgorithmName::SentinelQueue
            | AlgorithmName::SentinelWarmUpQueue
    )
}

/// The queue of a limit, if it has one; `None` where something about it is wrong.
#[expect(clippy::option_option, reason = "no queue is no fault")]
pub(super) fn compile(
    file: &LimitFile,
    kind: AlgorithmName,
    ipv6_prefix: u8,
    report: &Report<'_>,
) -> Option<Option<Queue>> {
    use AlgorithmName::{SentinelQueue, SentinelWarmUpQueue};
    let is_sentinels = matches!(kind, SentinelQueue | SentinelWarmUpQueue);
    let default = if is_sentinels {
        SENTINELS
    } else {
        Queue {
            length: DEFAULT_LENGTH,
            max_wait: DEFAULT_MAX_WAIT,
            first: None,
        }
    };
    if !file.on_limit.is_written() {
        return Some(is_sentinels.then_some(default));
    }
    let queue = &file.on_limit.get()?.queue;
    if !queue.is_written() {
        return Some(is_sentinels.then_some(default));
    }
    if !(can_queue(kind) || file.concurrency.is_written()) {
        let message = format!("`{}` has no line to wait in", kind.as_str());
        report.push(Finding::error(queue.place()?, message).help(match kind {
            AlgorithmName::SmoothBursty | AlgorithmName::SmoothWarmUp | AlgorithmName::Nginx => {
                "leave `queue` out: it delays by itself"
            }
            _ => "leave `queue` out, or count another way",
        }));
        return None;
    }
    let errors = report.errors();
    let written = queue.get()?;
    let length = number(&written.length, "length", 1..=MAX_LENGTH, report);
    let max_wait = timeout(&written.max_wait, "max_wait", report);
    if kind == SentinelWarmUpQueue {
        check_of_warm_up(written, max_wait, report);
    }
    let first = first(written, file.concurrency.is_written(), ipv6_prefix, report);
    let queue = Queue {
        first: first.map(Arc::new),
        length: length.unwrap_or(default.length),
        max_wait: max_wait.unwrap_or(default.max_wait),
    };
    (report.errors() == errors).then_some(Some(queue))
}

/// How long a line of so many takes is not known before it is warm.
fn check_of_warm_up(queue: &QueueFile, max_wait: Option<Duration>, report: &Report<'_>) {
    if let Some(place) = queue.length.place() {
        let message = "the line of `sentinel_warm_up_queue` is bounded by `max_wait` only";
        report.push(Finding::error(place, message).help("leave `length` out"));
    }
    let is_too_long = max_wait.is_some_and(|wait| wait > meter::SentinelWarmUpQueue::MAX_WAIT);
    if let Some(place) = queue.max_wait.place().filter(|_| is_too_long) {
        let message = "`max_wait` of `sentinel_warm_up_queue` is at most 10 minutes";
        report.push(Finding::error(place, message).help("write `max_wait: 10min`"));
    }
}

/// Who leaves before others, where that is said.
fn first(
    queue: &QueueFile,
    of_concurrency: bool,
    ipv6_prefix: u8,
    report: &Report<'_>,
) -> Option<Priorities> {
    let order = queue.order.placed();
    let Some((first, place)) = queue.first.placed() else {
        if let Some((QueueOrder::Priority, place)) = order
            && !queue.first.is_written()
        {
            let finding = Finding::error(place, "by what is the order?");
            report.push(finding.help("add `first: { \"header:plan\": [gold, silver] }`"));
        }
        return None;
    };
    if let Some((QueueOrder::Fifo, of_order)) = order {
        let message = "in the order of arrival nobody is first";
        let finding = Finding::error(place, message).related(of_order, "the order");
        report.push(finding.help("write `order: priority`"));
        return None;
    }
    if !of_concurrency {
        let message = "those who wait for a rate know their time already: nobody goes before them";
        let help = "leave `first` out, or let them wait for a limit of `concurrency`";
        report.push(Finding::error(place, message).help(help));
        return None;
    }
    let mut parts = first.iter();
    let (Some((name, of_part, values)), None) = (parts.next(), parts.next()) else {
        let finding = Finding::error(place, "the order is by one part of a request");
        report.push(finding.help("write `first: { \"header:plan\": [gold, silver] }`"));
        return None;
    };
    let part = key_part(name, of_part, report)?;
    let mut known = Vec::new();
    for (value, place) in values.items() {
        match part.parse_value(value.as_str(), ipv6_prefix) {
            Ok(value) => known.push(value),
            Err(error) => {
                let message = format!("{}: {error}", quote(value.as_str()));
                report.push(Finding::error(place, message).help(error.help()));
            }
        }
    }
    let most = Priorities::MAX_VALUES;
    check_count(known.len(), most, "values", values.place(), report);
    Some(Priorities {
        part,
        values: known,
    })
}
