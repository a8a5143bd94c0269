//! `routes:`

use std::collections::HashMap;

use tidegate::MAX_LIMITS_PER_CHECK;

use super::names::{Names, check_name};
use super::{access, check_count, rates};
use crate::file::{Field, GatewayFile, MatchFile, OneOrMany, RouteFile, Scalar};
use crate::host_pattern::HostPattern;
use crate::key::is_token;
use crate::path_pattern::PathPattern;
use crate::quote::quote;
use crate::report::{Finding, Report};
use crate::route::{Route, RouteMatch};
use crate::source::Span;
use crate::suggest::closest;

/// Most routes of a policy.
const MAX_ROUTES: usize = 10_000;
/// Most methods, or headers, of one match.
const MAX_CONDITIONS: usize = 64;
/// The methods that there are; others are allowed too.
const METHODS: [&str; 9] = [
    "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH",
];

/// The routes, in the order of the file; `None` for one that is wrong.
pub(super) fn compile(
    file: &GatewayFile,
    names: &mut Names<'_>,
    report: &Report<'_>,
) -> Vec<Option<Route>> {
    let routes = file.routes.get();
    if routes.is_none_or(Vec::is_empty) && !file.routes.is_wrong() {
        let place = file.routes.place().unwrap_or_default();
        let finding = Finding::warning(place, "the gateway has no routes: it answers 404 to all");
        report.push(finding.help("add `routes: [{ id: all, upstream: ... }]`"));
    }
    let count = routes.map_or(0, Vec::len);
    check_count(count, MAX_ROUTES, "routes", file.routes.place(), report);
    let mut ids = HashMap::new();
    let mut compiled = Vec::with_capacity(count);
    for field in routes.into_iter().flatten() {
        names.limits.all_seen &= !field.is_wrong();
        names.upstreams.all_seen &= !field.is_wrong();
        compiled.push(
            field
                .placed()
                .and_then(|(route, place)| compile_route(route, place, names, &mut ids, report)),
        );
    }
    compiled
}

fn compile_route<'f>(
    file: &'f RouteFile,
    place: Span,
    names: &mut Names<'_>,
    ids: &mut HashMap<&'f str, Span>,
    report: &Report<'_>,
) -> Option<Route> {
    let errors = report.errors();
    if let Some((id, place)) = file.id.placed() {
        check_name(id, place, report);
        if let Some(first) = ids.insert(id, place) {
            ids.insert(id, first);
            let message = format!("two routes are called {}", quote(id));
            let finding = Finding::error(place, message).related(first, "first here");
            report.push(finding.help("call one of them something else"));
        }
    } else if !file.id.is_written() {
        let finding = Finding::error(place, "a route needs an id, for keys and metrics");
        report.push(finding.help("add `id: NAME`"));
    }
    let upstream = upstream(file, place, names, report);
    let limits = limits(file, names, report);
    let matcher = match file.matcher.get() {
        Some(matcher) => route_match(matcher, report),
        None => RouteMatch::default(),
    };
    let access = access::compile(&file.access, report);
    let is_right = report.errors() == errors && !file.id.is_wrong() && !file.matcher.is_wrong();
    Some(Route {
        id: file.id.get()?.clone(),
        matcher,
        upstream: upstream?,
        limits,
        access,
    })
    .filter(|_| is_right)
}

fn upstream(
    file: &RouteFile,
    place: Span,
    names: &mut Names<'_>,
    report: &Report<'_>,
) -> Option<usize> {
    let Some((name, place)) = file.upstream.placed() else {
        names.upstreams.all_seen &= !file.upstream.is_wrong();
        if !file.upstream.is_written() {
            let finding = Finding::error(place, "a route needs an upstream: where do requests go?");
            report.push(finding.help("add `upstream: NAME`"));
        }
        return None;
    };
    let index = names.upstreams.use_name(name);
    if index.is_none() {
        let message = format!("there is no upstream {}", quote(name));
        let help = names.upstreams.suggest(name, report);
        report.push(Finding::error(place, message).help(help));
    }
    index
}

/// The rules of all limits that a route names.
fn limits(file: &RouteFile, names: &mut Names<'_>, report: &Report<'_>) -> Vec<usize> {
    names.limits.all_seen &= file.limits.is_all_right();
    let mut limits = Vec::new();
    let mut has_several_rates = false;
    for (name, place) in file.limits.items() {
        let index = names.limits.use_name(name);
        match index.and_then(|index| names.rules.get(index).cloned()) {
            Some(rules) if limits.contains(&rules.start) => {
                let message = format!("{} is here twice", quote(name));
                report.push(Finding::error(place, message).help("keep one of them"));
            }
            Some(rules) => {
                has_several_rates |= rules.len() > 1;
                limits.extend(rules);
            }
            None => no_limit(name, place, names, report),
        }
    }
    let what = if has_several_rates {
        "limits of one route, their rates counted,"
    } else {
        "limits of one route"
    };
    let place = file.limits.place();
    check_count(limits.len(), MAX_LIMITS_PER_CHECK, what, place, report);
    limits
}

/// Reports that a route names what is no limit.
fn no_limit(name: &str, place: Span, names: &Names<'_>, report: &Report<'_>) {
    let of_rate = rates::split_name(name).and_then(|(limit, number)| {
        let (index, _) = names.limits.find(limit)?;
        let rates = names.rules.get(index)?.len();
        (2..=rates).contains(&number).then_some((limit, number))
    });
    report.push(if let Some((limit, number)) = of_rate {
        let limit = quote(limit);
        let message = format!("{} is rate {number} of {limit}, not a limit", quote(name));
        Finding::error(place, message).help(format!("name {limit}: all of its rates hold"))
    } else {
        let message = format!("there is no limit {}", quote(name));
        Finding::error(place, message).help(names.limits.suggest(name, report))
    });
}

fn route_match(file: &MatchFile, report: &Report<'_>) -> RouteMatch {
    let mut matcher = RouteMatch::default();
    let conditions = file.conditions();
    for (name, place, value) in conditions.iter() {
        match name.split_once(':') {
            None if name == "path" => {
                matcher.path = one(value, report).and_then(|(text, place)| {
                    let parsed = text.parse::<PathPattern>();
                    told(
                        parsed,
                        |error| (error.to_string(), error.help()),
                        text,
                        place,
                        report,
                    )
                });
            }
            None if name == "host" => {
                matcher.host = one(value, report).and_then(|(text, place)| {
                    let parsed = text.parse::<HostPattern>();
                    told(
                        parsed,
                        |error| (error.to_string(), error.help()),
                        text,
                        place,
                        report,
                    )
                });
            }
            None if name == "method" => matcher.methods = methods(value, report),
            Some(("header", header)) if is_token(header) => {
                if let Some((text, _)) = one(value, report) {
                    matcher
                        .headers
                        .push((header.to_ascii_lowercase(), Box::from(text.as_bytes())));
                }
            }
            _ => unknown_condition(name, place, report),
        }
    }
    check_count(
        matcher.methods.len(),
        MAX_CONDITIONS,
        "methods",
        None,
        report,
    );
    check_count(
        matcher.headers.len(),
        MAX_CONDITIONS,
        "headers",
        None,
        report,
    );
    matcher
}

fn unknown_condition(name: &str, place: Span, report: &Report<'_>) {
    let message = format!("{} is nothing to match by", quote(name));
    let help = match closest(name, MatchFile::KEYS.into_iter().chain(["header:"])) {
        Some(meant) if name.starts_with("header") || meant == "header:" => {
            "write `\"header:NAME\": value`".to_owned()
        }
        Some(meant) => format!("did you mean `{meant}`?"),
        None => "match by path, host, method or \"header:NAME\"".to_owned(),
    };
    report.push(Finding::error(place, message).help(help));
}

/// The one text of a condition that takes no list.
fn one<'f>(value: &'f Field<OneOrMany<Scalar>>, report: &Report<'_>) -> Option<(&'f str, Span)> {
    let mut items = value.items();
    let first = items.next();
    if value.get().is_some() && (first.is_none() || items.next().is_some()) {
        let finding = Finding::error(value.place()?, "this takes one text, not a list");
        report.push(finding.help("write a route for each"));
        return None;
    }
    first.map(|(text, place)| (text.as_str(), place))
}

fn methods(value: &Field<OneOrMany<Scalar>>, report: &Report<'_>) -> Vec<String> {
    let mut methods = Vec::new();
    for (method, place) in value.items() {
        let method = method.as_str();
        let upper = method.to_ascii_uppercase();
        if !is_token(method) {
            let message = format!("{} is no method", quote(method));
            report.push(Finding::error(place, message).help("write `GET`, or `[GET, POST]`"));
        } else if upper != method && METHODS.contains(&upper.as_str()) {
            let message = format!("{} is no method: case matters", quote(method));
            report.push(Finding::error(place, message).help(format!("write `{upper}`")));
        } else if !methods.iter().any(|known| known == method) {
            methods.push(method.to_owned());
        }
    }
    if methods.is_empty() && value.get().is_some() && value.items().next().is_none() {
        let place = value.place().unwrap_or_default();
        let finding = Finding::error(place, "no method at all would match nothing");
        report.push(finding.help("leave `method` out to match any"));
    }
    methods
}

/// The value, or nothing where it is an error, which is reported.
fn told<T, E>(
    result: Result<T, E>,
    tell: impl Fn(E) -> (String, &'static str),
    text: &str,
    place: Span,
    report: &Report<'_>,
) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            let (message, help) = tell(error);
            let message = format!("{}: {message}", quote(text));
            report.push(Finding::error(place, message).help(help));
            None
        }
    }
}
