//! `gateway.access_log`, `gateway.request_id`, `gateway.debug_header` and `gateway.headers`

use std::path::PathBuf;

use super::check_count;
use super::gateway::{MAX_NETWORKS, address_or_network};
use super::scalars::{size, timeout};
use crate::file::{
    AccessLogFile, DebugHeaderFile, Field, GatewayFile, LogFormatName, LogOnlyName, MapOrText,
    ResetName,
};
use crate::key::is_token;
use crate::observe::{
    AccessLog, DebugHeader, HideQuery, LimitHeaders, LogFormat, LogOnly, LogTarget, Reset,
};
use crate::quote::quote;
use crate::report::{Finding, Report};
use crate::source::Span;

/// Most names of headers, and of query parameters.
const MAX_NAMES: usize = 32;
/// Bounds of `buffer`.
const BUFFER: std::ops::RangeInclusive<u64> = 1024 * 1024..=1024 * 1024 * 1024;
const DEFAULT_BUFFER: usize = 8 * 1024 * 1024;
/// Bounds of a token's length.
const TOKEN: std::ops::RangeInclusive<usize> = 16..=256;
/// Headers whose values are never logged.
const SECRET: [&str; 4] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "x-tidegate-debug",
];

pub(super) fn access_log(file: &GatewayFile, report: &Report<'_>) -> Option<AccessLog> {
    let (log, place) = file.access_log.placed()?;
    let short = AccessLogFile::default();
    let (map, path) = match log {
        MapOrText::Text(path) => (&short, Some((path, place))),
        MapOrText::Map(map) => {
            if !map.path.is_written() && !report.has_unknown_key(place) {
                let finding = Finding::error(place, "the access log does not say where to");
                report.push(finding.help("add `path: access.log` or `path: stdout`"));
            }
            (map, map.path.placed())
        }
    };
    // Without a target there has been an error: what comes of the rest is not used.
    let target = path.and_then(|(path, place)| target(path, place, report));
    Some(of_map(map, target.unwrap_or(LogTarget::Stdout), report))
}

fn target(path: &str, place: Span, report: &Report<'_>) -> Option<LogTarget> {
    let help = match path {
        "stdout" => return Some(LogTarget::Stdout),
        "" | "true" | "false" | "on" => "write `access_log: access.log`, or `stdout`",
        "off" => "leave `access_log` out",
        _ if path.ends_with('/') || path.contains('\0') => "name a file",
        _ => return Some(LogTarget::File(PathBuf::from(path))),
    };
    let message = format!("{} is no file", quote(path));
    report.push(Finding::error(place, message).help(help));
    None
}

fn of_map(map: &AccessLogFile, target: LogTarget, report: &Report<'_>) -> AccessLog {
    let format = match map.format.get() {
        None | Some(LogFormatName::Json) => LogFormat::Json,
        Some(LogFormatName::Combined) => LogFormat::Combined,
        Some(LogFormatName::CombinedLimits) => LogFormat::CombinedLimits,
    };
    if let (Some(place), true) = (map.headers.place(), format != LogFormat::Json) {
        let finding = Finding::error(place, "`headers` are for `format: json`");
        report.push(finding.help("leave `headers` out"));
    }
    let mut only = LogOnly::default();
    for (one, _) in map.only.items() {
        match one {
            LogOnlyName::Refused => only.refused = true,
            LogOnlyName::Errors => only.errors = true,
        }
    }
    only.slow = timeout(&map.slow, "slow", report);
    AccessLog {
        target,
        format,
        headers: headers(map, report),
        hide_query: hide_query(map, report),
        only,
        buffer: size(&map.buffer, "buffer", &BUFFER, report)
            .and_then(|bytes| usize::try_from(bytes).ok())
            .unwrap_or(DEFAULT_BUFFER),
    }
}

fn headers(map: &AccessLogFile, report: &Report<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (name, place) in map.headers.items() {
        let lower = name.to_ascii_lowercase();
        if !is_token(name) {
            let finding = Finding::error(place, format!("{} is no header", quote(name)));
            report.push(finding.help("write a name such as `user-agent`"));
        } else if SECRET.contains(&lower.as_str()) {
            let message = format!("what is in {} is secret, and not logged", quote(name));
            report.push(Finding::error(place, message).help("leave it out"));
        } else if names.contains(&lower) {
            let finding = Finding::error(place, format!("{} is here twice", quote(name)));
            report.push(finding.help("keep one of them"));
        }
        names.push(lower);
    }
    let place = map.headers.place();
    check_count(names.len(), MAX_NAMES, "headers", place, report);
    names
}

fn hide_query(map: &AccessLogFile, report: &Report<'_>) -> HideQuery {
    let names: Vec<String> = map
        .hide_query
        .items()
        .map(|(name, _)| name.clone())
        .collect();
    let place = map.hide_query.place();
    check_count(names.len(), MAX_NAMES, "parameters", place, report);
    if names.iter().any(|name| name == "*") {
        HideQuery::Whole
    } else {
        HideQuery::Values(names)
    }
}

/// The header that has a request's id, in lower case.
pub(super) fn request_id(file: &GatewayFile, report: &Report<'_>) -> Option<String> {
    let (written, place) = file.request_id.placed()?;
    match written.as_str() {
        "false" => None,
        "true" => Some("x-request-id".to_owned()),
        name if is_token(name) && !IN_USE.contains(&name.to_ascii_lowercase().as_str()) => {
            Some(name.to_ascii_lowercase())
        }
        name => {
            let message = format!("{} is no header for an id", quote(name));
            let help = "write `true` for `X-Request-Id`, or another name";
            report.push(Finding::error(place, message).help(help));
            None
        }
    }
}

/// Headers that mean something else already.
const IN_USE: [&str; 10] = [
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "date",
    "expect",
    "host",
    "te",
    "transfer-encoding",
    "upgrade",
];

pub(super) fn debug_header(file: &GatewayFile, report: &Report<'_>) -> Option<DebugHeader> {
    let (debug, place) = file.debug_header.placed()?;
    let DebugHeaderFile { from, token } = debug;
    if !from.is_written() && !token.is_written() && !report.has_unknown_key(place) {
        let finding = Finding::error(place, "`debug_header` does not say who may ask");
        report.push(finding.help("add `from: 10.0.0.0/8` or `token: TEXT`"));
    }
    let mut networks = Vec::new();
    for (text, place) in from.items() {
        let Some(network) = address_or_network(text, place, report) else {
            continue;
        };
        if network.prefix_len() == 0 {
            let message = format!("{} lets everyone ask", quote(text));
            report.push(Finding::warning(place, message).help("name the clients that may"));
        }
        networks.push(network.trunc());
    }
    let (count, place) = (networks.len(), from.place());
    check_count(count, MAX_NETWORKS, "networks", place, report);
    if let Some((token, place)) = token.placed() {
        let is_visible = token.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_visible || !TOKEN.contains(&token.len()) {
            // Without the text: it was to be a secret.
            let message = "a token is 16 to 256 visible ASCII characters";
            report.push(Finding::error(place, message).help("take one that nobody guesses"));
        }
    }
    Some(DebugHeader {
        from: networks,
        token: token.get().cloned(),
    })
}

pub(super) fn limit_headers(file: &GatewayFile, report: &Report<'_>) -> LimitHeaders {
    let default = LimitHeaders::default();
    let no_map = <_>::default();
    let headers = file.headers.get().unwrap_or(&no_map);
    let either = |new: &Field<bool>, old: &Field<bool>, names: (&str, &str), default| {
        if let (Some(new), Some(old)) = (new.place(), old.place()) {
            let message = format!("`{}` is the same as `{}`", names.1, names.0);
            let finding = Finding::error(old, message).related(new, "said here");
            report.push(finding.help("keep one of them"));
        }
        *new.get().or(old.get()).unwrap_or(&default)
    };
    if let (Some(place), false) = (
        headers.x_rate_limit_reset.place(),
        headers
            .x_rate_limit
            .get()
            .or(file.x_rate_limit_headers.get())
            == Some(&true),
    ) {
        let message = "`x_rate_limit_reset` is for `x_rate_limit: true`";
        report.push(Finding::error(place, message).help("add `x_rate_limit: true`"));
    }
    LimitHeaders {
        rate_limit: either(
            &headers.rate_limit,
            &file.rate_limit_headers,
            ("headers.rate_limit", "rate_limit_headers"),
            default.rate_limit,
        ),
        rate_limit_draft_6: headers.rate_limit_draft_6.get().copied().unwrap_or(false),
        x_rate_limit: either(
            &headers.x_rate_limit,
            &file.x_rate_limit_headers,
            ("headers.x_rate_limit", "x_rate_limit_headers"),
            default.x_rate_limit,
        ),
        x_rate_limit_reset: match headers.x_rate_limit_reset.get() {
            Some(ResetName::Epoch) => Reset::Epoch,
            Some(ResetName::Seconds) | None => Reset::Seconds,
        },
        retry_after: headers.retry_after.get().copied().unwrap_or(true),
    }
}
