//! Refusals, and what is given back when.

use tidegate::Timestamp;

use crate::gateway::{Running, policy};
use crate::upstream::{OK, Upstream};
use crate::wire::{Wire, soon};

const ONE_AN_HOUR: &str = "  per-client:\n    rate: 1/h\n    key: [client_ip]";
const ONE_SLOT: &str = "  slots:\n    concurrency: 1";

// shows: A8 (reject), D4 (RateLimit and Retry-After)
#[tokio::test]
async fn a_refusal_says_which_limit_and_when_and_keeps_the_connection() {
    let mut upstream = Upstream::answering(OK).await;
    let gateway = Running::before(&[upstream.address], ONE_AN_HOUR, "");
    let mut client = gateway.connect().await;
    let allowed = client.get("/").await;
    assert_eq!(allowed.status(), 200);
    assert_eq!(
        allowed.get("ratelimit").unwrap(),
        r#""per-client";r=0;t=3600"#
    );
    assert_eq!(
        allowed.get("ratelimit-policy").unwrap(),
        r#""per-client";q=1;w=3600"#
    );
    assert_eq!(allowed.get("retry-after"), None);
    upstream.seen().await;
    for _ in 0..3 {
        let refused = client.get("/").await;
        assert_eq!(refused.status(), 429);
        assert_eq!(refused.get("retry-after").unwrap(), "3600");
        assert_eq!(
            refused.get("ratelimit").unwrap(),
            r#""per-client";r=0;t=3600"#
        );
        assert_eq!(
            refused.get("ratelimit-policy").unwrap(),
            r#""per-client";q=1;w=3600"#
        );
        assert_eq!(
            refused.get("content-type").unwrap(),
            "application/problem+json"
        );
        assert_eq!(refused.get("x-ratelimit-limit"), None);
        assert_eq!(
            refused.json(),
            serde_json::json!({
                "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
                "title": "Request cannot be satisfied as assigned quota has been exceeded",
                "status": 429,
                "detail": "`per-client` allows this request in 3600 s",
                "violated-policies": ["per-client"],
            })
        );
    }
    assert!(!upstream.has_seen());
    let counters = gateway.counters();
    assert_eq!((counters.connections_accepted, counters.refused), (1, 3));
    assert_eq!(counters.responses, [0, 1, 0, 3, 0]);
}

// shows: A8 (reject), D4 (RateLimit and Retry-After), B5 (several bandwidths)
#[tokio::test]
async fn a_refusal_says_which_rate_of_a_limit_refused() {
    let upstream = Upstream::answering(OK).await;
    let limits = "  per-client:\n    rate: [100/s, 2/h]\n    key: [client_ip]";
    let gateway = Running::before(&[upstream.address], limits, "");
    let mut client = gateway.connect().await;
    let policy = r#""per-client";q=100;w=1, "per-client:2";q=2;w=3600"#;
    for left in [1, 0] {
        let allowed = client.get("/").await;
        assert_eq!(allowed.status(), 200);
        let told = allowed.get("ratelimit").unwrap();
        let expected = format!("\"per-client:2\";r={left};t=");
        assert!(told.starts_with(&expected), "{told:?}");
        assert_eq!(allowed.get("ratelimit-policy").unwrap(), policy);
    }
    let refused = client.get("/").await;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.get("ratelimit-policy").unwrap(), policy);
    let seconds = refused.get("retry-after").unwrap();
    assert!(seconds.parse::<u64>().unwrap() > 1_000, "{seconds}");
    let body = refused.json();
    let told = format!("`per-client:2` allows this request in {seconds} s");
    assert_eq!(body["detail"], told);
    assert_eq!(
        body["violated-policies"],
        serde_json::json!(["per-client:2"])
    );
}

// shows: D4 (X-RateLimit)
#[tokio::test]
async fn fields_are_as_the_policy_says() {
    let upstream = Upstream::answering(OK).await;
    let fields = "  rate_limit_headers: false\n  x_rate_limit_headers: true";
    let gateway = Running::before(&[upstream.address], ONE_AN_HOUR, fields);
    let mut client = gateway.connect().await;
    for status in [200, 429] {
        let answer = client.get("/").await;
        assert_eq!(answer.status(), status);
        assert_eq!(answer.get("ratelimit"), None);
        assert_eq!(answer.get("ratelimit-policy"), None);
        assert_eq!(answer.get("x-ratelimit-limit").unwrap(), "1");
        assert_eq!(answer.get("x-ratelimit-remaining").unwrap(), "0");
        assert_eq!(answer.get("x-ratelimit-reset").unwrap(), "3600");
    }
}

// shows: D4 (X-RateLimit)
#[tokio::test]
async fn each_family_of_fields_is_there_or_not_for_itself() {
    let upstream = Upstream::answering(OK).await;
    let fields = "  headers: { rate_limit: false, rate_limit_draft_6: true, x_rate_limit: true, \
                  x_rate_limit_reset: epoch, retry_after: false }";
    let gateway = Running::before(&[upstream.address], ONE_AN_HOUR, fields);
    let mut client = gateway.connect().await;
    for status in [200, 429] {
        let before = gateway.node.clock().now();
        let answer = client.get("/").await;
        assert_eq!(answer.status(), status);
        assert_eq!(answer.get("ratelimit"), None);
        assert_eq!(answer.get("ratelimit-policy"), None);
        assert_eq!(answer.get("retry-after"), None);
        assert_eq!(answer.get("ratelimit-limit").unwrap(), "1");
        assert_eq!(answer.get("ratelimit-remaining").unwrap(), "0");
        assert_eq!(answer.get("ratelimit-reset").unwrap(), "3600");
        let reset: u64 = answer.get("x-ratelimit-reset").unwrap().parse().unwrap();
        let hour = Timestamp::from_secs(reset).since(before).as_secs_f64();
        assert!((3_590.0..3_610.0).contains(&hour), "{hour}");
    }
}

#[tokio::test]
async fn an_upstream_that_limits_too_keeps_its_say() {
    let theirs = "HTTP/1.1 200 OK\r\nRateLimit: \"theirs\";r=5\r\nContent-Length: 0\r\n\r\n";
    let upstream = Upstream::answering(theirs).await;
    let gateway = Running::before(&[upstream.address], ONE_AN_HOUR, "");
    let answer = gateway.connect().await.get("/").await;
    let both = r#""theirs";r=5, "per-client";r=0;t=3600"#;
    assert_eq!(answer.get("ratelimit").unwrap(), both);
}

#[tokio::test]
async fn a_request_that_no_route_matches_is_not_found_and_not_charged() {
    let upstream = Upstream::answering(OK).await;
    let mut policy = policy(&[upstream.address], ONE_AN_HOUR, "");
    let gateway = policy.gateway.as_mut().unwrap();
    let mut route = gateway.routes[0].clone();
    route.matcher.path = Some("/shop/**".parse().unwrap());
    gateway.routes = vec![route].into();
    let gateway = Running::of(policy);
    let mut client = gateway.connect().await;
    let answer = client.get("/elsewhere").await;
    assert_eq!(answer.status(), 404);
    assert_eq!(
        answer.get("content-type").unwrap(),
        "application/problem+json"
    );
    assert_eq!(answer.get("ratelimit"), None);
    assert_eq!(client.get("/shop/%2e%2e/elsewhere").await.status(), 404);
    assert_eq!(client.get("//%73hop/x").await.status(), 200);
}

#[tokio::test]
async fn the_body_of_a_refused_request_is_read_and_the_connection_kept() {
    let upstream = Upstream::answering(OK).await;
    let gateway = Running::before(&[upstream.address], ONE_AN_HOUR, "");
    let mut client = gateway.connect().await;
    client.get("/").await;
    // More than is read with the header, and in pieces.
    let body = "x".repeat(60_000);
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n")
        .await;
    client.send(&body[..100]).await;
    assert_eq!(client.message().await.status(), 429);
    client.send(&body[100..]).await;
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        .await;
    assert_eq!(client.message().await.status(), 429);
    client.send("5\r\nhello\r\n0\r\n\r\n").await;
    assert_eq!(client.get("/").await.status(), 429);
    assert_eq!(gateway.counters().connections_accepted, 1);
}

/// Closing a socket with unread bytes resets the connection, and a client that is still
/// sending might never read the answer.
#[tokio::test]
async fn a_long_body_of_a_refused_request_does_not_destroy_the_answer() {
    let upstream = Upstream::answering(OK).await;
    let gateway = Running::before(&[upstream.address], ONE_AN_HOUR, "");
    gateway.connect().await.get("/").await;
    let mut client = gateway.connect().await;
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4000000\r\n\r\n")
        .await;
    for _ in 0..40 {
        client.send(vec![b'x'; 100_000]).await;
    }
    let answer = client.message().await;
    assert_eq!(answer.status(), 429);
    assert_eq!(answer.get("connection").unwrap(), "close");
    assert!(client.closes_quietly().await);
}

#[tokio::test]
async fn a_body_that_was_announced_is_not_asked_for_after_a_refusal() {
    let upstream = Upstream::answering(OK).await;
    let gateway = Running::before(&[upstream.address], ONE_AN_HOUR, "");
    gateway.connect().await.get("/").await;
    let mut client = gateway.connect().await;
    let expect = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
    let answer = client.ask(expect).await;
    assert_eq!(answer.status(), 429);
    assert_eq!(answer.get("connection").unwrap(), "close");
    assert!(client.closes_quietly().await);
}

/// An answer whose end waits for the test.
const FIRST: &str = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst";
const LAST: &str = "-last";

// shows: A2 (refusing)
#[tokio::test]
async fn a_place_is_held_until_the_body_has_ended() {
    let (upstream, mut started) = Upstream::held(FIRST, LAST).await;
    let gateway = Running::before(&[upstream.address], ONE_SLOT, "");
    let mut inside = gateway.connect().await;
    inside.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let head = inside.head().await.unwrap();
    assert_eq!(head.status(), 200);
    assert_eq!(
        head.get("ratelimit-policy").unwrap(),
        r#""slots";q=1;qu="concurrent-requests""#
    );
    let go_on = soon(started.recv()).await.unwrap();
    let mut outside = gateway.connect().await;
    let refused = outside.get("/").await;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.get("retry-after").unwrap(), "1");
    assert_eq!(refused.get("ratelimit").unwrap(), r#""slots";r=0"#);
    go_on.send(()).unwrap();
    assert_eq!(inside.exactly(10).await, b"first-last");
    outside.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(outside.head().await.unwrap().status(), 200);
}

/// Asks until a place is free.
async fn enters(client: &mut Wire) {
    soon(async {
        loop {
            client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
            let head = client.head().await.unwrap();
            if head.status() == 200 {
                return;
            }
            let length = head.get("content-length").unwrap().parse().unwrap();
            client.exactly(length).await;
        }
    })
    .await;
}

// shows: A2 (refusing)
#[tokio::test]
async fn a_client_that_goes_away_within_a_body_gives_its_place_back() {
    let (upstream, mut started) = Upstream::held(FIRST, LAST).await;
    let gateway = Running::before(&[upstream.address], ONE_SLOT, "");
    for reset in [false, true] {
        let mut inside = gateway.connect().await;
        enters(&mut inside).await;
        let kept_waiting = soon(started.recv()).await.unwrap();
        if reset {
            inside.reset();
        } else {
            drop(inside);
        }
        let mut next = gateway.connect().await;
        enters(&mut next).await;
        drop((kept_waiting, next));
        soon(started.recv()).await.unwrap();
    }
}

#[tokio::test]
async fn a_client_that_goes_away_before_the_answer_gives_its_place_back() {
    let mut upstream = Upstream::start(|mut served| async move {
        if served
            .request()
            .await
            .is_some_and(|request| request.head.start.contains("/never"))
        {
            // Until the gateway lets go.
            assert!(served.request().await.is_none());
        } else {
            served.wire.send(OK).await;
        }
    })
    .await;
    let gateway = Running::before(&[upstream.address], ONE_SLOT, "");
    let mut inside = gateway.connect().await;
    inside.send("GET /never HTTP/1.1\r\nHost: a\r\n\r\n").await;
    upstream.seen().await;
    let mut outside = gateway.connect().await;
    assert_eq!(outside.get("/").await.status(), 429);
    drop(inside);
    enters(&mut outside).await;
}
