//! The limits as they stand, as JSON.

use serde_json::{Map, Value, json};
use tidegate::Algorithm;
use tidegate_node::{EnforcedLimit, Node, Outcome};
use tidegate_policy::OnMissing;

/// All limits of a node, with the version of the policy.
pub(crate) fn report(node: &Node) -> Value {
    let snapshot = node.snapshot();
    let status = node.status();
    let limits: Vec<Value> = snapshot.limits().iter().map(|limit| one(limit)).collect();
    let failure = status.failure.map(|failure| {
        json!({
            "file": failure.file,
            "line": failure.line,
            "column": failure.column,
            "reason": failure.reason,
        })
    });
    json!({
        "revision": snapshot.revision(),
        "refused_policy": failure,
        "limits": limits,
    })
}

fn one(limit: &EnforcedLimit) -> Value {
    let rule = limit.rule();
    let outcomes: Map<String, Value> = Outcome::ALL
        .into_iter()
        .map(|outcome| {
            (
                outcome.as_str().to_owned(),
                limit.counts().get(outcome).into(),
            )
        })
        .collect();
    let stats = limit.store_stats();
    json!({
        "name": limit.name(),
        "algorithm": algorithm(rule.limit.algorithm()),
        "key": rule.key.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "on_missing": match rule.on_missing {
            OnMissing::Deny => "deny",
            OnMissing::Pass => "pass",
            OnMissing::Shared => "shared",
        },
        "shadow": rule.shadow,
        "overrides": rule.overrides.len(),
        "decisions": outcomes,
        "store": {
            "keys": stats.keys,
            "max_keys": stats.max_keys,
            "evicted_drained": stats.evicted_drained,
            "evicted_active": stats.evicted_active,
            "permits_released": stats.permits_released,
            "overflowed": stats.overflowed,
        },
    })
}

fn algorithm(algorithm: &Algorithm) -> Value {
    let nanos = |duration: std::time::Duration| u64::try_from(duration.as_nanos()).ok();
    match *algorithm {
        Algorithm::TokenBucket(quota) => json!({
            "kind": "token_bucket",
            "permits": quota.permits(),
            "period_ns": nanos(quota.period()),
            "burst": quota.burst_permits(),
        }),
        Algorithm::FixedWindow { permits, window } => {
            json!({ "kind": "fixed_window", "permits": permits, "window_ns": nanos(window) })
        }
        Algorithm::IntervalBucket { quota, aligned } => json!({
            "kind": "interval_bucket",
            "permits": quota.permits(),
            "period_ns": nanos(quota.period()),
            "burst": quota.burst_permits(),
            "aligned": aligned,
        }),
        Algorithm::SlidingWindow {
            permits,
            window,
            parts,
        } => json!({
            "kind": "sliding_window",
            "permits": permits,
            "window_ns": nanos(window),
            "parts": parts,
        }),
        Algorithm::SlidingCounter { permits, window } => {
            json!({ "kind": "sliding_counter", "permits": permits, "window_ns": nanos(window) })
        }
        Algorithm::Nginx {
            requests,
            per_minute,
            burst,
            delay,
        } => json!({
            "kind": "nginx",
            "requests": requests,
            "per_minute": per_minute,
            "burst": burst,
            "delay": delay,
        }),
        Algorithm::SentinelWarmUp {
            count,
            warm_up_seconds,
            cold_factor,
        } => json!({
            "kind": "sentinel_warm_up",
            "count": count,
            "warm_up_seconds": warm_up_seconds,
            "cold_factor": cold_factor,
        }),
        Algorithm::SlidingLog { permits, window } => {
            json!({ "kind": "sliding_log", "permits": permits, "window_ns": nanos(window) })
        }
        Algorithm::SmoothBursty { quota, max_debt } => json!({
            "kind": "smooth_bursty",
            "permits": quota.permits(),
            "period_ns": nanos(quota.period()),
            "burst": quota.burst_permits(),
            "max_debt_ns": nanos(max_debt),
        }),
        Algorithm::SmoothWarmUp {
            quota,
            warm_up,
            cold_factor,
            max_debt,
        } => json!({
            "kind": "smooth_warm_up",
            "permits": quota.permits(),
            "period_ns": nanos(quota.period()),
            "warm_up_ns": nanos(warm_up),
            "cold_factor": cold_factor,
            "max_debt_ns": nanos(max_debt),
        }),
        Algorithm::Concurrency { max } => json!({ "kind": "concurrency", "max": max }),
        _ => json!({ "kind": "other" }),
    }
}
