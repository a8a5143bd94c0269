//! The limits as they stand, as JSON.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tidegate::{Algorithm, CalendarUnit, Quota};
use tidegate_node::{Counts, EnforcedLimit, Node, Outcome};
use tidegate_policy::{BandwidthRule, BodyOf, Direction, OnMissing};

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
        "bandwidth": rule.bandwidth.map(|rule| bandwidth(rule, limit.counts())),
        "key": rule.key.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "on_missing": match rule.on_missing {
            OnMissing::Deny => "deny",
            OnMissing::Pass => "pass",
            OnMissing::PassIfEmpty => "pass_if_empty",
            OnMissing::Shared => "shared",
        },
        "shadow": rule.shadow,
        "overrides": rule.overrides.len(),
        "decisions": outcomes,
        "waiting": limit.counts().waits().now,
        "in_use": limit.in_use(),
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

/// What a limit of bandwidth has beside its token bucket of bytes.
fn bandwidth(rule: BandwidthRule, counts: &Counts) -> Value {
    json!({
        "after": rule.after,
        "direction": match rule.direction {
            Direction::Responses => "responses",
            Direction::Requests => "requests",
            Direction::Both => "both",
        },
        "nginx": rule.is_nginx,
        "request_bytes": counts.bytes(BodyOf::Request),
        "response_bytes": counts.bytes(BodyOf::Response),
        "held_back_ns": nanos(counts.held_back()),
    })
}

fn algorithm(algorithm: &Algorithm) -> Value {
    match *algorithm {
        Algorithm::TokenBucket(quota) => of_quota("token_bucket", quota),
        Algorithm::IntervalBucket { quota, aligned } => {
            with(of_quota("interval_bucket", quota), "aligned", aligned)
        }
        Algorithm::FixedWindow { permits, window } => of_window("fixed_window", permits, window),
        Algorithm::WindowFromFirst { permits, window } => {
            of_window("window_from_first", permits, window)
        }
        Algorithm::CalendarWindow { permits, unit } => json!({
            "kind": "calendar_window",
            "permits": permits,
            "unit": match unit {
                CalendarUnit::Day => "day",
                CalendarUnit::Week => "week",
                CalendarUnit::Month => "month",
                CalendarUnit::Year => "year",
            },
        }),
        Algorithm::SlidingWindow {
            permits,
            window,
            parts,
        } => with(
            of_window("sliding_window", permits, window),
            "parts",
            parts.get(),
        ),
        Algorithm::SlidingCounter { permits, window } => {
            of_window("sliding_counter", permits, window)
        }
        Algorithm::SlidingLog { permits, window } => of_window("sliding_log", permits, window),
        Algorithm::SmoothBursty { quota, max_debt } => with(
            of_quota("smooth_bursty", quota),
            "max_debt_ns",
            nanos(max_debt),
        ),
        Algorithm::SmoothWarmUp {
            quota,
            warm_up,
            cold_factor,
            max_debt,
        } => {
            let warm = with(
                of_quota("smooth_warm_up", quota),
                "warm_up_ns",
                nanos(warm_up),
            );
            let warm = with(warm, "cold_factor", cold_factor);
            with(warm, "max_debt_ns", nanos(max_debt))
        }
        Algorithm::Concurrency { max } => json!({ "kind": "concurrency", "max": max }),
        ref dialect => self::dialect(dialect),
    }
}

/// The algorithms of other systems, in their words.
fn dialect(algorithm: &Algorithm) -> Value {
    match *algorithm {
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
        } => of_sentinel("sentinel_warm_up", count, warm_up_seconds, cold_factor),
        Algorithm::SentinelWarmUpQueue {
            count,
            warm_up_seconds,
            cold_factor,
        } => of_sentinel(
            "sentinel_warm_up_queue",
            count,
            warm_up_seconds,
            cold_factor,
        ),
        Algorithm::RedisCell {
            max_burst,
            count,
            period_seconds,
        } => json!({
            "kind": "redis_cell",
            "max_burst": max_burst,
            "count": count,
            "period_seconds": period_seconds,
        }),
        _ => json!({ "kind": "other" }),
    }
}

fn of_quota(kind: &str, quota: Quota) -> Value {
    json!({
        "kind": kind,
        "permits": quota.permits(),
        "period_ns": nanos(quota.period()),
        "burst": quota.burst_permits(),
        "initial": quota.initial_permits(),
    })
}

fn of_window(kind: &str, permits: u64, window: Duration) -> Value {
    json!({ "kind": kind, "permits": permits, "window_ns": nanos(window) })
}

fn of_sentinel(kind: &str, count: u64, warm_up_seconds: u32, cold_factor: u32) -> Value {
    json!({
        "kind": kind,
        "count": count,
        "warm_up_seconds": warm_up_seconds,
        "cold_factor": cold_factor,
    })
}

fn with(mut value: Value, key: &str, what: impl Into<Value>) -> Value {
    if let Value::Object(fields) = &mut value {
        fields.insert(key.to_owned(), what.into());
    }
    value
}

fn nanos(duration: Duration) -> Option<u64> {
    u64::try_from(duration.as_nanos()).ok()
}
