//! nginx and the gateway, told the same.

use std::fmt::Write;
use std::net::SocketAddr;

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
                    "  {of_zone}: {{ {numbers}, shadow: {shadow}, key: [\"header:{header}\"], \
                     on_limit: {{ reject: {{ status: 503 }} }} }}"
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
             gateway:\n  listen: [\"127.0.0.1:0\"]\n  debug_header: {{ from: 127.0.0.1 }}\n  routes:\n{routes}\
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

    /// nginx's, and the gateway's.
    pub(crate) const fn addresses(&self) -> [SocketAddr; 2] {
        [self.nginx.address, self.gateway.gateway]
    }
}
