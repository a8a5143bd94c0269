//! `redis:`

use super::scalars::number;
use crate::file::RedisFile;
use crate::redis::{RedisSettings, RedisTopology};
use crate::report::{Finding, Report};
use crate::source::Span;

/// Most servers that are named.
const MAX_URLS: usize = 100;

pub(super) fn compile(file: &RedisFile, place: Span, report: &Report<'_>) -> Option<RedisSettings> {
    let errors = report.errors();
    let is_cluster = file.cluster.get().copied().unwrap_or(false);
    let mut urls = Vec::new();
    for (url, place) in file.url.items() {
        // What is wrong is said without the URL: it may have a password in it.
        if let Some(fault) = fault_of(url) {
            let finding = Finding::error(place, format!("this URL {fault}"));
            report.push(finding.help("write `redis://HOST:PORT` or `rediss://HOST:PORT`"));
        }
        urls.push(url.clone());
    }
    super::check_count(urls.len(), MAX_URLS, "servers", file.url.place(), report);
    if urls.is_empty() && file.url.is_all_right() && !report.has_unknown_key(place) {
        let finding = Finding::error(place, "`redis` does not say where it is");
        report.push(finding.help("add `url: \"redis://127.0.0.1:6379\"`"));
    }
    let topology = match (file.sentinel.placed(), is_cluster) {
        (Some((_, place)), true) => {
            let message = "a Cluster is not watched by Sentinels";
            report
                .push(Finding::error(place, message).help("keep one of `sentinel` and `cluster`"));
            return None;
        }
        (Some((name, _)), false) => RedisTopology::Sentinel(name.clone()),
        (None, true) => RedisTopology::Cluster,
        (None, false) => {
            if urls.len() > 1 {
                let message = "several servers are a Cluster, or Sentinels";
                let finding = Finding::error(file.url.place()?, message);
                report.push(finding.help("add `cluster: true` or `sentinel: NAME`"));
            }
            RedisTopology::Server
        }
    };
    if let (Some(place), None) = (file.user.place(), file.password_file.place()) {
        let finding = Finding::error(place, "a user without a password");
        report.push(finding.help("add `password_file: FILE`"));
    }
    let nodes = number(&file.nodes, "nodes", 1..=RedisSettings::MAX_NODES, report);
    (report.errors() == errors).then_some(RedisSettings {
        urls,
        topology,
        nodes: nodes.unwrap_or(1),
        user: file.user.get().cloned(),
        password_file: file.password_file.get().cloned(),
        ca_file: file.ca_file.get().cloned(),
    })
}

fn fault_of(url: &str) -> Option<&'static str> {
    let rest = (url.strip_prefix("redis://")).or_else(|| url.strip_prefix("rediss://"));
    let Some(rest) = rest else {
        return Some("is none of Redis");
    };
    let address = rest.rsplit_once('@').map_or(rest, |(_, address)| address);
    let host = address.split(['/', '?']).next().unwrap_or_default();
    if host.is_empty() {
        return Some("has no host");
    }
    let port = host.rsplit_once(':').map(|(_, port)| port);
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    match port {
        Some(port) if !port.ends_with(']') && !is_port(port) => Some("has a port that is none"),
        _ => None,
    }
}
