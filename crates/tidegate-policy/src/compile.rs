//! From what a file says to what holds: names become indices, texts become numbers, and what
//! cannot be meant is reported.
//!
//! Nothing here stops at the first problem. What is returned is used only if there was no error,
//! so a part that is wrong may be left out of it.

mod access;
mod algorithm;
mod answer;
mod bandwidth;
mod dialects;
mod gateway;
mod hidden;
mod idle;
mod limits;
mod names;
mod observe;
mod on_limit;
mod overrides;
mod queue;
mod rates;
mod redis;
mod routes;
mod scalars;
mod sharing;
mod state;
mod upstreams;

use self::names::{NameSet, Names};
pub(crate) use self::rates::rules as rules_of;
use self::scalars::number;
use crate::file::{Map, PolicyFile};
use crate::gateway::Gateway;
use crate::policy::Policy;
use crate::report::{Finding, Report};
use crate::source::Span;

/// What limits depend on that is said elsewhere in the policy.
#[derive(Clone, Copy, Debug)]
struct Around {
    ipv6_prefix: u8,
    has_redis: bool,
    has_state: bool,
}

/// Makes a policy of a file.
pub(crate) fn compile(file: &PolicyFile, report: &Report<'_>) -> Policy {
    let ipv6_prefix = file
        .gateway
        .get()
        .and_then(|gateway| gateway::ipv6_prefix(gateway, report))
        .unwrap_or(Gateway::DEFAULT_IPV6_PREFIX);
    let mut names = Names {
        limits: NameSet::of("limit", &file.limits, report),
        rules: file.limits.get().map(rates::rules).unwrap_or_default(),
        upstreams: NameSet::of("upstream", &file.upstreams, report),
    };
    let limits = file.limits.get().map(|limits| {
        let around = Around {
            ipv6_prefix,
            has_redis: file.redis.is_written(),
            has_state: file.state.is_written(),
        };
        limits::compile(limits, &names.limits, &mut names.upstreams, around, report)
    });
    let redis = file
        .redis
        .placed()
        .and_then(|(file, place)| redis::compile(file, place, report));
    let upstreams = file
        .upstreams
        .get()
        .map(|map| upstreams::compile(map, report));
    let gateway = file.gateway.get().map(|gateway| {
        let compiled = gateway::compile(gateway, ipv6_prefix, &mut names, report);
        if !gateway.routes.is_wrong() {
            names.limits.report_unused(report);
            names.upstreams.report_unused(report);
        }
        compiled
    });
    let admin = file
        .admin
        .get()
        .and_then(|admin| gateway::compile_admin(admin, report));
    if let (Some(gateway), Some(admin)) = (&gateway, &admin) {
        gateway::check_ports(file, gateway, admin, report);
    }
    if report.errors() == 0 && file.limits.get().is_none_or(Map::is_empty) {
        let message = "this policy has no limits: it lets everything pass";
        report.push(
            Finding::warning(file.limits.place().unwrap_or_default(), message)
                .help("write `limits: { per-client: { rate: 10/s, key: [client_ip] } }`"),
        );
    }
    Policy {
        version: number(&file.version, "version", 1..=Policy::MAX_VERSION, report).unwrap_or(0),
        limits: limits.unwrap_or_default(),
        upstreams: upstreams.unwrap_or_default(),
        gateway,
        redis,
        state: state::compile(file, report),
        admin,
    }
}

/// Reports that there are more of something than a policy may have.
fn check_count(count: usize, most: usize, what: &str, place: Option<Span>, report: &Report<'_>) {
    if count > most {
        let message = format!("{count} {what} are more than the most, {most}");
        report.push(Finding::error(place.unwrap_or_default(), message));
    }
}
