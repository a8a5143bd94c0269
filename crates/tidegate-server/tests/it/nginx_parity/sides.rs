//! nginx and the gateway, told the same.

use std::fmt::Write;
use std::net::SocketAddr;

use super::client::{Answer, body_of};
use super::zone::Zone;
use crate::running::{Folder, Nginx, Serve};

/// A place under which both limit alike.
#[derive(Debug)]
pub(crate) struct Place {
    /// Its path and the names of its zones.
    pub(crate) name: String,
    pub(crate) zones: Vec<Zone>,
    pub(crate) dry_run: bool,
}

/// Both, started on free ports.
#[derive(Debug)]
pub(crate) struct Sides {
    pub(crate) nginx: Nginx,
    pub(crate) gateway: Serve,
    _folder: Folder,
}

impl Place {
    /// The name of a zone, and of the limit that is the same.
    pub(crate) fn zone(&self, at: usize) -> String {
        format!("{}-{at}", self.name)
    }

    /// The header by which a zone counts: the first counts clients, all others groups of them.
    const fn header(at: usize) -> &'static str {
        if at == 0 { "client" } else { "group" }
    }
}

impl Sides {
    pub(crate) fn start<'a>(places: impl Iterator<Item = &'a Place>) -> Self {
        let (mut zones, mut locations) = (String::new(), String::new());
        let (mut limits, mut routes) = (String::new(), String::new());
        for place in places {
            let name = &place.name;
            let mut names = Vec::new();
            writeln!(locations, "location = /{name} {{ empty_gif;").unwrap();
            for (at, zone) in place.zones.iter().enumerate() {
                let (of_zone, header) = (place.zone(at), Place::header(at));
                let (rate, words) = (zone.nginx_rate(), zone.nginx_words());
                writeln!(
                    zones,
                    "limit_req_zone $http_{header} zone={of_zone}:64k rate={rate};"
                )
                .unwrap();
                writeln!(locations, "limit_req zone={of_zone}{words};").unwrap();
                let (numbers, shadow) = (zone.policy(), place.dry_run);
                writeln!(
                    limits,
                    "  {of_zone}: {{ {numbers}, shadow: {shadow}, key: [\"header:{header}\"] }}"
                )
                .unwrap();
                names.push(of_zone);
            }
            let dry_run = if place.dry_run { "on" } else { "off" };
            writeln!(locations, "limit_req_dry_run {dry_run}; }}").unwrap();
            let names = names.join(", ");
            writeln!(
                routes,
                "    - {{ id: {name}, match: {{ path: /{name} }}, upstream: echo, \
                 limits: [{names}] }}"
            )
            .unwrap();
        }
        let http = format!(
            "{zones} add_header x-limit $limit_req_status always;\n\
             add_header x-time \"$msec $request_time\" always;\n"
        );
        let policy = format!(
            "limits:\n{limits}\
             upstreams: {{ echo: {{ builtin: echo }} }}\n\
             gateway:\n  listen: [\"127.0.0.1:0\"]\n  routes:\n{routes}\
             admin: {{ listen: \"127.0.0.1:0\" }}\n"
        );
        let folder = Folder::new();
        let policy = folder.write("policy.yaml", &policy);
        Self {
            nginx: Nginx::with(&http, &locations),
            gateway: Serve::start(&policy),
            _folder: folder,
        }
    }

    pub(crate) const fn doors(&self) -> Doors {
        Doors {
            sides: [self.nginx.address, self.gateway.gateway],
            admin: self.gateway.admin,
        }
    }
}

/// Where both are asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doors {
    /// nginx's, and the gateway's.
    pub(crate) sides: [SocketAddr; 2],
    admin: SocketAddr,
}

impl Doors {
    /// How often the gateway's limits of a dry run have decided what.
    pub(crate) async fn counted(self, place: &Place) -> Counted {
        if !place.dry_run {
            return Counted::default();
        }
        let metrics = body_of(self.admin, "/metrics").await;
        let of_limit = |name: &str| {
            ["allowed", "shadow_delayed", "shadow_denied"].map(|outcome| {
                let labels = format!("{{limit=\"{name}\",outcome=\"{outcome}\"}} ");
                let metric = format!("tidegate_decisions_total{labels}");
                let mut lines = metrics.lines();
                let value = lines.find_map(|line| line.strip_prefix(&*metric));
                value.unwrap_or_else(|| panic!("{metric}")).parse().unwrap()
            })
        };
        let zones = 0..place.zones.len();
        Counted(zones.map(|at| of_limit(&place.zone(at))).collect())
    }
}

/// Of each limit: requests that passed, would have been delayed, and would have been refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted(Vec<[u64; 3]>);

impl Counted {
    pub(crate) fn since(&self, before: &Self) -> Self {
        let pairs = self.0.iter().zip(&before.0);
        let zones = pairs.map(|(now, before)| [0, 1, 2].map(|at| now[at] - before[at]));
        Self(zones.collect())
    }

    /// Whether nginx says the same. It does not say which zone would have refused: a request that
    /// one of ours would have refused is counted at that one only, and may be so at several.
    pub(crate) fn agrees_with(&self, answers: &[[Answer; 2]]) -> bool {
        let count = |status: &str| {
            let nginx = answers.iter().map(|[nginx, _]| nginx);
            nginx.filter(|nginx| nginx.limit_status == status).count() as u64
        };
        let both = [count("passed"), count("delayed_dry_run")];
        let refused = count("rejected_dry_run");
        let by_all: u64 = self.0.iter().map(|[.., refused]| refused).sum();
        let mut zones = self.0.iter();
        by_all >= refused && zones.all(|zone| zone[..2] == both && zone[2] <= refused)
    }
}
