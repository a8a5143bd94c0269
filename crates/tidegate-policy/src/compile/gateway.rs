//! `gateway:` and `admin:`

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;

use ipnet::IpNet;

use super::names::Names;
use super::scalars::{duration, listen, number, size, size_per_second, timeout};
use super::{access, check_count, hidden, observe, routes};
use crate::admin::Admin;
use crate::file::{AdminFile, GatewayFile, PolicyFile, WhenFullName};
use crate::gateway::{Gateway, WhenFull};
use crate::quote::quote;
use crate::report::{Finding, Report};
use crate::source::Span;

/// Most addresses that the gateway listens on.
const MAX_LISTEN: usize = 64;
/// Most entries of a list of addresses and networks.
pub(super) const MAX_NETWORKS: usize = 1_000;
/// Bounds of `max_header_bytes`: what an HTTP parser needs, and what one request may cost.
const HEADER_BYTES: std::ops::RangeInclusive<u64> = 8 * 1024..=1024 * 1024;
/// Bounds of `accept_queue`: a kernel counts no further.
const ACCEPT_QUEUE: std::ops::RangeInclusive<u64> = 1..=65_535;
/// Bounds of `max_trailer_bytes`: it has an end even where it has no fields.
const TRAILER_BYTES: std::ops::RangeInclusive<u64> = 2..=1024 * 1024;
/// Bounds of the slowest rates: more is a matter of limits.
const MIN_RATES: std::ops::RangeInclusive<u64> = 0..=1024 * 1024;

pub(super) fn ipv6_prefix(file: &GatewayFile, report: &Report<'_>) -> Option<u8> {
    let bits = number(&file.ipv6_prefix, "ipv6_prefix", 1..=128, report)?;
    u8::try_from(bits).ok()
}

pub(super) fn compile(
    file: &GatewayFile,
    ipv6_prefix: u8,
    names: &mut Names<'_>,
    report: &Report<'_>,
) -> Gateway {
    let default = Gateway::default();
    let routes = routes::compile(file, names, report);
    hidden::warn(file, &routes, report);
    let count = |field, name, most| {
        let number = number(field, name, 1..=most, report);
        number.and_then(|number| usize::try_from(number).ok())
    };
    let bytes = |field, name, range| {
        let bytes = size(field, name, range, report);
        bytes.and_then(|bytes| usize::try_from(bytes).ok())
    };
    let time = |field, name| timeout(field, name, report);
    let min_rate = |field, name| size_per_second(field, name, &MIN_RATES, report);
    Gateway {
        listen: addresses(file, report).unwrap_or(default.listen),
        trusted_proxies: trusted_proxies(file, report),
        ipv6_prefix,
        access: access::compile(&file.access, report),
        routes: routes.into_iter().flatten().collect(),
        headers: observe::limit_headers(file, report),
        access_log: observe::access_log(file, report),
        request_id: observe::request_id(file, report),
        debug_header: observe::debug_header(file, report),
        header_timeout: time(&file.header_timeout, "header_timeout")
            .unwrap_or(default.header_timeout),
        idle_timeout: time(&file.idle_timeout, "idle_timeout").unwrap_or(default.idle_timeout),
        connect_timeout: time(&file.connect_timeout, "connect_timeout")
            .unwrap_or(default.connect_timeout),
        response_timeout: time(&file.response_timeout, "response_timeout")
            .unwrap_or(default.response_timeout),
        min_body_rate: min_rate(&file.min_body_rate, "min_body_rate")
            .unwrap_or(default.min_body_rate),
        min_response_rate: min_rate(&file.min_response_rate, "min_response_rate")
            .unwrap_or(default.min_response_rate),
        min_rate_grace: time(&file.min_rate_grace, "min_rate_grace")
            .unwrap_or(default.min_rate_grace),
        max_header_bytes: bytes(&file.max_header_bytes, "max_header_bytes", &HEADER_BYTES)
            .unwrap_or(default.max_header_bytes),
        max_trailer_bytes: bytes(&file.max_trailer_bytes, "max_trailer_bytes", &TRAILER_BYTES)
            .unwrap_or(default.max_trailer_bytes),
        max_connection_age: time(&file.max_connection_age, "max_connection_age")
            .unwrap_or(default.max_connection_age),
        max_requests_per_connection: number(
            &file.max_requests_per_connection,
            "max_requests_per_connection",
            1..=1_000_000_000,
            report,
        )
        .unwrap_or(default.max_requests_per_connection),
        max_headers: count(&file.max_headers, "max_headers", 1_000).unwrap_or(default.max_headers),
        max_connections: count(&file.max_connections, "max_connections", 1_000_000)
            .unwrap_or(default.max_connections),
        when_full: match file.when_full.get() {
            Some(WhenFullName::Refuse) => WhenFull::Refuse,
            Some(WhenFullName::Wait) | None => WhenFull::Wait,
        },
        max_connections_per_client: per_client(file, report),
        accept_queue: number(&file.accept_queue, "accept_queue", ACCEPT_QUEUE, report)
            .and_then(|number| u32::try_from(number).ok())
            .unwrap_or(default.accept_queue),
        // 0 is a time here: stop at once.
        shutdown_timeout: duration(&file.shutdown_timeout, report)
            .unwrap_or(default.shutdown_timeout),
    }
}

fn per_client(file: &GatewayFile, report: &Report<'_>) -> Option<NonZeroU32> {
    let name = "max_connections_per_client";
    let most = number(
        &file.max_connections_per_client,
        name,
        1..=1_000_000,
        report,
    )?;
    u32::try_from(most).ok().and_then(NonZeroU32::new)
}

/// Where the gateway listens; `None` where the file says nothing.
fn addresses(file: &GatewayFile, report: &Report<'_>) -> Option<Vec<SocketAddr>> {
    let place = file.listen.place()?;
    let mut addresses = Vec::new();
    let mut is_empty = true;
    for (text, place) in file.listen.items() {
        is_empty = false;
        let Some(address) = listen(text, place, report) else {
            continue;
        };
        if address.port() != 0 && addresses.contains(&address) {
            let message = format!("{} is here twice", quote(text));
            report.push(Finding::error(place, message).help("keep one of them"));
        }
        addresses.push(address);
    }
    if is_empty && file.listen.is_all_right() {
        let finding = Finding::error(place, "the gateway has no address to listen on");
        report.push(finding.help("write `listen: [\"127.0.0.1:8080\"]`"));
    }
    check_count(
        addresses.len(),
        MAX_LISTEN,
        "addresses",
        Some(place),
        report,
    );
    Some(addresses)
}

fn trusted_proxies(file: &GatewayFile, report: &Report<'_>) -> Vec<IpNet> {
    let mut networks = Vec::new();
    for (text, place) in file.trusted_proxies.items() {
        networks.extend(network(text, place, report));
    }
    let place = file.trusted_proxies.place();
    check_count(
        networks.len(),
        MAX_NETWORKS,
        "trusted proxies",
        place,
        report,
    );
    networks
}

pub(super) fn address_or_network(text: &str, place: Span, report: &Report<'_>) -> Option<IpNet> {
    let address = text.parse::<IpAddr>().map(IpNet::from);
    let Ok(network) = address.or_else(|_| text.parse::<IpNet>()) else {
        let message = format!("{} is no address and no network", quote(text));
        let help = "write `10.0.0.1`, `10.0.0.0/8` or `fd00::/8`";
        report.push(Finding::error(place, message).help(help));
        return None;
    };
    Some(network)
}

fn network(text: &str, place: Span, report: &Report<'_>) -> Option<IpNet> {
    let network = address_or_network(text, place, report)?;
    let whole = network.trunc();
    if network.prefix_len() == 0 {
        let message = format!(
            "{} trusts everyone: any client can say who it is",
            quote(text)
        );
        report.push(Finding::warning(place, message).help("name the proxies in front of this one"));
    } else if whole != network {
        let message = format!("{} trusts all of {whole}", quote(text));
        let help = format!(
            "write `{whole}`, or `{}` for the one address",
            network.addr()
        );
        report.push(Finding::warning(place, message).help(help));
    }
    Some(whole)
}

pub(super) fn compile_admin(file: &AdminFile, report: &Report<'_>) -> Option<Admin> {
    match file.listen.placed() {
        Some((text, place)) => listen(text, place, report).map(|listen| Admin { listen }),
        None => Some(Admin::default()),
    }
}

/// Two doors cannot be one port.
pub(super) fn check_ports(
    file: &PolicyFile,
    gateway: &Gateway,
    admin: &Admin,
    report: &Report<'_>,
) {
    let listen: HashSet<_> = gateway.listen.iter().collect();
    if admin.listen.port() != 0 && listen.contains(&admin.listen) {
        let place = |admin: &AdminFile| admin.listen.place();
        let place = file
            .admin
            .get()
            .and_then(place)
            .or(file.admin.place())
            .unwrap_or_default();
        let message = format!("the gateway listens on {} already", admin.listen);
        report.push(Finding::error(place, message).help("give the admin port another number"));
    }
}
