//! `on_limit: { queue: ... }`

use std::time::Duration;

use super::scalars::{number, timeout};
use crate::file::{AlgorithmName, LimitFile, QueueFile};
use crate::limit_rule::Queue;
use crate::report::{Finding, Report};

/// Most permits that wait in one line.
const MAX_LENGTH: u64 = 1_000_000;
const DEFAULT_LENGTH: u64 = 100;
const DEFAULT_MAX_WAIT: Duration = Duration::from_secs(30);
/// Sentinel's `maxQueueingTimeMs`.
const SENTINEL_MAX_WAIT: Duration = Duration::from_millis(500);

/// Whether permits can be taken ahead of time.
const fn can_queue(kind: AlgorithmName) -> bool {
    matches!(
        kind,
        AlgorithmName::TokenBucket
            | AlgorithmName::FixedWindow
            | AlgorithmName::SlidingWindow
            | AlgorithmName::SlidingLog
            | AlgorithmName::SentinelQueue
    )
}

/// The queue of a limit, if it has one; `None` where something about it is wrong.
#[expect(clippy::option_option, reason = "no queue is no fault")]
pub(super) fn compile(
    file: &LimitFile,
    kind: AlgorithmName,
    report: &Report<'_>,
) -> Option<Option<Queue>> {
    let is_sentinels = kind == AlgorithmName::SentinelQueue;
    let max_wait = if is_sentinels {
        SENTINEL_MAX_WAIT
    } else {
        DEFAULT_MAX_WAIT
    };
    // Sentinel bounds the wait only.
    let length = if is_sentinels {
        MAX_LENGTH
    } else {
        DEFAULT_LENGTH
    };
    let Some(place) = file.on_limit.place() else {
        return Some(is_sentinels.then_some(Queue { length, max_wait }));
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
    let QueueFile {
        length: written,
        max_wait: longest,
        order: _,
    } = queue.get()?;
    let errors = report.errors();
    let queue = Queue {
        length: number(written, "length", 1..=MAX_LENGTH, report).unwrap_or(length),
        max_wait: timeout(longest, "max_wait", report).unwrap_or(max_wait),
    };
    (report.errors() == errors).then_some(Some(queue))
}
