//! Routes that no request can take, because an earlier one takes all that they match.

use crate::file::{Field, GatewayFile, RouteFile};
use crate::quote::quote;
use crate::report::{Finding, Report};
use crate::route::Route;
use crate::router::Routes;

/// Warns about each; only where all routes are right, since one that is not might have been
/// meant to match something else.
pub(super) fn warn(file: &GatewayFile, routes: &[Option<Route>], report: &Report<'_>) {
    let Some(fields) = file.routes.get() else {
        return;
    };
    let Some(routes) = routes.iter().cloned().collect::<Option<Vec<_>>>() else {
        return;
    };
    for (hidden, earlier) in Routes::new(routes).hidden() {
        let place = |index: usize| {
            let route: &Field<RouteFile> = &fields[index];
            route
                .get()
                .and_then(|route| route.matcher.place())
                .or(route.place())
        };
        let id = |index: usize| {
            let id = fields[index].get().and_then(|route| route.id.get());
            quote(id.map_or("", String::as_str))
        };
        let (Some(at), Some(by)) = (place(hidden), place(earlier)) else {
            continue;
        };
        let message = format!("no request can take the route {}", id(hidden));
        let label = format!("{} takes all that it matches", id(earlier));
        report.push(
            Finding::warning(at, message)
                .related(by, label)
                .help(format!("put {} before {}", id(hidden), id(earlier))),
        );
    }
}
