//! `access:` and `exempt:`

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net};

use super::check_count;
use super::limits::key_part;
use crate::access::{Access, Lists};
use crate::file::{AccessFile, Field, Map, OneOrMany, Scalar};
use crate::key::KeyPart;
use crate::quote::quote;
use crate::report::{Finding, Report};
use crate::source::Span;

/// Who may come in; everybody, where nothing is said.
pub(super) fn compile(field: &Field<AccessFile>, report: &Report<'_>) -> Access {
    let Some((file, place)) = field.placed() else {
        return Access::default();
    };
    if !file.allow.is_written() && !file.deny.is_written() && !report.has_unknown_key(place) {
        let finding = Finding::error(place, "`access` says nothing");
        report.push(finding.help("add `deny: { client_ip: [192.0.2.0/24] }`"));
    }
    Access {
        allow: lists(&file.allow, report),
        deny: lists(&file.deny, report),
    }
}

/// Values of parts of a request.
pub(super) fn lists(field: &Field<Map<OneOrMany<Scalar>>>, report: &Report<'_>) -> Lists {
    let mut lists = Lists::default();
    let Some((map, place)) = field.placed() else {
        return lists;
    };
    if map.is_empty() {
        // Empty for allowing would be everybody, or nobody: whoever wrote it meant one of them.
        let finding = Finding::error(place, "a list of nobody");
        report.push(finding.help("leave it out, or name a part and values"));
    }
    let mut count = 0;
    for (name, of_part, values) in map.iter() {
        let Some(part) = key_part(name, of_part, report) else {
            continue;
        };
        count += values.count().unwrap_or(0);
        if values.count() == Some(0) {
            let finding = Finding::error(values.place().unwrap_or(of_part), "a list of nobody");
            report.push(finding.help("leave it out, or name values"));
        }
        if part == KeyPart::ClientIp {
            let networks = values.items();
            lists.add_networks(
                networks.filter_map(|(text, place)| network(text.as_str(), place, report)),
            );
            continue;
        }
        let parsed = values.items().filter_map(|(text, place)| {
            let parsed = part.parse_value(text.as_str(), 128).map_err(|error| {
                let message = format!("{}: {error}", quote(text.as_str()));
                report.push(Finding::error(place, message).help(error.help()));
            });
            parsed.ok()
        });
        let parsed: Vec<_> = parsed.collect();
        lists.add_values(part, parsed);
    }
    check_count(count, Lists::MAX_VALUES, "values", Some(place), report);
    lists
}

fn network(text: &str, place: Span, report: &Report<'_>) -> Option<IpNet> {
    let address = text
        .parse::<IpAddr>()
        .map(|ip| IpNet::from(ip.to_canonical()));
    let Ok(network) = address.or_else(|_| text.parse::<IpNet>()) else {
        let message = format!("{} is no address and no network", quote(text));
        let help = "write `192.0.2.1`, `192.0.2.0/24` or `2001:db8::/32`";
        report.push(Finding::error(place, message).help(help));
        return None;
    };
    let whole = network.trunc();
    if whole != network {
        let message = format!("{} is all of {whole}", quote(text));
        let help = format!(
            "write `{whole}`, or `{}` for the one address",
            network.addr()
        );
        report.push(Finding::warning(place, message).help(help));
    }
    Some(as_ipv4(whole))
}

/// A network of IPv4 addresses in their IPv6 form is one of IPv4: that is what clients come as.
fn as_ipv4(network: IpNet) -> IpNet {
    let IpNet::V6(v6) = network else {
        return network;
    };
    let v4 = v6.addr().to_ipv4_mapped();
    let v4 = v4.zip(v6.prefix_len().checked_sub(96));
    let v4 = v4.and_then(|(address, prefix)| Ipv4Net::new(address, prefix).ok());
    v4.map_or(network, IpNet::V4)
}
