//! What reaches the upstream of a request, and the client of an answer.

use crate::gateway::{Running, parse};
use crate::upstream::{OK, Upstream};
use crate::wire::Message;

const TRUST_LOOPBACK: &str = "  trusted_proxies: [\"127.0.0.0/8\"]";

/// What the upstream sees of `request`.
async fn forwarded(request: &str, gateway: &str) -> Message {
    let mut upstream = Upstream::answering(OK).await;
    let gateway = Running::before(&[upstream.address], "", gateway);
    let answer = gateway.connect().await.ask(request).await;
    assert_eq!(answer.status(), 200, "{answer:?}");
    upstream.seen().await
}

/// How the gateway itself answers `request`.
async fn refused(request: &str) -> u16 {
    let mut upstream = Upstream::answering(OK).await;
    let gateway = Running::before(&[upstream.address], "", "");
    let answer = gateway.connect().await.ask(request).await;
    assert_eq!(
        answer.get("content-type").unwrap(),
        "application/problem+json"
    );
    assert!(!upstream.has_seen());
    answer.status()
}

#[tokio::test]
async fn target_and_host_are_as_they_came() {
    let seen = forwarded(
        "GET /a/../%62?c=%20d HTTP/1.1\r\nHost: Shop.example:8080\r\n\r\n",
        "",
    )
    .await;
    assert_eq!(seen.head.start, "GET /a/../%62?c=%20d HTTP/1.1");
    assert_eq!(seen.get("host").unwrap(), "Shop.example:8080");
    assert_eq!(seen.get("via"), None);
}

#[tokio::test]
async fn an_absolute_target_becomes_a_path_and_a_host() {
    let request = "GET http://shop.example:81/a?b HTTP/1.1\r\nHost: Shop.example:81\r\n\r\n";
    let seen = forwarded(request, "").await;
    assert_eq!(seen.head.start, "GET /a?b HTTP/1.1");
    assert_eq!(seen.get("host").unwrap(), "shop.example:81");
    assert_eq!(seen.get("x-forwarded-host").unwrap(), "shop.example:81");
}

// shows: D1 (HTTP/1.1 to fixed servers)
#[tokio::test]
async fn fields_of_one_hop_end_here_in_both_directions() {
    let request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\n\
         Connection: X-Other\r\nX-Other: 1\r\nKeep-Alive: timeout=5\r\nTE: trailers\r\n\
         Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic eA==\r\nUpgrade: h2c\r\n\
         HTTP2-Settings: x\r\nX-Stays: 1\r\n\r\n";
    let answer = "HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\n\
         Keep-Alive: timeout=5\r\nProxy-Authenticate: Basic\r\nX-Stays: 1\r\n\
         Content-Length: 0\r\n\r\n";
    let mut upstream = Upstream::answering(answer).await;
    let gateway = Running::before(&[upstream.address], "", "");
    let answer = gateway.connect().await.ask(request).await;
    let seen = upstream.seen().await;
    let gone = [
        "connection",
        "keep-alive",
        "te",
        "proxy-connection",
        "proxy-authorization",
        "upgrade",
        "http2-settings",
        "x-hop",
        "x-other",
        "proxy-authenticate",
    ];
    for field in gone {
        assert_eq!(seen.get(field), None, "{field} of the request");
        assert_eq!(answer.get(field), None, "{field} of the answer");
    }
    assert_eq!(seen.get("x-stays").unwrap(), "1");
    assert_eq!(answer.get("x-stays").unwrap(), "1");
}

/// A client that names Host or Content-Length in Connection would change what the request
/// means to the next hop.
#[tokio::test]
async fn connection_cannot_remove_what_a_request_means() {
    let request = "POST / HTTP/1.1\r\nHost: a\r\nConnection: host, content-length, \
         x-forwarded-for\r\nContent-Length: 2\r\n\r\nhi";
    let seen = forwarded(request, "").await;
    assert_eq!(seen.get("host").unwrap(), "a");
    assert_eq!(seen.get("content-length").unwrap(), "2");
    assert_eq!(seen.get("x-forwarded-for").unwrap(), "127.0.0.1");
    assert_eq!(seen.body, b"hi");
}

#[tokio::test]
async fn what_an_untrusted_peer_says_of_the_client_is_dropped() {
    let request = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 6.6.6.6\r\n\
         X-Forwarded-Proto: https\r\nX-Forwarded-Host: evil\r\nX-Forwarded-Prefix: /admin\r\n\
         Forwarded: for=6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\n\r\n";
    let seen = forwarded(request, "").await;
    assert_eq!(seen.get("x-forwarded-for").unwrap(), "127.0.0.1");
    assert_eq!(seen.get("x-forwarded-proto").unwrap(), "http");
    assert_eq!(seen.get("x-forwarded-host").unwrap(), "a");
    for field in ["forwarded", "x-real-ip", "x-forwarded-prefix"] {
        assert_eq!(seen.get(field), None, "{field}");
    }
}

#[tokio::test]
async fn what_a_trusted_proxy_says_stays_and_the_proxy_is_appended() {
    let request = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 6.6.6.6, 192.0.2.1\r\n\
         X-Forwarded-For: 127.0.0.9\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: shop\r\n\
         Forwarded: for=192.0.2.1\r\n\r\n";
    let seen = forwarded(request, TRUST_LOOPBACK).await;
    let chain = "6.6.6.6, 192.0.2.1, 127.0.0.9, 127.0.0.1";
    assert_eq!(seen.get("x-forwarded-for").unwrap(), chain);
    assert_eq!(seen.get("x-forwarded-proto").unwrap(), "https");
    assert_eq!(seen.get("x-forwarded-host").unwrap(), "shop");
    assert_eq!(seen.get("forwarded").unwrap(), "for=192.0.2.1");
}

/// CGI and its heirs read `-` and `_` in a field's name alike.
#[tokio::test]
async fn claims_with_underscores_are_nobodys() {
    let request = "GET / HTTP/1.1\r\nHost: a\r\nX_Forwarded_For: 6.6.6.6\r\n\
                   X-Forwarded_Proto: https\r\nX_Real-IP: 6.6.6.6\r\nX_Stays: 1\r\n\r\n";
    for gateway in ["", TRUST_LOOPBACK] {
        let seen = forwarded(request, gateway).await;
        for field in ["x_forwarded_for", "x-forwarded_proto", "x_real-ip"] {
            assert_eq!(seen.get(field), None, "{field}");
        }
        assert_eq!(seen.get("x_stays").unwrap(), "1");
        assert_eq!(seen.get("x-forwarded-proto").unwrap(), "http");
    }
}

// shows: A5 (HTTP parts)
#[tokio::test]
async fn clients_are_told_apart_through_trusted_proxies_only() {
    let limits = "  per-client:\n    rate: 1/h\n    key: [client_ip]";
    let upstream = Upstream::answering(OK).await;
    let statuses = async |gateway: &Running, chains: &[&str]| {
        let mut client = gateway.connect().await;
        let mut statuses = Vec::new();
        for chain in chains {
            let request = format!("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {chain}\r\n\r\n");
            statuses.push(client.ask(&request).await.status());
        }
        statuses
    };
    let chains = [
        "192.0.2.1",
        "9.9.9.9, 192.0.2.1",
        "192.0.2.2",
        "192.0.2.2, 127.0.0.5",
    ];
    let trusting = Running::before(&[upstream.address], limits, TRUST_LOOPBACK);
    assert_eq!(statuses(&trusting, &chains).await, [200, 429, 200, 429]);
    let distrusting = Running::before(&[upstream.address], limits, "");
    assert_eq!(statuses(&distrusting, &chains).await, [200, 429, 429, 429]);
}

#[tokio::test]
async fn a_chunked_body_stays_chunked_even_of_a_get() {
    for method in ["POST", "GET"] {
        let request = format!(
            "{method} / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
             3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
        );
        let seen = forwarded(&request, "").await;
        assert_eq!(seen.get("transfer-encoding").unwrap(), "chunked");
        assert_eq!(seen.get("content-length"), None);
        assert_eq!(seen.body, b"abcde");
    }
}

#[tokio::test]
async fn a_body_that_is_announced_is_asked_for() {
    let mut upstream = Upstream::answering(OK).await;
    let gateway = Running::before(&[upstream.address], "", "");
    let mut client = gateway.connect().await;
    let head = "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
    client.send(head).await;
    assert_eq!(client.head().await.unwrap().status(), 100);
    assert_eq!(client.ask("hello").await.status(), 200);
    let seen = upstream.seen().await;
    assert_eq!(seen.get("expect"), None);
    assert_eq!(seen.body, b"hello");
}

#[tokio::test]
async fn what_is_not_carried_is_said_so() {
    assert_eq!(
        refused("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n").await,
        501
    );
    let websocket = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n\
         Sec-WebSocket-Key: x\r\n\r\n";
    assert_eq!(refused(websocket).await, 501);
}

#[tokio::test]
async fn http_1_0_is_served_and_closed() {
    let mut upstream = Upstream::answering(OK).await;
    let gateway = Running::before(&[upstream.address], "", "");
    let mut client = gateway.connect().await;
    let answer = client.ask("GET / HTTP/1.0\r\n\r\n").await;
    assert_eq!(answer.head.start, "HTTP/1.0 200 OK");
    assert_eq!(answer.body, b"ok");
    assert!(client.closes_quietly().await);
    let seen = upstream.seen().await;
    assert_eq!(seen.head.start, "GET / HTTP/1.1");
    // nginx, for one, answers an empty one with 400: health checks of load balancers say none.
    assert_eq!(seen.get("host").unwrap(), upstream.address.to_string());
    assert_eq!(seen.get("x-forwarded-host"), None);
}

#[tokio::test]
async fn head_has_no_body_and_keeps_the_length() {
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 70\r\n\r\n").await;
    let gateway = Running::before(&[upstream.address], "", "");
    let mut client = gateway.connect().await;
    for _ in 0..3 {
        client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let head = client.head().await.unwrap();
        assert_eq!(
            (head.status(), head.get("content-length").unwrap().as_str()),
            (200, "70")
        );
    }
    assert_eq!(
        (
            gateway.counters().connections_accepted,
            upstream.connections()
        ),
        (1, 1)
    );
}

#[tokio::test]
async fn the_built_in_echo_says_what_it_saw() {
    let gateway = Running::of(parse(
        "upstreams: { echo: { builtin: echo } }\n\
         gateway:\n  listen: [\"127.0.0.1:0\"]\n  routes: [{ id: all, upstream: echo }]\n",
    ));
    let request = "POST /a/b?c=d HTTP/1.1\r\nHost: shop\r\nUser-Id: 7\r\nUser-Id: 8\r\n\
         Connection: close\r\nContent-Length: 2\r\n\r\nhi";
    let answer = gateway.connect().await.ask(request).await;
    assert_eq!(answer.get("content-type").unwrap(), "application/json");
    assert_eq!(
        answer.json(),
        serde_json::json!({
            "method": "POST",
            "path": "/a/b?c=d",
            "headers": {
                "content-length": "2",
                "host": "shop",
                "user-id": "7, 8",
                "x-forwarded-for": "127.0.0.1",
                "x-forwarded-host": "shop",
                "x-forwarded-proto": "http",
            },
        })
    );
}
