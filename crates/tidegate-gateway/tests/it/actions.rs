//! What becomes of requests that are over a limit, and of those that may not come in at all.

use std::time::Duration;

use tidegate::Clock;

use crate::gateway::{Running, parse, policy};
use crate::upstream::{OK, Upstream};
use crate::waiting::limited;
use crate::wire::{Message, Wire, soon};

const ONCE: &str = "  once:\n    rate: 1/h\n    on_limit: ";

/// A gateway under a limit of one request an hour that refuses like this, whose one is used up.
async fn used_up(upstream: &Upstream, on_limit: &str) -> (Running, Wire) {
    let gateway = Running::before(&[upstream.address], &format!("{ONCE}{on_limit}"), "");
    let mut client = gateway.connect().await;
    assert_eq!(client.get("/").await.status(), 200);
    (gateway, client)
}

async fn accepting(client: &mut Wire, accept: &str) -> Message {
    let request = format!("GET /a?b=c HTTP/1.1\r\nHost: a\r\nAccept: {accept}\r\n\r\n");
    client.ask(&request).await
}

// shows: A8 (reject)
#[tokio::test]
async fn a_refusal_looks_as_the_policy_says_and_as_the_client_accepts() {
    let upstream = Upstream::answering(OK).await;
    let on_limit = "{ reject: { status: 503, headers: { X-Why: busy }, \
        html: \"<p>{retry_after} s</p>\" } }";
    let (gateway, mut client) = used_up(&upstream, on_limit).await;
    let page = accepting(&mut client, "text/html,*/*;q=0.8").await;
    assert_eq!((page.status(), page.text()), (503, "<p>3600 s</p>"));
    assert_eq!(
        page.get("content-type").unwrap(),
        "text/html; charset=utf-8"
    );
    assert_eq!(page.get("x-why").unwrap(), "busy");
    assert_eq!(page.get("retry-after").unwrap(), "3600");
    assert_eq!(page.get("ratelimit").unwrap(), r#""once";r=0;t=3600"#);
    let problem = accepting(&mut client, "application/json").await;
    assert_eq!(
        problem.get("content-type").unwrap(),
        "application/problem+json"
    );
    assert_eq!(problem.json()["status"], 503);
    assert_eq!(problem.json()["violated-policies"][0], "once");
    assert_eq!(gateway.counters().refused, 2);
}

// shows: A8 (redirect)
#[tokio::test]
async fn a_redirect_says_where_the_client_came_from() {
    let upstream = Upstream::answering(OK).await;
    let on_limit = "{ redirect: { to: \"/busy?from={uri}\", status: 307 } }";
    let (_gateway, mut client) = used_up(&upstream, on_limit).await;
    let redirect = accepting(&mut client, "*/*").await;
    assert_eq!(redirect.status(), 307);
    assert_eq!(redirect.get("location").unwrap(), "/busy?from=%2Fa%3Fb%3Dc");
    assert_eq!(redirect.get("retry-after").unwrap(), "3600");
    assert_eq!(redirect.text(), "");
}

// shows: A8 (degrade)
#[tokio::test]
async fn another_upstream_answers_or_the_policy_itself() {
    const LESS: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nless";
    let (shop, cheap) = (
        Upstream::answering(OK).await,
        Upstream::answering(LESS).await,
    );
    let gateway = Running::of(parse(&format!(
        "limits:\n  shop: {{ rate: 1/h, on_limit: {{ degrade: {{ upstream: cheap }} }} }}\n  \
         news: {{ rate: 1/h, on_limit: {{ degrade: {{ json: '[]' }} }} }}\n\
         upstreams:\n  shop: {{ servers: \"{}\" }}\n  cheap: {{ servers: \"{}\" }}\n\
         gateway:\n  listen: \"127.0.0.1:0\"\n  routes:\n    \
         - {{ id: news, match: {{ path: /news }}, upstream: shop, limits: news }}\n    \
         - {{ id: all, upstream: shop, limits: shop }}\n",
        shop.address, cheap.address
    )));
    let mut client = gateway.connect().await;
    assert_eq!(client.get("/").await.text(), "ok");
    let body = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
    let degraded = client.ask(body).await;
    assert_eq!((degraded.status(), degraded.text()), (200, "less"));
    assert_eq!(degraded.get("ratelimit").unwrap(), r#""shop";r=0;t=3600"#);
    assert_eq!(client.get("/news").await.text(), "ok");
    let fixed = client.get("/news").await;
    assert_eq!((fixed.status(), fixed.text()), (200, "[]"));
    assert_eq!(fixed.get("cache-control").unwrap(), "no-store");
    assert_eq!(gateway.counters().refused, 2);
}

// shows: A8 (tarpit)
#[tokio::test]
async fn a_tarpit_keeps_so_many_waiting_and_no_more() {
    const TARPIT: &str = "  once:\n    rate: 1/h\n    on_limit: \
        { tarpit: { delay: 5s, length: 1 }, reject: { status: 503 } }";
    let upstream = Upstream::answering(OK).await;
    let (gateway, clock, mut asked) = limited(&upstream, TARPIT);
    let mut client = gateway.connect().await;
    assert_eq!(client.get("/").await.status(), 200);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let (until, ring) = soon(asked.recv()).await.unwrap();
    assert_eq!(until.since(clock.now()), Duration::from_secs(5));
    let mut other = gateway.connect().await;
    assert_eq!(other.get("/").await.status(), 503, "the tarpit is full");
    ring.send(()).unwrap();
    assert_eq!(client.message().await.status(), 503);

    // Whoever goes away makes room.
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let (_, mut gone) = soon(asked.recv()).await.unwrap();
    drop(client);
    soon(gone.closed()).await;
    other.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let (_, ring) = soon(asked.recv()).await.unwrap();
    ring.send(()).unwrap();
    assert_eq!(other.message().await.status(), 503);
}

// shows: A8 (queue by priority)
#[tokio::test]
async fn who_is_first_by_the_policy_leaves_the_line_first() {
    const LINE: &str = "  slots:\n    concurrency: 1\n    on_limit: \
        { queue: { max_wait: 10s, first: { \"header:plan\": [gold, silver] } } }";
    let (mut upstream, mut held) = Upstream::held("", OK).await;
    let (gateway, _, mut asked) = limited(&upstream, LINE);
    let mut inside = gateway.connect().await;
    inside.send("GET /inside HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut finish = soon(held.recv()).await.unwrap();
    let (mut waiting, mut rings) = (vec![inside], Vec::new());
    for plan in ["none", "silver", "gold", "silver", "gold"] {
        let mut client = gateway.connect().await;
        let request = format!("GET /{plan} HTTP/1.1\r\nHost: a\r\nPlan: {plan}\r\n\r\n");
        client.send(&request).await;
        // It waits, so the next one stands behind it.
        rings.push(soon(asked.recv()).await.unwrap());
        waiting.push(client);
    }
    let mut order = Vec::new();
    for _ in 0..waiting.len() {
        order.push(upstream.seen().await.head.start);
        finish.send(()).unwrap();
        if order.len() < waiting.len() {
            finish = soon(held.recv()).await.unwrap();
        } else {
            break;
        }
    }
    let paths: Vec<_> = order
        .iter()
        .map(|start| start.split(' ').nth(1).unwrap())
        .collect();
    assert_eq!(
        paths,
        ["/inside", "/gold", "/gold", "/silver", "/silver", "/none"]
    );
}

// shows: A4
#[tokio::test]
async fn who_may_not_come_in_is_told_so_and_reaches_nothing() {
    let mut upstream = Upstream::answering(OK).await;
    let access = "  trusted_proxies: [127.0.0.1]\n  access: { deny: { client_ip: 192.0.2.0/24, \
        \"header:user-id\": [mallory] } }";
    let gateway = Running::before(&[upstream.address], "  one: { rate: 1/h }", access);
    let mut client = gateway.connect().await;
    let denied = client
        .ask("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.77\r\n\r\n")
        .await;
    assert_eq!(denied.status(), 403);
    assert_eq!(denied.json()["detail"], "its `client_ip` may not come in");
    let denied = client
        .ask("GET / HTTP/1.1\r\nHost: a\r\nUser-Id: mallory\r\n\r\n")
        .await;
    assert_eq!(denied.status(), 403);
    assert_eq!(denied.get("ratelimit"), None, "no limit was asked");
    assert!(!upstream.has_seen());
    assert_eq!(client.get("/").await.status(), 200);
    let _ = upstream.seen().await;
    let counters = gateway.counters();
    assert_eq!((counters.denied, counters.refused), (2, 0));
}

// shows: A4
#[tokio::test]
async fn a_route_is_for_those_who_are_on_its_list() {
    let upstream = Upstream::answering(OK).await;
    let gateway = Running::of(parse(&format!(
        "upstreams:\n  shop: {{ servers: \"{}\" }}\n\
         gateway:\n  listen: \"127.0.0.1:0\"\n  routes:\n    \
         - {{ id: admin, match: {{ path: /admin }}, upstream: shop, \
         access: {{ allow: {{ \"header:api-key\": [k1, k2] }} }} }}\n    \
         - {{ id: all, upstream: shop }}\n",
        upstream.address
    )));
    let mut client = gateway.connect().await;
    assert_eq!(client.get("/admin").await.status(), 403);
    let known = client
        .ask("GET /admin HTTP/1.1\r\nHost: a\r\nApi-Key: k2\r\n\r\n")
        .await;
    assert_eq!(known.status(), 200);
    assert_eq!(client.get("/").await.status(), 200);
}

// shows: A4
#[tokio::test]
async fn who_is_exempt_is_not_counted() {
    let upstream = Upstream::answering(OK).await;
    let limit = "  once:\n    rate: 1/h\n    exempt: { \"header:x-health\": probe }";
    let gateway = Running::of(policy(&[upstream.address], limit, ""));
    let mut client = gateway.connect().await;
    for _ in 0..3 {
        let probe = client
            .ask("GET / HTTP/1.1\r\nHost: a\r\nX-Health: probe\r\n\r\n")
            .await;
        assert_eq!((probe.status(), probe.get("ratelimit")), (200, None));
    }
    assert_eq!(client.get("/").await.status(), 200);
    assert_eq!(client.get("/").await.status(), 429);
}
