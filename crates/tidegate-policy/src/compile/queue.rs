//! `on_limit: { queue: ... }`

use std::time::Duration;

use tidegate::meter;

use super::scalars::{number, timeout};
use crate::file::{AlgorithmName, LimitFile, QueueFile};
use crate::limit_rule::Queue;
use crate::report::{Finding, Report};

/// Most permits that wait in one line.
const MAX_LENGTH: u64 = 1_000_000;
const DEFAULT_LENGTH: u64 = 100;
const DEFAULT_MAX_WAIT: Duration = Duration::from_secs(30);
/// Sentinel's `maxQueueingTimeMs`. It bounds the wait only.
const SENTINELS: Queue = Queue {
    length: MAX_LENGTH,
    max_wait: Duration::from_millis(500),
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
        }
    };
    let Some(place) = file.on_limit.place() else {
        return Some(is_sentinels.then_some(default));
    };
    let queue = &file.on_limit.get()?.queue;
    if !queue.is_written() {
        if !report.has_unknown_key(place) {
            let finding = Finding::error(place, "`on_limit` says nothing");
            report.push(finding.help("add `queue: { length: 100, max_wait: 200ms }`"));
        }
        return None;
    }
    if !(can_queue(kind) || file.concurrency.is_written()) {
        let message = format!("`{}` has no line to wait in", kind.as_str());
        report.push(Finding::error(queue.place()?, message).help(match kind {
            AlgorithmName::SmoothBursty | AlgorithmName::SmoothWarmUp | AlgorithmName::Nginx => {
                "leave `on_limit` out: it delays by itself"
            }
            _ => "leave `on_limit` out, or count another way",
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
    let queue = Queue {
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
