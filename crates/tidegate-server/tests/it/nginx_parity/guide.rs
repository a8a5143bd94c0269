//! Each pair of the guide's page: what is shown for nginx, and what is shown for the gateway.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::Builder;

use super::rounds::{Case, play_all};
use super::schedule::Group;
use super::sides::Sides;
use crate::client::Sent;

/// What the page has instead of an address of ours.
const UPSTREAM: &str = "127.0.0.1:9000";

/// The configurations of the page, and the policy that follows each.
fn pairs() -> Vec<(String, String)> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/nginx.md");
    let page = fs::read_to_string(page).unwrap();
    let pairs = page.split("\n```nginx\n").skip(1).map(|text| {
        let (nginx, rest) = text.split_once("\n```\n").unwrap();
        let (_, rest) = rest.split_once("\n```yaml policy\n").unwrap();
        let (policy, _) = rest.split_once("```\n").unwrap();
        (nginx.to_owned(), policy.to_owned())
    });
    pairs.collect()
}

/// Answers each request after 200 ms, so that requests that come together are there together.
async fn slow_upstream() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut head = Vec::new();
                while matches!(stream.read_buf(&mut head).await, Ok(1..)) {
                    if !head.ends_with(b"\r\n\r\n") {
                        continue;
                    }
                    head.clear();
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    let ok = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
                    let _ = stream.write_all(ok).await;
                }
            });
        }
    });
    address
}

/// A dozen of one client, a dozen of another, and some at odd times.
fn groups() -> Vec<Group> {
    let group = |millis, client, count| Group {
        millis,
        client,
        count,
    };
    vec![
        group(0, 0, 12),
        group(380, 0, 2),
        group(770, 1, 12),
        group(1_130, 0, 1),
        group(1_590, 1, 3),
        group(2_340, 0, 3),
    ]
}

fn case(nginx: &str, policy: &str, upstream: SocketAddr) -> (Case, Sides) {
    let with_upstream = |text: &str| text.replace(UPSTREAM, &upstream.to_string());
    let (nginx, policy) = (with_upstream(nginx), with_upstream(policy));
    let (http, server) = nginx.split_once("server {\n").unwrap();
    let server = server.trim_end().strip_suffix('}').unwrap();
    let sides = Sides::start(http, server, &policy);
    let case = Case {
        title: nginx,
        sides: sides.addresses(),
        groups: groups(),
        request: Box::new(|client, attempt| Sent {
            from: Ipv4Addr::new(127, 0, 1 + u8::try_from(client).unwrap(), 1 + attempt),
            head: "GET / HTTP/1.1\r\nhost: shop.example\r\nx-tidegate-debug: 1\r\n\r\n".to_owned(),
        }),
    };
    (case, sides)
}

// shows: A1, A2 (refusing), A8 (reject), A9, D3 (limit_req), D3 (limit_conn)
#[test]
fn alone_what_the_guide_shows_for_both_does_the_same() {
    let pairs = pairs();
    assert_eq!(pairs.len(), 6);
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let upstream = slow_upstream().await;
        let all = pairs
            .iter()
            .map(|(nginx, policy)| case(nginx, policy, upstream));
        let (cases, _sides): (Vec<_>, Vec<_>) = all.unzip();
        play_all(cases).await;
    });
}
