//! Whatever a client does, it is bounded: size, number, time.

use std::time::{Duration, Instant};

use crate::gateway::Running;
use crate::upstream::{OK, Upstream};
use crate::wire::soon;

// shows: H1 (a bound on what a request costs)
#[tokio::test]
async fn a_header_of_a_megabyte_is_431() {
    let mut upstream = Upstream::answering(OK).await;
    let gateway = Running::before(&[upstream.address], "", "");
    let mut client = gateway.connect().await;
    let request = format!(
        "GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n",
        "x".repeat(1 << 20)
    );
    // The gateway need not read to the end.
    let _ = client.try_send(&request).await;
    assert_eq!(client.message().await.status(), 431);
    assert!(!upstream.has_seen());
}

#[tokio::test]
async fn a_header_up_to_the_bound_passes() {
    let upstream = Upstream::answering(OK).await;
    let gateway = Running::before(&[upstream.address], "", "  max_header_bytes: 16KiB");
    let of_length = |length: usize| {
        let rest = "GET / HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n".len();
        format!(
            "GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n",
            "x".repeat(length - rest)
        )
    };
    let mut client = gateway.connect().await;
    assert_eq!(client.ask(&of_length(16 * 1024)).await.status(), 200);
    assert_eq!(client.ask(&of_length(16 * 1024 + 1)).await.status(), 431);
}

#[tokio::test]
async fn too_many_header_fields_are_431() {
    let upstream = Upstream::answering(OK).await;
    for (most, gateway) in [
        (100, ""),
        (20, "  max_headers: 20"),
        (150, "  max_headers: 150"),
    ] {
        let gateway = Running::before(&[upstream.address], "", gateway);
        let with = |fields: usize| {
            format!(
                "GET / HTTP/1.1\r\nHost: a\r\n{}\r\n",
                "X-A: b\r\n".repeat(fields - 1)
            )
        };
        let status = async |fields| gateway.connect().await.ask(&with(fields)).await.status();
        assert_eq!(status(most).await, 200, "{most}");
        assert_eq!(status(most + 1).await, 431, "{most}");
    }
}

#[tokio::test]
async fn a_header_that_does_not_end_in_time_ends_the_connection() {
    let mut upstream = Upstream::answering(OK).await;
    let gateway = Running::before(&[upstream.address], "", "  header_timeout: 150ms");
    for beginning in ["", "GET / HT", "GET / HTTP/1.1\r\nHost: a\r\n"] {
        // The time runs from when the connection is there, which the client is told later.
        let start = Instant::now();
        let mut client = gateway.connect().await;
        client.send(beginning).await;
        assert!(client.closes_quietly().await);
        assert!(
            start.elapsed() >= Duration::from_millis(140),
            "{:?}",
            start.elapsed()
        );
    }
    assert_eq!(gateway.counters().connections_timed_out, 3);
    assert!(!upstream.has_seen());
}

/// A deadline of the whole header, not of each read.
#[tokio::test]
async fn a_header_that_trickles_is_not_given_more_time() {
    let upstream = Upstream::answering(OK).await;
    let gateway = Running::before(&[upstream.address], "", "  header_timeout: 300ms");
    let mut client = gateway.connect().await;
    assert_eq!(client.get("/").await.status(), 200);
    let start = Instant::now();
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    // Fails once the gateway has closed.
    soon(async {
        while client.try_send("X").await.is_ok() {
            ticks.tick().await;
        }
    })
    .await;
    assert!(
        start.elapsed() >= Duration::from_millis(290),
        "{:?}",
        start.elapsed()
    );
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test]
async fn an_idle_connection_outlives_the_header_timeout_and_is_closed_quietly() {
    let upstream = Upstream::answering(OK).await;
    let timeouts = "  header_timeout: 100ms\n  idle_timeout: 500ms";
    let gateway = Running::before(&[upstream.address], "", timeouts);
    let mut client = gateway.connect().await;
    assert_eq!(client.get("/").await.status(), 200);
    let start = Instant::now();
    assert!(client.closes_quietly().await);
    assert!(
        start.elapsed() >= Duration::from_millis(490),
        "{:?}",
        start.elapsed()
    );
    gateway
        .counted(|counters| counters.connections_open == 0)
        .await;
    assert_eq!(gateway.counters().connections_timed_out, 0);
}

/// What is left of a refused request is read for as long as a connection may be idle.
#[tokio::test]
async fn the_rest_of_a_refused_body_is_not_waited_for_forever() {
    let upstream = Upstream::answering(OK).await;
    let limits = "  none:\n    rate: 0/s";
    let gateway = Running::before(&[upstream.address], limits, "  idle_timeout: 200ms");
    let mut client = gateway.connect().await;
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf")
        .await;
    assert_eq!(client.message().await.status(), 429);
    assert!(client.closes_quietly().await);
    assert_eq!(gateway.counters().connections_timed_out, 1);
}

#[tokio::test]
async fn a_client_that_does_not_read_is_given_up() {
    let upstream = Upstream::start(|mut served| async move {
        served.request().await;
        served
            .wire
            .send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
            .await;
        let piece = vec![b'x'; 65_536];
        while served.wire.try_send(&piece).await.is_ok() {}
    })
    .await;
    let gateway = Running::before(&[upstream.address], "", "  response_timeout: 300ms");
    let mut client = gateway.connect().await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    gateway
        .counted(|counters| counters.connections_timed_out == 1)
        .await;
    gateway
        .counted(|counters| counters.connections_open == 0)
        .await;
    assert!(client.rest().await.len() < 1_000_000_000);
}

#[tokio::test]
async fn a_client_that_does_not_send_its_body_is_408() {
    let upstream = Upstream::answering(OK).await;
    let gateway = Running::before(&[upstream.address], "", "  response_timeout: 200ms");
    let mut client = gateway.connect().await;
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf")
        .await;
    let answer = client.message().await;
    assert_eq!(answer.status(), 408);
    assert_eq!(answer.get("connection").unwrap(), "close");
    assert!(client.closes_quietly().await);
    assert_eq!(gateway.counters().upstream_timeouts, 0);
}

/// The time that an upload takes is not the upstream's.
#[tokio::test]
async fn a_slow_upload_may_take_longer_than_the_response_timeout() {
    let upstream = Upstream::answering(OK).await;
    let gateway = Running::before(&[upstream.address], "", "  response_timeout: 400ms");
    let mut client = gateway.connect().await;
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n")
        .await;
    let mut ticks = tokio::time::interval(Duration::from_millis(100));
    for _ in 0..10 {
        ticks.tick().await;
        client.send("x").await;
    }
    assert_eq!(client.message().await.status(), 200);
}

#[tokio::test]
async fn connections_above_the_bound_wait_for_their_turn() {
    let upstream = Upstream::answering(OK).await;
    let gateway = Running::before(&[upstream.address], "", "  max_connections: 2");
    let mut first = gateway.connect().await;
    let mut second = gateway.connect().await;
    assert_eq!(first.get("/").await.status(), 200);
    assert_eq!(second.get("/").await.status(), 200);
    let mut third = gateway.connect().await;
    third.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(first.get("/").await.status(), 200);
    assert_eq!(gateway.counters().connections_accepted, 2);
    drop(second);
    assert_eq!(third.message().await.status(), 200);
    assert_eq!(gateway.counters().connections_accepted, 3);
    assert_eq!(gateway.counters().connections_open, 2);
}
