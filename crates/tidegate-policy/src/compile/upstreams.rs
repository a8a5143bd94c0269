//! `upstreams:`

use super::check_count;
use crate::file::{BalanceName, BuiltinName, Map, UpstreamFile};
use crate::quote::quote;
use crate::report::{Finding, Report};
use crate::source::Span;
use crate::upstream::{Balance, Upstream, UpstreamKind};

/// Most upstreams of a policy.
const MAX_UPSTREAMS: usize = 10_000;
/// Most servers of one upstream.
const MAX_SERVERS: usize = 1_000;

pub(super) fn compile(upstreams: &Map<UpstreamFile>, report: &Report<'_>) -> Vec<Upstream> {
    let first = upstreams.iter().next().map(|(_, place, _)| place);
    check_count(upstreams.len(), MAX_UPSTREAMS, "upstreams", first, report);
    let compiled = upstreams.iter().filter_map(|(name, place, upstream)| {
        let file = upstream.get()?;
        let kind = kind(name, place, file, report)?;
        let balance = match file.balance.get() {
            Some(BalanceName::RoundRobin) | None => Balance::RoundRobin,
        };
        Some(Upstream {
            name: name.to_owned(),
            kind,
            balance,
        })
    });
    compiled.collect()
}

fn kind(name: &str, place: Span, file: &UpstreamFile, report: &Report<'_>) -> Option<UpstreamKind> {
    match (file.servers.place(), file.builtin.place()) {
        (Some(servers), Some(builtin)) => {
            let message = format!("{} has both servers and something built in", quote(name));
            let finding = Finding::error(builtin, message).related(servers, "the servers");
            report.push(finding.help("keep one of `servers` and `builtin`"));
            None
        }
        (None, None) => {
            let finding = Finding::error(place, format!("{} leads nowhere", quote(name)));
            report.push(finding.help("add `servers: [\"127.0.0.1:9000\"]` or `builtin: echo`"));
            None
        }
        (None, Some(_)) => {
            if let Some(place) = file.balance.place() {
                let message = "`balance` is for `servers`";
                report.push(Finding::error(place, message).help("leave `balance` out"));
            }
            file.builtin
                .get()
                .map(|BuiltinName::Echo| UpstreamKind::Echo)
        }
        (Some(place), None) => servers(file, place, report).map(UpstreamKind::Servers),
    }
}

fn servers(file: &UpstreamFile, place: Span, report: &Report<'_>) -> Option<Vec<String>> {
    let errors = report.errors();
    let mut servers: Vec<String> = Vec::new();
    for (server, place) in file.servers.items() {
        if let Some(help) = wrong_server(server) {
            let message = format!("{} is no server", quote(server));
            report.push(Finding::error(place, message).help(help));
        } else if servers.contains(server) {
            let message = format!("{} is here twice", quote(server));
            report.push(Finding::warning(place, message).help("it gets twice the requests"));
            servers.push(server.clone());
        } else {
            servers.push(server.clone());
        }
    }
    check_count(servers.len(), MAX_SERVERS, "servers", Some(place), report);
    if servers.is_empty() && file.servers.is_all_right() && report.errors() == errors {
        let finding = Finding::error(place, "an upstream needs at least one server");
        report.push(finding.help("write `servers: [\"127.0.0.1:9000\"]`"));
    }
    (report.errors() == errors).then_some(servers)
}

/// What to write instead of `server`, where it is no `host:port`.
fn wrong_server(server: &str) -> Option<String> {
    if let Some((scheme, rest)) = server.split_once("://") {
        let host = rest.split('/').next().unwrap_or(rest);
        return Some(match scheme {
            "http" if host.contains(':') => format!("write `{host}`"),
            "http" => format!("write `{host}:80`"),
            _ => "upstream servers speak HTTP in this version: write `host:port`".to_owned(),
        });
    }
    let Some((host, port)) = server.rsplit_once(':') else {
        return Some(format!("write it with its port: `{server}:80`"));
    };
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let is_host_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_host = match bare {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.len() <= 253 && host.bytes().all(is_host_byte),
    };
    if !is_host {
        return Some("write `host:port`, an IPv6 address as `[::1]:port`".to_owned());
    }
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit())
        && port.parse::<u16>().is_ok_and(|port| port > 0);
    (!is_port).then(|| "a port is a number from 1 to 65535".to_owned())
}
