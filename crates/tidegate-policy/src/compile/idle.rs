//! Rates of a limit that another of its rates makes idle.

use std::time::Duration;

use tidegate::{Algorithm, Limit, Quota};

use super::rates::Numbers;
use crate::report::{Finding, Report};

/// Warns of rates that never refuse, because another one has as few permits and as slowly.
pub(super) fn warn(limits: &[Limit], numbers: &[Numbers], report: &Report<'_>) {
    for (index, limit) in limits.iter().enumerate() {
        let others = limits.iter().enumerate();
        let busier = others.filter(|&(other, busier)| {
            // Of two that are alike, the second.
            never_refuses(limit, busier) && (other < index || !never_refuses(busier, limit))
        });
        let Some((other, _)) = busier.min_by_key(|&(other, _)| other) else {
            continue;
        };
        if let (Some(idle), Some(busier)) = (numbers.get(index), numbers.get(other)) {
            let finding = Finding::warning(idle.place(), "this rate never refuses");
            let finding = finding.related(busier.place(), "this one does so first, always");
            report.push(finding.help("leave it out, or write fewer permits over a longer time"));
        }
    }
}

/// Whether a bucket always has as much as another one that gives the same permits.
fn never_refuses(bucket: &Limit, other: &Limit) -> bool {
    let (Algorithm::TokenBucket(bucket), Algorithm::TokenBucket(other)) =
        (bucket.algorithm(), other.algorithm())
    else {
        return false;
    };
    let in_time = |quota: &Quota, time: Duration| u128::from(quota.permits()) * time.as_nanos();
    bucket.burst_permits() >= other.burst_permits()
        && bucket.initial_permits() >= other.initial_permits()
        && in_time(bucket, other.period()) >= in_time(other, bucket.period())
}
