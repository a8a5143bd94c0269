//! The gateway stops: nothing in flight is lost, nothing idle holds it up.

use std::time::{Duration, Instant};

use crate::gateway::Running;
use crate::upstream::{OK, Upstream};
use crate::wire::{Wire, soon};

// shows: H2 (requests in flight at a stop)
#[tokio::test]
async fn requests_in_flight_end_and_idle_connections_close() {
    let (upstream, mut held) = Upstream::held("", OK).await;
    let mut gateway = Running::before(&[upstream.address], "", "");
    let mut unused = gateway.connect().await;
    let mut idle = gateway.connect().await;
    idle.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    soon(held.recv()).await.unwrap().send(()).unwrap();
    assert_eq!(idle.message().await.status(), 200);
    let mut busy = gateway.connect().await;
    busy.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let answer = soon(held.recv()).await.unwrap();
    let address = gateway.address;

    gateway.stop();
    assert!(unused.closes_quietly().await);
    assert!(idle.closes_quietly().await);
    answer.send(()).unwrap();
    let last = busy.message().await;
    assert_eq!(
        (last.status(), last.get("connection").unwrap().as_str()),
        (200, "close")
    );
    assert!(busy.closes_quietly().await);
    gateway.ended().await;
    soon(tokio::net::TcpStream::connect(address))
        .await
        .unwrap_err();
}

#[tokio::test]
async fn what_takes_longer_than_the_shutdown_timeout_is_cut_off() {
    let (upstream, mut held) = Upstream::held("", OK).await;
    let mut gateway = Running::before(&[upstream.address], "", "  shutdown_timeout: 200ms");
    let mut busy = gateway.connect().await;
    busy.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let _never = soon(held.recv()).await.unwrap();
    let start = Instant::now();
    gateway.stop();
    gateway.ended().await;
    assert!(
        start.elapsed() >= Duration::from_millis(190),
        "{:?}",
        start.elapsed()
    );
    assert!(busy.closes_quietly().await);
}

/// What the kernel has accepted for us before we stopped is a connection to us.
#[tokio::test]
async fn a_request_that_came_before_the_stop_is_answered() {
    let upstream = Upstream::answering(OK).await;
    let mut gateway = Running::before(&[upstream.address], "", "");
    let mut clients: Vec<Wire> = Vec::new();
    for _ in 0..20 {
        let mut client = gateway.connect().await;
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        clients.push(client);
    }
    gateway.stop();
    for client in &mut clients {
        assert_eq!(client.message().await.status(), 200);
    }
    gateway.ended().await;
}
