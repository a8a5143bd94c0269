//! Messages whose bodies are held back: what else there is of them, and who is late.

use tokio::sync::mpsc;

use crate::bandwidth::{byte_server, get, post};
use crate::gateway::Running;
use crate::upstream::Upstream;
use crate::wire::soon;

// shows: A3 (deadlines)
#[tokio::test]
async fn nobody_is_late_while_the_gateway_itself_holds_a_piece_back() {
    let upstream = byte_server().await;
    // A piece waits for half a second, and nobody else has more than a quarter.
    let gateway = "  response_timeout: 250ms\n  idle_timeout: 250ms";
    let limit = "  slow:\n    bandwidth: 1KB/s\n    burst: 500B\n    direction: both";
    let gateway = Running::before(&[upstream.address], limit, gateway);
    let mut client = gateway.connect().await;
    client.send(get(1_500, "ann")).await;
    assert_eq!(client.message().await.body.len(), 1_500);
    client.send(post(1_000, "ann")).await;
    assert_eq!(client.message().await.text(), "1000");
    assert_eq!(gateway.counters().connections_timed_out, 0);
    assert_eq!(gateway.counters().upstream_timeouts, 0);
}

// shows: A4 (bandwidth)
#[tokio::test]
async fn who_is_exempt_is_not_held_back() {
    let upstream = byte_server().await;
    // The first byte is free, the next comes in an hour.
    let limit = "  slow:\n    bandwidth: 1B/h\n    exempt: { \"header:user-id\": ann }";
    let gateway = Running::before(&[upstream.address], limit, "");
    let mut client = gateway.connect().await;
    client.send(get(1_000, "ann")).await;
    assert_eq!(client.message().await.body.len(), 1_000);
}

#[tokio::test]
async fn a_client_that_waits_for_a_response_that_is_held_back_is_not_slow_with_its_request() {
    let upstream = Upstream::start(|mut served| async move {
        served.wire.head().await;
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 1500\r\n\r\n";
        served.wire.send(head).await;
        served.wire.send(vec![b'z'; 1_500]).await;
        served.wire.exactly(1_000).await;
    })
    .await;
    // A piece waits for half a second, in which the client sends nothing.
    let gateway = "  min_body_rate: 1KB/s\n  min_rate_grace: 250ms";
    let limit = "  slow:\n    bandwidth: 1KB/s\n    burst: 500B";
    let gateway = Running::before(&[upstream.address], limit, gateway);
    let mut client = gateway.connect().await;
    client
        .send("POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n")
        .await;
    assert_eq!(client.message().await.body.len(), 1_500);
    assert_eq!(gateway.counters().connections_timed_out, 0);
}

#[tokio::test]
async fn a_response_that_waits_for_a_request_that_is_held_back_is_not_late() {
    // It says what it has got as it gets it.
    let upstream = Upstream::start(|mut served| async move {
        served.wire.head().await;
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 1500\r\n\r\n";
        served.wire.send(head).await;
        let mut left = 1500;
        while left > 0 {
            let read = served.wire.some(left).await;
            served.wire.send(vec![b'z'; read]).await;
            left -= read;
        }
    })
    .await;
    let gateway = "  response_timeout: 250ms\n  idle_timeout: 250ms";
    let limit = "  slow:\n    bandwidth: 1KB/s\n    burst: 500B\n    direction: requests";
    let gateway = Running::before(&[upstream.address], limit, gateway);
    let mut client = gateway.connect().await;
    client.send(post(1_500, "ann")).await;
    assert_eq!(client.message().await.body.len(), 1_500);
}

#[tokio::test]
async fn an_upload_goes_on_while_the_response_is_held_back() {
    let (send, mut uploaded) = mpsc::unbounded_channel();
    let upstream = Upstream::start(move |mut served| {
        let send = send.clone();
        async move {
            served.wire.head().await;
            let head = "HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n";
            served.wire.send(head).await;
            served.wire.send(vec![b'z'; 2_000]).await;
            served.wire.exactly(8 << 20).await;
            send.send(()).unwrap();
        }
    })
    .await;
    // The second piece of the response waits for an hour.
    let limit = "  slow:\n    bandwidth: 1KB/h\n    burst: 1KB";
    let gateway = Running::before(&[upstream.address], limit, "");
    let mut client = gateway.connect().await;
    client.send(post(8 << 20, "ann")).await;
    soon(uploaded.recv()).await.unwrap();
}

#[tokio::test]
async fn a_connection_can_be_used_again_after_bodies_that_were_held_back() {
    let upstream = byte_server().await;
    let limit = "  slow:\n    bandwidth: 100KB/s\n    burst: 1KB\n    direction: both";
    let gateway = Running::before(&[upstream.address], limit, "");
    let mut client = gateway.connect().await;
    for _ in 0..3 {
        client.send(get(2_500, "ann")).await;
        assert_eq!(client.message().await.body.len(), 2_500);
        client.send(post(2_500, "ann")).await;
        assert_eq!(client.message().await.text(), "2500");
        assert_eq!(client.get("/0").await.status(), 200);
    }
    assert_eq!(upstream.connections(), 1);
}
