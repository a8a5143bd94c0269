//! Wide policies: what a decision costs with more routes, and with more overrides.
//!
//! A decision is what the gateway does for a request: find its route, and ask the route's limits.
//! The policies are read from text, as files are. Clients, and so the keys of the store, are the
//! same in each; what differs is what is counted in the title.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write;
use std::hash::Hash;
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;
use std::sync::Arc;

use tidegate::{Clock, SystemClock, Timestamp};
use tidegate_node::{Admission, Call, Node, Outcome, Snapshot};
use tidegate_policy::Request;

use crate::keys::Random;
use crate::pairs::{Side, row_of_widths};
use crate::quanta_clock::CachedClock;
use crate::waiters;

const ROUTES: [usize; 3] = [10, 1_000, 10_000];
const OVERRIDES: [usize; 3] = [0, 1_000, 100_000];
/// Clients that requests come from, each a key.
const CLIENTS: usize = 100_000;
/// Different requests; a power of two.
const REQUESTS: usize = 1 << 17;

/// Runs all rows whose title has `filter` in it.
pub(crate) fn run(filter: &str) -> Result<(), String> {
    println!(
        "width: ns per decision (the route and its limit), five paired runs; ratio to the first"
    );
    let made = |all: [Result<Wide, String>; 3]| all.into_iter().collect::<Result<Vec<_>, _>>();
    let title = "routes; 100,000 clients, no overrides";
    if title.contains(filter) {
        let wide = made(ROUTES.map(|routes| Wide::new(routes, 0)))?;
        rows(title, filter, &ROUTES, &wide);
        let maps = ROUTES.map(|routes| map(0..routes, |n| format!("service-{n}")));
        let find = |request: &Sent, map: &HashMap<String, usize>| {
            let segment = request.path.split('/').nth(1);
            segment.and_then(|segment| map.get(segment)).copied()
        };
        floors(title, &ROUTES, &wide, &maps, find);
    }
    let title = "overrides; 100,000 clients, 10 routes";
    if title.contains(filter) {
        let wide = made(OVERRIDES.map(|overrides| Wide::new(10, overrides)))?;
        rows(title, filter, &OVERRIDES, &wide);
        let maps = OVERRIDES.map(|overrides| map(0..overrides, client));
        let find =
            |request: &Sent, map: &HashMap<Ipv4Addr, usize>| map.get(&request.client).copied();
        floors(title, &OVERRIDES, &wide, &maps, find);
    }
    waiters::run(filter)
}

fn map<K: Hash + Eq>(of: Range<usize>, key: impl Fn(usize) -> K) -> HashMap<K, usize> {
    of.map(|n| (key(n), n)).collect()
}

fn rows(title: &str, filter: &str, widths: &[usize; 3], wide: &[Wide]) {
    let snapshots: Vec<_> = wide.iter().map(|wide| wide.node.snapshot()).collect();
    let names = widths.map(|width| width.to_string());
    let decide = |at: usize| {
        let (wide, snapshot): (&Wide, &Snapshot) = (&wide[at], &snapshots[at]);
        move |index: usize| {
            let request = &wide.requests[index & (REQUESTS - 1)];
            black_box(wide.decide(snapshot, request).is_allowed());
        }
    };
    let sides: Vec<_> = (0..)
        .zip(&names)
        .map(|(at, name)| Side::new(name, decide(at)))
        .collect();
    row_of_widths(title, filter, &sides);
    drop(sides);
    for wide in wide {
        wide.verify();
    }
}

/// The same requests, looked up in a map as wide: what of it is memory.
fn floors<K: Hash + Eq + Sync>(
    title: &str,
    widths: &[usize; 3],
    wide: &[Wide],
    maps: &[HashMap<K, usize>; 3],
    find: impl Fn(&Sent, &HashMap<K, usize>) -> Option<usize> + Copy + Sync,
) {
    let names = widths.map(|width| width.to_string());
    for ((wide, map), width) in wide.iter().zip(maps).zip(widths) {
        assert_eq!(map.len(), *width, "as wide");
        let found = wide
            .requests
            .iter()
            .filter(|sent| find(sent, map).is_some());
        let expected = wide
            .requests
            .iter()
            .filter(|sent| wide.overrides == 0 || sent.expected.1);
        let expected = if *width == 0 { 0 } else { expected.count() };
        assert_eq!(found.count(), expected, "found");
    }
    let look_up = |at: usize| {
        let (wide, map) = (&wide[at], &maps[at]);
        move |index: usize| {
            black_box(find(&wide.requests[index & (REQUESTS - 1)], map));
        }
    };
    let sides: Vec<_> = (0..)
        .zip(&names)
        .map(|(at, name)| Side::new(name, look_up(at)))
        .collect();
    row_of_widths(
        &format!("  floor, a map of so many alone, for the same {title}"),
        "",
        &sides,
    );
}

/// A node of a policy that is as wide as is said, and what comes to it.
struct Wide {
    node: Arc<Node>,
    requests: Vec<Sent>,
    routes: usize,
    overrides: usize,
    now: Timestamp,
}

/// A request of a client for a route.
struct Sent {
    client: Ipv4Addr,
    path: String,
    /// Which route it takes, and whether its client has numbers of its own.
    expected: (usize, bool),
}

fn client(n: usize) -> Ipv4Addr {
    Ipv4Addr::from(0x0A00_0000 | n as u32)
}

/// What one is allowed, and what one is that has an override: the burst tells them apart.
const OWN: u64 = 1_000_000;
const OVERRIDDEN: u64 = 2_000_000;

fn policy(routes: usize, overrides: usize) -> String {
    let mut text = format!(
        "limits:\n  per-client:\n    rate: {OWN}/s\n    burst: {OWN}\n    key: [client_ip]\n"
    );
    if overrides > 0 {
        text += "    overrides:\n";
    }
    for n in 0..overrides {
        // All of them different: each is a meter of its own.
        let (client, rate) = (client(n), OWN + n as u64);
        let _ = writeln!(
            text,
            "    - {{ match: {{ client_ip: {client} }}, rate: {rate}/s, burst: {OVERRIDDEN} }}"
        );
    }
    text += "upstreams:\n  u: { builtin: echo }\ngateway:\n  routes:\n";
    for n in 0..routes {
        let _ = writeln!(
            text,
            "  - {{ id: r{n}, match: {{ path: /service-{n}/** }}, upstream: u, \
             limits: per-client }}"
        );
    }
    text
}

impl Wide {
    fn new(routes: usize, overrides: usize) -> Result<Self, String> {
        let loaded = tidegate_policy::parse("wide", &policy(routes, overrides));
        let loaded = loaded.map_err(|problems| problems.to_string())?;
        // Time stands: reading it is not what is measured.
        let clock = CachedClock(SystemClock::new().now());
        let now = clock.now();
        let node = Node::new(loaded.policy, Arc::new(clock)).map_err(|error| error.to_string())?;
        let mut random = Random(42);
        // Each client comes, and so do all routes: the first requests go through them in turn.
        let mut met: Vec<_> = (0..REQUESTS)
            .map(|n| {
                let other = |many: usize, random: u64| (random % many as u64) as usize;
                if n < CLIENTS {
                    return (n % routes, n);
                }
                (other(routes, random.next()), other(CLIENTS, random.next()))
            })
            .collect();
        for at in (1..REQUESTS).rev() {
            met.swap(at, (random.next() % (at as u64 + 1)) as usize);
        }
        // Made in the order in which they come: their own memory is not what is measured.
        let request = |(route, n): (usize, usize)| Sent {
            client: client(n),
            path: format!("/service-{route}/items/{n}"),
            expected: (route, n < overrides),
        };
        let requests = met.into_iter().map(request).collect();
        let wide = Self {
            node,
            requests,
            routes,
            overrides,
            now,
        };
        wide.verify();
        Ok(wide)
    }

    fn decide<'a>(&self, snapshot: &'a Snapshot, request: &Sent) -> Admission<'a> {
        let Some(route) = snapshot.policy().route(request) else {
            return Admission::default();
        };
        snapshot.decide(&Call {
            request,
            route: &route.id,
            limits: &route.limits,
            permits: 1,
            max_wait: None,
            peek: false,
            now: self.now,
        })
    }

    /// That the policy is as wide as it says, that each request takes its own route under its
    /// own numbers and is allowed, and that nothing was refused or forgotten on the way.
    fn verify(&self) {
        let snapshot = self.node.snapshot();
        let routes = snapshot
            .policy()
            .gateway
            .as_ref()
            .map(|gateway| gateway.routes.len());
        assert_eq!(routes, Some(self.routes), "routes");
        let limit = &snapshot.limits()[0];
        assert_eq!(limit.rule().overrides.len(), self.overrides, "overrides");
        let mut met = vec![false; self.routes];
        for request in &self.requests {
            let (expected, overridden) = request.expected;
            let route = snapshot.policy().route(request);
            let route = route.and_then(|route| route.id.strip_prefix('r')?.parse().ok());
            assert_eq!(route, Some(expected), "the route of {}", request.path);
            met[expected] = true;
            let admission = self.decide(&snapshot, request);
            let burst = if overridden { OVERRIDDEN } else { OWN };
            let told = admission
                .decision()
                .map(|told| (told.is_allowed(), told.limit));
            assert_eq!(
                told,
                Some((true, burst)),
                "the numbers of {}",
                request.client
            );
        }
        assert!(met.iter().all(|met| *met), "all routes are asked for");
        assert_eq!(limit.store_stats().keys, CLIENTS, "keys in use");
        assert_eq!(limit.counts().get(Outcome::Denied), 0, "refused");
    }
}

impl Request for Sent {
    fn client_ip(&self) -> Option<IpAddr> {
        Some(self.client.into())
    }

    fn method(&self) -> &'static str {
        "GET"
    }

    fn host(&self) -> Option<&str> {
        Some("example.org")
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn header(&self, _name: &str) -> Option<Cow<'_, [u8]>> {
        None
    }

    fn cookie(&self, _name: &str) -> Option<Cow<'_, [u8]>> {
        None
    }

    fn query(&self, _name: &str) -> Option<Cow<'_, [u8]>> {
        None
    }
}
