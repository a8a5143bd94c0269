//! Clients that are slow on purpose, and connections that last too long.

use std::time::{Duration, Instant};

use crate::gateway::Running;
use crate::upstream::{OK, Upstream};
use crate::wire::{Wire, soon};

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const ONE_PLACE: &str = "  slots:\n    concurrency: 1";
const SHORT: &str = "  min_rate_grace: 300ms";

/// Sends a byte each 20 ms until the gateway has enough of it.
async fn trickle(client: &mut Wire, byte: &str) -> Duration {
    let start = Instant::now();
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    soon(async {
        for _ in 0..200 {
            ticks.tick().await;
            if client.try_send(byte).await.is_err() {
                break;
            }
        }
    })
    .await;
    start.elapsed()
}

// shows: H1 (slow clients)
#[tokio::test]
async fn a_body_that_trickles_does_not_hold_a_place() {
    let upstream = Upstream::answering(OK).await;
    let gateway = Running::before(&[upstream.address], ONE_PLACE, SHORT);
    let start = Instant::now();
    let mut client = gateway.connect().await;
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n";
    client.send(head).await;
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    let answer = loop {
        tokio::select! {
            answer = client.message() => break answer,
            _ = ticks.tick() => {}
        }
        client.send("x").await;
    };
    assert_eq!(answer.status(), 408);
    assert_eq!(answer.get("connection").unwrap(), "close");
    let elapsed = start.elapsed();
    assert!(elapsed >= Duration::from_millis(290), "{elapsed:?}");
    assert!(elapsed < Duration::from_secs(3), "{elapsed:?}");
    assert_eq!(gateway.connect().await.get("/").await.status(), 200);
}

/// Trailers are held back until they are whole, and have no time of their own.
#[tokio::test]
async fn trailers_that_trickle_are_408() {
    let upstream = Upstream::answering(OK).await;
    let gateway = Running::before(&[upstream.address], "", SHORT);
    let mut client = gateway.connect().await;
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ";
    client.send(head).await;
    assert_eq!(client.message().await.status(), 408);
}

#[tokio::test]
async fn a_body_that_comes_at_any_rate_may_be_asked_for() {
    let upstream = Upstream::answering(OK).await;
    let gateway = Running::before(
        &[upstream.address],
        "",
        "  min_rate_grace: 50ms\n  min_body_rate: 0",
    );
    let mut client = gateway.connect().await;
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n")
        .await;
    let mut ticks = tokio::time::interval(Duration::from_millis(30));
    for _ in 0..10 {
        ticks.tick().await;
        client.send("x").await;
    }
    assert_eq!(client.message().await.status(), 200);
}

/// It is the upstream that takes its time: the client's is not counted.
#[tokio::test]
async fn a_body_that_the_upstream_does_not_take_is_not_the_clients_fault() {
    const LENGTH: usize = 16 << 20;
    let upstream = Upstream::start(|mut served| async move {
        served.wire.head().await;
        tokio::time::sleep(Duration::from_millis(400)).await;
        served.wire.exactly(LENGTH).await;
        served.wire.send(OK).await;
    })
    .await;
    let gateway = Running::before(&[upstream.address], "", "  min_rate_grace: 100ms");
    let mut client = gateway.connect().await;
    let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {LENGTH}\r\n\r\n");
    client.send(head).await;
    client.send(vec![b'x'; LENGTH]).await;
    assert_eq!(client.message().await.status(), 200);
}

/// The answer has begun, so that the client is only cut off.
#[tokio::test]
async fn a_body_that_trickles_beside_its_answer_ends_the_connection() {
    let upstream = Upstream::start(|mut served| async move {
        served.wire.head().await;
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        served.wire.send(head).await;
        // A byte back for each that came.
        while !served.wire.exactly(1).await.is_empty() {
            if served.wire.try_send("1\r\nx\r\n").await.is_err() {
                return;
            }
        }
    })
    .await;
    let gateway = Running::before(&[upstream.address], "", SHORT);
    let mut client = gateway.connect().await;
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n")
        .await;
    let elapsed = trickle(&mut client, "x").await;
    assert!(elapsed < Duration::from_secs(3), "{elapsed:?}");
    gateway
        .counted(|counters| counters.connections_timed_out == 1)
        .await;
}

#[tokio::test]
async fn a_client_that_takes_its_answer_in_drops_is_given_up() {
    let upstream = Upstream::start(|mut served| async move {
        served.request().await;
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n";
        served.wire.send(head).await;
        let piece = vec![b'x'; 65_536];
        while served.wire.try_send(&piece).await.is_ok() {}
    })
    .await;
    let gateway = Running::before(&[upstream.address], ONE_PLACE, SHORT);
    let mut client = gateway.connect().await;
    client.send(GET).await;
    assert_eq!(client.head().await.unwrap().status(), 200);
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    soon(async {
        while gateway.counters().connections_open > 0 {
            ticks.tick().await;
            client.exactly(10).await;
        }
    })
    .await;
    assert_eq!(gateway.counters().connections_timed_out, 1);
}

/// The header deadline of a request that begins while the one before it is answered.
#[tokio::test]
async fn half_a_header_behind_a_request_has_the_header_deadline_too() {
    let (upstream, mut held) = Upstream::held("", OK).await;
    let timeouts = "  header_timeout: 200ms\n  idle_timeout: 20s";
    let gateway = Running::before(&[upstream.address], "", timeouts);
    let mut client = gateway.connect().await;
    client.send(format!("{GET}GET / HTTP/1.1\r\nHo")).await;
    soon(held.recv()).await.unwrap().send(()).unwrap();
    assert_eq!(client.message().await.status(), 200);
    let start = Instant::now();
    assert!(client.closes_quietly().await);
    let elapsed = start.elapsed();
    assert!(elapsed >= Duration::from_millis(190), "{elapsed:?}");
    assert!(elapsed < Duration::from_secs(10), "{elapsed:?}");
    gateway
        .counted(|counters| counters.connections_timed_out == 1)
        .await;
}

#[tokio::test]
async fn a_connection_ends_after_so_many_requests_and_says_so() {
    let upstream = Upstream::answering(OK).await;
    let most = "  max_requests_per_connection: 3";
    let gateway = Running::before(&[upstream.address], "", most);
    let mut client = gateway.connect().await;
    for last in [false, false, true] {
        let answer = client.get("/").await;
        assert_eq!(answer.get("connection").is_some(), last);
    }
    assert!(client.closes_quietly().await);
    // What was sent behind the last is not answered.
    let mut client = gateway.connect().await;
    client.send(GET.repeat(3_000)).await;
    let (answers, end) = client.end().await;
    assert!(end.is_ok(), "{end:?}");
    let answers = String::from_utf8(answers).unwrap();
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 3);
    assert_eq!(gateway.counters().connections_accepted, 2);
}

/// A connection that rests for a while has nothing but its socket, and goes on as if it had.
#[tokio::test]
async fn a_connection_that_has_rested_goes_on() {
    let upstream = Upstream::answering(OK).await;
    let timeouts = "  header_timeout: 50ms\n  idle_timeout: 400ms";
    let gateway = Running::before(&[upstream.address], "", timeouts);
    let mut client = gateway.connect().await;
    let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi";
    let mut ticks = tokio::time::interval(Duration::from_millis(180));
    ticks.tick().await;
    for requests in [GET.to_owned(), format!("{GET}{post}{GET}"), post.to_owned()] {
        for piece in [&requests[..9], &requests[9..]] {
            client.send(piece).await;
        }
        for _ in 0..requests.matches("HTTP/1.1").count() {
            assert_eq!(client.message().await.status(), 200);
        }
        ticks.tick().await;
    }
    let start = Instant::now();
    assert!(client.closes_quietly().await);
    assert!(
        start.elapsed() < Duration::from_millis(400),
        "its time ran on"
    );
    assert_eq!(gateway.counters().connections_accepted, 1);
    assert_eq!(gateway.counters().connections_timed_out, 0);
}

/// It is told so with an answer: a request that is on its way is not lost.
#[tokio::test]
async fn a_connection_that_is_old_ends_with_its_next_answer() {
    let upstream = Upstream::answering(OK).await;
    let gateway = Running::before(&[upstream.address], "", "  max_connection_age: 300ms");
    let start = Instant::now();
    let mut client = gateway.connect().await;
    soon(async {
        while client.get("/").await.get("connection").is_none() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(start.elapsed() >= Duration::from_millis(290));
    assert!(client.closes_quietly().await);
    assert_eq!(gateway.counters().connections_timed_out, 0);
}
