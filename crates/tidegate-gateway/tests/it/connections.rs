//! How many connections, and how many requests, of one client and of all.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use tidegate::SystemClock;
use tidegate_gateway::TokioTimer;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{mpsc, oneshot};

use crate::gateway::{Running, policy};
use crate::upstream::{OK, Upstream};
use crate::wire::{Message, Wire, soon};

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// A connection of client `number`, each of which has an address.
async fn client(gateway: SocketAddr, number: u8) -> Wire {
    let socket = TcpSocket::new_v4().unwrap();
    let address = Ipv4Addr::new(127, 0, 1, number);
    socket.bind(SocketAddr::from((address, 0))).unwrap();
    Wire::new(soon(socket.connect(gateway)).await.unwrap())
}

/// The answer to a connection that is too many. It need not have been asked for.
async fn refused(mut client: Wire, status: u16, detail: &str) {
    let answer = client.message().await;
    assert_eq!(answer.status(), status);
    assert_eq!(
        answer.get("content-type").unwrap(),
        "application/problem+json"
    );
    assert_eq!(answer.get("connection").unwrap(), "close");
    assert_eq!(answer.json()["detail"], detail);
    assert!(client.closes_quietly().await);
}

const OF_CLIENT: &str = "this client has as many connections as it may have";
const OF_ALL: &str = "there are as many connections as there may be";

/// On several cores, in front of `upstream`.
fn on_cores(upstream: &Upstream, gateway: &str) -> Running {
    let policy = policy(&[upstream.address], "", gateway);
    let clock = Arc::new(SystemClock::new());
    let timer = Arc::new(TokioTimer::new(clock.clone()));
    Running::on(NonZeroUsize::new(3).unwrap(), policy, clock, timer)
}

// SEMANTICS case 23, for connections.
// shows: A2 (connections), D3 (limit_conn and maxConnections)
#[tokio::test]
async fn the_11th_connection_of_a_client_and_the_101st_of_all_are_refused() {
    let upstream = Upstream::answering(OK).await;
    let bounds = "  max_connections: 100\n  max_connections_per_client: 10\n  when_full: refuse";
    let gateway = on_cores(&upstream, bounds);
    let address = gateway.address;
    let mut open = Vec::new();
    for number in 0..10 {
        for _ in 0..10 {
            open.push(client(address, number).await);
            // Cores accept in any order.
            let so_many = open.len() as u64;
            gateway.counted(|now| now.connections_open == so_many).await;
        }
        refused(client(address, number).await, 429, OF_CLIENT).await;
    }
    for one in &mut open {
        assert_eq!(one.get("/").await.status(), 200);
    }
    refused(client(address, 10).await, 503, OF_ALL).await;
    assert_eq!(gateway.counters().connections_open, 100);
    assert_eq!(gateway.counters().connections_accepted, 100);
    assert_eq!(gateway.counters().connections_refused, 11);

    // The last of client 9, and the first of client 0, which is reset.
    drop(open.pop());
    open.remove(0).reset();
    gateway.counted(|now| now.connections_open == 98).await;
    for number in [0, 9] {
        let mut again = client(address, number).await;
        assert_eq!(again.get("/").await.status(), 200);
        refused(client(address, number).await, 429, OF_CLIENT).await;
        open.push(again);
    }
    refused(client(address, 10).await, 503, OF_ALL).await;
}

/// However a connection ends.
#[tokio::test]
async fn a_place_comes_back_whatever_ends_its_connection() {
    let upstream = Upstream::answering(OK).await;
    let bounds = "  max_connections_per_client: 1\n  header_timeout: 100ms\n  idle_timeout: 100ms";
    let gateway = on_cores(&upstream, bounds);
    for ending in ["", "GET / HT", "NONSENSE\r\n\r\n", GET] {
        let mut one = client(gateway.address, 0).await;
        one.send(ending).await;
        // It ends by a deadline, or at once.
        one.rest().await;
        gateway.counted(|now| now.connections_open == 0).await;
    }
    assert_eq!(gateway.counters().connections_refused, 0);
    let mut one = client(gateway.address, 0).await;
    assert_eq!(one.get("/").await.status(), 200);
    refused(client(gateway.address, 0).await, 429, OF_CLIENT).await;
}

#[tokio::test]
async fn trusted_proxies_may_have_any_number() {
    let upstream = Upstream::answering(OK).await;
    let bounds = "  max_connections_per_client: 1\n  trusted_proxies: 127.0.1.7";
    let gateway = on_cores(&upstream, bounds);
    let mut open = Vec::new();
    for _ in 0..5 {
        let mut proxy = client(gateway.address, 7).await;
        assert_eq!(proxy.get("/").await.status(), 200);
        open.push(proxy);
    }
    let mut other = client(gateway.address, 8).await;
    assert_eq!(other.get("/").await.status(), 200);
    refused(client(gateway.address, 8).await, 429, OF_CLIENT).await;
}

/// A client that asks at once is told, not reset, whatever comes first.
#[tokio::test]
async fn who_has_asked_reads_why_it_is_refused() {
    let upstream = Upstream::answering(OK).await;
    let gateway = Running::before(&[upstream.address], "", "  max_connections_per_client: 1");
    let _first = client(gateway.address, 0).await;
    gateway.counted(|now| now.connections_open == 1).await;
    for _ in 0..50 {
        let mut asks = client(gateway.address, 0).await;
        // It may be closed already.
        let _ = asks.try_send(GET).await;
        assert_eq!(asks.message().await.status(), 429);
    }
}

/// What the kernel does beyond `accept_queue`: it lets a connection attempt wait, unanswered.
#[tokio::test]
async fn the_accept_queue_is_as_long_as_the_policy_says() {
    const QUEUE: usize = 4;
    let upstream = Upstream::answering(OK).await;
    let bounds = format!("  max_connections: 1\n  accept_queue: {QUEUE}");
    let gateway = Running::before(&[upstream.address], "", &bounds);
    let mut first = gateway.connect().await;
    assert_eq!(first.get("/").await.status(), 200);
    let mut waiting = Vec::new();
    let attempt = loop {
        assert!(waiting.len() < 20, "there is no bound");
        let mut attempt = Box::pin(TcpStream::connect(gateway.address));
        match tokio::time::timeout(Duration::from_millis(300), &mut attempt).await {
            Ok(connected) => waiting.push(Wire::new(connected.unwrap())),
            Err(_) => break attempt,
        }
    };
    // One has been accepted and waits for its place; the kernel's bound is its own number of
    // connections beyond which none is added, so that there may be one more than that.
    assert!(
        (QUEUE..=QUEUE + 2).contains(&waiting.len()),
        "{}",
        waiting.len()
    );
    drop(first);
    for mut client in waiting {
        assert_eq!(client.get("/").await.status(), 200);
    }
    // The attempt is repeated by the client's kernel, and then there is room.
    let mut last = Wire::new(soon(attempt).await.unwrap());
    assert_eq!(last.get("/").await.status(), 200);
}

/// A request that is held by the upstream until the test lets it go.
async fn hold(
    gateway: &Running,
    number: u8,
    held: &mut mpsc::UnboundedReceiver<oneshot::Sender<()>>,
) -> (Wire, oneshot::Sender<()>) {
    let mut one = client(gateway.address, number).await;
    one.send(GET).await;
    (one, soon(held.recv()).await.unwrap())
}

async fn ask(gateway: &Running, number: u8) -> Message {
    let mut one = client(gateway.address, number).await;
    one.send(GET).await;
    one.message().await
}

// SEMANTICS case 23, as `limit_conn` counts: requests in flight, by address and by server.
// shows: A2 (requests in flight), D3 (limit_conn)
#[tokio::test]
async fn the_11th_request_of_a_client_and_the_101st_of_a_server_are_refused() {
    let (upstream, mut held) = Upstream::held("", OK).await;
    let limits = "  addr:\n    concurrency: 10\n    key: [client_ip]\n  \
                  server:\n    concurrency: 100\n    key: [host]";
    let gateway = Running::before(&[upstream.address], limits, "");
    let mut busy = Vec::new();
    for number in 0..10 {
        for _ in 0..10 {
            busy.push(hold(&gateway, number, &mut held).await);
        }
        let answer = ask(&gateway, number).await;
        assert_eq!(answer.status(), 429);
        assert!(answer.text().contains("addr"), "{}", answer.text());
    }
    let answer = ask(&gateway, 10).await;
    assert_eq!(answer.status(), 429);
    assert!(answer.text().contains("server"), "{}", answer.text());

    // One is answered, one goes away.
    let (mut answered, go_on) = busy.pop().unwrap();
    go_on.send(()).unwrap();
    assert_eq!(answered.message().await.status(), 200);
    let (gone, _) = busy.remove(0);
    gone.reset();
    gateway.counted(|now| now.connections_open == 99).await;
    for number in [9, 0] {
        busy.push(hold(&gateway, number, &mut held).await);
        assert_eq!(ask(&gateway, number).await.status(), 429);
    }
}
