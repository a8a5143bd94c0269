use std::borrow::Cow;
use std::net::IpAddr;

use proptest::prelude::*;

use super::*;
use crate::access::Access;
use crate::route::RouteMatch;

#[derive(Clone, Debug)]
struct Asked {
    method: &'static str,
    host: Option<&'static str>,
    path: String,
    header: Option<&'static str>,
}

impl Request for Asked {
    fn client_ip(&self) -> Option<IpAddr> {
        None
    }
    fn method(&self) -> &str {
        self.method
    }
    fn host(&self) -> Option<&str> {
        self.host
    }
    fn path(&self) -> &str {
        &self.path
    }
    fn header(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        assert_eq!(name, "v");
        self.header.map(|value| Cow::Borrowed(value.as_bytes()))
    }
    fn cookie(&self, _: &str) -> Option<Cow<'_, [u8]>> {
        None
    }
    fn query(&self, _: &str) -> Option<Cow<'_, [u8]>> {
        None
    }
}

fn get(path: &str) -> Asked {
    Asked {
        method: "GET",
        host: Some("a.com"),
        path: path.to_owned(),
        header: None,
    }
}

fn route(id: impl Into<String>, matcher: RouteMatch) -> Route {
    Route {
        id: id.into(),
        matcher,
        upstream: 0,
        limits: Vec::new(),
        access: Access::default(),
    }
}

fn by_path(path: &str) -> RouteMatch {
    RouteMatch {
        path: Some(path.parse().unwrap()),
        ..RouteMatch::default()
    }
}

fn found(routes: &Routes, request: &Asked) -> Option<String> {
    routes.find(request).map(|route| route.id.clone())
}

#[test]
fn the_first_that_matches_wins_wherever_it_is_filed() {
    let paths = ["/a/x", "/**/x", "/a/**", "/**"];
    let routes: Routes = paths
        .iter()
        .map(|path| route(*path, by_path(path)))
        .collect();
    assert_eq!(found(&routes, &get("/a/x")).as_deref(), Some("/a/x"));
    assert_eq!(found(&routes, &get("/a/y/x")).as_deref(), Some("/**/x"));
    assert_eq!(found(&routes, &get("/a")).as_deref(), Some("/a/**"));
    assert_eq!(found(&routes, &get("/b")).as_deref(), Some("/**"));
    assert_eq!(found(&routes, &get("*")), None);
    assert_eq!(found(&Routes::default(), &get("/")), None);
}

#[test]
fn hosts_are_found_in_any_case_and_below_wildcards() {
    let host = |text: &str| RouteMatch {
        host: Some(text.parse().unwrap()),
        ..RouteMatch::default()
    };
    let hosts = ["shop.example.com", "*.example.com", "*.com"];
    let routes: Routes = hosts.iter().map(|text| route(*text, host(text))).collect();
    let at = |host| found(&routes, &Asked { host, ..get("/") });
    assert_eq!(
        at(Some("SHOP.example.com")).as_deref(),
        Some("shop.example.com")
    );
    assert_eq!(
        at(Some("b.a.example.com.")).as_deref(),
        Some("*.example.com")
    );
    assert_eq!(at(Some("example.com")).as_deref(), Some("*.com"));
    assert_eq!(at(Some(".com")), None);
    assert_eq!(at(None), None);
    let long: &'static str = Box::leak(format!("{}.com", "a".repeat(300)).into_boxed_str());
    assert_eq!(
        at(Some(long)),
        None,
        "longer than any host that a pattern can have"
    );
}

#[test]
fn ten_thousand_routes_are_found_without_looking_at_each() {
    let paths = (0..10_000).map(|n| format!("/service-{n}/**"));
    let routes: Routes = paths
        .map(|path| route(path.clone(), by_path(&path)))
        .collect();
    let longest = routes.nodes.iter().map(|node| node.routes.len()).max();
    assert_eq!(longest, Some(1), "one candidate for each request");
    assert_eq!(
        found(&routes, &get("/service-9999/x")).as_deref(),
        Some("/service-9999/**")
    );
}

fn matcher() -> impl Strategy<Value = RouteMatch> {
    let paths = vec![
        "/**",
        "/a/**",
        "/a/*",
        "/a/b",
        "/*/b",
        "/a/{id}/c",
        "/",
        "/a",
        "/**/c",
    ];
    let hosts = vec!["a.com", "b.a.com", "*.a.com", "*.com"];
    let methods = vec![vec![], vec!["GET"], vec!["GET", "PUT"]];
    (
        prop::option::of(prop::sample::select(paths)),
        prop::option::of(prop::sample::select(hosts)),
        prop::sample::select(methods),
        prop::option::of(prop::sample::select(vec!["1", "2"])),
    )
        .prop_map(|(path, host, methods, header)| RouteMatch {
            path: path.map(|path| path.parse().unwrap()),
            host: host.map(|host| host.parse().unwrap()),
            methods: methods.into_iter().map(str::to_owned).collect(),
            headers: header
                .map(|value| ("v".into(), value.as_bytes().into()))
                .into_iter()
                .collect(),
        })
}

fn asked() -> impl Strategy<Value = Asked> {
    let paths = vec![
        "/", "/a", "/a/", "/a/b", "/a/b/c", "/b", "/a//c", "/c", "*", "/b/b",
    ];
    let hosts = vec!["a.com", "b.A.com", "c.b.a.com", "com", "x.com"];
    (
        prop::sample::select(vec!["GET", "PUT", "get"]),
        prop::option::of(prop::sample::select(hosts)),
        prop::sample::select(paths),
        prop::option::of(prop::sample::select(vec!["1", "2", ""])),
    )
        .prop_map(|(method, host, path, header)| Asked {
            method,
            host,
            path: path.to_owned(),
            header,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn the_index_finds_what_looking_at_each_finds(
        matchers in prop::collection::vec(matcher(), 0..12),
        requests in prop::collection::vec(asked(), 20),
    ) {
        let routes: Routes =
            matchers.into_iter().enumerate().map(|(n, m)| route(n.to_string(), m)).collect();
        for request in &requests {
            let slowly = routes.iter().find(|route| route.matcher.matches(request));
            prop_assert_eq!(routes.find(request), slowly);
        }
    }

    #[test]
    fn a_route_that_is_said_to_be_hidden_is_never_taken(
        matchers in prop::collection::vec(matcher(), 0..12),
        requests in prop::collection::vec(asked(), 20),
    ) {
        let routes: Routes =
            matchers.into_iter().enumerate().map(|(n, m)| route(n.to_string(), m)).collect();
        for (hidden, earlier) in routes.hidden() {
            prop_assert!(earlier < hidden);
            for request in &requests {
                let taken = found(&routes, request);
                prop_assert_ne!(taken, Some(hidden.to_string()));
            }
        }
    }

    #[test]
    fn every_cover_is_found_through_the_index(matchers in prop::collection::vec(matcher(), 0..12)) {
        let routes: Routes =
            matchers.into_iter().enumerate().map(|(n, m)| route(n.to_string(), m)).collect();
        let slowly: Vec<_> = (0..routes.len())
            .filter_map(|n| {
                let covers = |m: &usize| routes[*m].matcher.covers(&routes[n].matcher);
                (0..n).find(covers).map(|earlier| (n, earlier))
            })
            .collect();
        prop_assert_eq!(routes.hidden(), slowly);
    }
}
