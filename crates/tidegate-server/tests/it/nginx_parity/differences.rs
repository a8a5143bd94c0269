//! Where we do otherwise than nginx, on purpose: what either does.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::runtime::Builder;

use super::sides::Sides;
use crate::client::{Sent, read_head, read_until, soon};
use crate::held::Held;
use crate::running::status;

/// How long something may take that is over at once on a machine that has nothing else to do.
const SETTLED: Duration = Duration::from_secs(5);

/// `limit_req` by client and `limit_conn` in all, or what they are here.
async fn sides(rate: &str, burst: u32, words: &str, concurrency: u32) -> (Sides, Held) {
    let held = Held::start().await;
    let upstream = held.address;
    let zones = format!(
        "limit_req_zone $http_client zone=rate:64k rate={rate}r/m;\n\
         limit_conn_zone $server_port zone=all:64k;"
    );
    let server = format!(
        "limit_req zone=rate burst={burst} {words};\nlimit_conn all {concurrency};\n\
         location / {{ proxy_pass http://{upstream}; proxy_buffering off; }}"
    );
    let (burst, nodelay) = (burst + 1, words == "nodelay");
    let policy = format!(
        "limits:\n  rate: {{ algorithm: nginx, rate: {rate}/min, burst: {burst}, \
         nodelay: {nodelay}, key: [\"header:client\"] }}\n  \
         all: {{ concurrency: {concurrency} }}\n\
         upstreams: {{ held: {{ servers: [\"{upstream}\"] }} }}\n\
         gateway:\n  routes: [{{ id: all, upstream: held, limits: [rate, all] }}]\n"
    );
    (Sides::start(&zones, &server, &policy), held)
}

async fn send(side: SocketAddr, path: &str, client: &str) -> TcpStream {
    let head = format!("GET {path} HTTP/1.1\r\nhost: a\r\nclient: {client}\r\n\r\n");
    let from = Ipv4Addr::LOCALHOST;
    let sent = Sent { from, head };
    let mut stream = sent.connect(side).await;
    stream.write_all(sent.head.as_bytes()).await.unwrap();
    stream
}

/// Whether a request has come to the server, or was refused; if it has come it is answered.
async fn is_served(side: SocketAddr, held: &Held, path: &str, client: &str) -> bool {
    let mut stream = send(side, path, client).await;
    tokio::select! {
        () = held.has_come(path) => {}
        head = read_head(&mut stream) => {
            assert!([429, 503].contains(&status(&head)), "{head}");
            return false;
        }
    }
    answer(held, path, &mut stream).await;
    true
}

async fn answer(held: &Held, path: &str, stream: &mut TcpStream) {
    held.begin(path);
    held.finish(path);
    soon(read_until(stream, "-last")).await;
}

/// nginx asks `limit_req` first and forgets it: whoever `limit_conn` refuses then has used up some
/// of the rate.
// shows: A6, D3 (limit_req), D3 (limit_conn)
#[test]
fn who_finds_no_place_has_used_nothing_of_the_rate() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (sides, held) = sides("1", 1, "nodelay", 1).await;
        for (side, is_charged) in sides.addresses().into_iter().zip([true, false]) {
            let path = |name: &str| format!("/{}/{name}", side.port());
            let mut inside = send(side, &path("inside"), "a").await;
            soon(held.has_come(&path("inside"))).await;
            assert!(!is_served(side, &held, &path("refused"), "a").await);
            answer(&held, &path("inside"), &mut inside).await;
            // The place is free again: who was refused has it only where the rate still lets it in.
            let start = Instant::now();
            let mut served = false;
            for at in 0.. {
                served = is_served(side, &held, &path(&format!("next-{at}")), "a").await;
                if served || start.elapsed() > SETTLED || is_charged && at == 100 {
                    break;
                }
            }
            assert_eq!(served, !is_charged, "{}", path(""));
        }
    });
}

/// nginx counts a request that `limit_req` delays as in flight only when it has waited: here it
/// has its place from the decision on, and all it takes is taken at one time.
// shows: A6, D3 (limit_req), D3 (limit_conn)
#[test]
fn who_waits_for_the_rate_has_its_place_already() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (sides, held) = sides("1", 5, "", 1).await;
        for (side, has_place) in sides.addresses().into_iter().zip([false, true]) {
            let path = |name: &str| format!("/{}/{name}", side.port());
            assert!(is_served(side, &held, &path("first"), "a").await);
            let waits = send(side, &path("waits"), "a").await;
            let start = Instant::now();
            let delayed = "tidegate_decisions_total{limit=\"rate\",outcome=\"delayed\"}";
            while has_place && sides.gateway.metric(delayed) != Ok(1.0) {
                assert!(start.elapsed() < SETTLED, "it waits");
            }
            let mut refused = false;
            for at in 0.. {
                // Each of another client, whom the rate lets in.
                let (path, client) = (path(&at.to_string()), format!("b{at}"));
                refused = !is_served(side, &held, &path, &client).await;
                if refused || start.elapsed() > SETTLED || !has_place && at == 100 {
                    break;
                }
            }
            assert_eq!(refused, has_place, "{}", path(""));
            drop(waits);
        }
    });
}

/// A client that goes away while it waits has used its part of the rate at nginx; what it does here
/// is in the gateway's own tests
/// (`a_client_that_goes_away_while_it_waits_gives_its_permits_back`).
#[test]
fn at_nginx_who_does_not_wait_for_its_turn_has_used_it() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (sides, held) = sides("1", 1, "", 9).await;
        let nginx = sides.nginx.address;
        assert!(is_served(nginx, &held, "/first", "a").await);
        let waits = send(nginx, "/waits", "a").await;
        assert!(!is_served(nginx, &held, "/too-many", "a").await);
        drop(waits);
        let gone = async {
            while !sides.nginx.statuses().contains(&499) {
                tokio::task::yield_now().await;
            }
        };
        soon(gone).await;
        assert!(!is_served(nginx, &held, "/after", "a").await);
    });
}
