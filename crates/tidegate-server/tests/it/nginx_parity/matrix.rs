//! `limit_req` in all that it can say: rate x burst x delay x dry run x one or two zones.

use std::fmt::Write;
use std::net::Ipv4Addr;

use tokio::runtime::Builder;

use super::rounds::{Case, play_all};
use super::schedule::{Group, schedule};
use super::sides::Sides;
use super::zone::{Delay, Zone};
use crate::client::Sent;

/// A place under which both limit alike.
#[derive(Debug)]
struct Place {
    /// Its path and the names of its zones.
    name: String,
    zones: Vec<Zone>,
    dry_run: bool,
    groups: Vec<Group>,
}

impl Place {
    /// The name of a zone, and of the limit that is the same.
    fn zone(&self, at: usize) -> String {
        format!("{}-{at}", self.name)
    }

    /// The header by which a zone counts: the first counts clients, all others groups of them.
    const fn header(at: usize) -> &'static str {
        if at == 0 { "client" } else { "group" }
    }
}

/// rate x burst x delay x dry run x one or two zones.
fn matrix() -> Vec<Place> {
    let second = [
        Zone {
            rate: (5, false),
            burst: 7,
            delay: Delay::None,
        },
        Zone {
            rate: (300, true),
            burst: 9,
            delay: Delay::Beyond(4),
        },
    ];
    let mut places = Vec::new();
    for rate in [(2, false), (10, false), (100, true)] {
        for burst in [0, 4, 8] {
            for delay in [Delay::All, Delay::Beyond(2), Delay::None] {
                for clients in [1, 2] {
                    for dry_run in [false, true] {
                        let at = places.len();
                        let mut of_place = vec![Zone { rate, burst, delay }];
                        of_place.extend((clients == 2).then(|| second[at / 4 % 2]));
                        places.push(Place {
                            name: format!("c{at}"),
                            groups: schedule(&of_place, clients, at as u64),
                            zones: of_place,
                            dry_run,
                        });
                    }
                }
            }
        }
    }
    places
}

/// 7 a minute are cut to 116 thousandths a second: the second waits 8.620 s, not 8.571.
fn cut_rate() -> Place {
    let zone = Zone {
        rate: (7, true),
        burst: 1,
        delay: Delay::All,
    };
    let three_at_once = Group {
        millis: 0,
        client: 0,
        count: 3,
    };
    Place {
        name: "cut".to_owned(),
        zones: vec![zone],
        dry_run: false,
        groups: vec![three_at_once],
    }
}

/// Both sides, told all of it.
fn start(places: &[Place]) -> Sides {
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
    let policy = format!(
        "limits:\n{limits}upstreams: {{ echo: {{ builtin: echo }} }}\n\
         gateway:\n  routes:\n{routes}"
    );
    Sides::start(&zones, &locations, &policy)
}

/// The place as a case.
fn case(place: Place, sides: &Sides) -> Case {
    let mut title = String::new();
    for zone in &place.zones {
        let (rate, words) = (zone.nginx_rate(), zone.nginx_words());
        write!(title, "rate={rate}{words}; ").unwrap();
    }
    write!(title, "dry run: {}", place.dry_run).unwrap();
    let name = place.name;
    Case {
        title,
        sides: sides.addresses(),
        groups: place.groups,
        request: Box::new(move |client, number| Sent {
            from: Ipv4Addr::LOCALHOST,
            head: format!(
                "GET /{name} HTTP/1.1\r\nhost: a\r\nclient: {client}-{number}\r\n\
                 group: {number}\r\nx-tidegate-debug: 1\r\n\r\n"
            ),
        }),
    }
}

// shows: A1, A6, A9, B4 (nginx), D3 (limit_req)
#[test]
fn alone_nginx_and_the_gateway_let_through_refuse_and_delay_alike() {
    let mut places = vec![cut_rate()];
    places.extend(matrix());
    let sides = start(&places);
    let cases = places.into_iter().map(|place| case(place, &sides));
    let cases = cases.collect();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(play_all(cases));
}
