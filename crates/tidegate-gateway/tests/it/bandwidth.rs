//! Bodies held back to what limits of bandwidth let pass, on the wire and by the clock.

mod messages;

use std::time::{Duration, Instant};

use tidegate_gateway::RequestView;
use tidegate_node::Call;
use tidegate_policy::BodyOf;
use tokio::sync::mpsc;

use crate::gateway::{Running, policy};
use crate::upstream::{Served, Upstream};
use crate::wire::Wire;

/// The limit of case 24, ten times as fast.
const PER_USER: &str = "  user:\n    bandwidth: 1MB/s\n    key: header:user-id";

/// Answers `GET /1000` with 1000 bytes, as fast as it can, and what else there is in a body with
/// how many bytes it had.
async fn serves_bytes(mut served: Served) {
    while let Some(request) = served.request().await {
        let path = request.head.start.split(' ').nth(1).unwrap();
        let body = match path.trim_start_matches('/').parse() {
            Ok(length) => vec![b'x'; length],
            Err(_) => request.body.len().to_string().into_bytes(),
        };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        served.wire.send(head).await;
        if served.wire.try_send(body).await.is_err() {
            return;
        }
    }
}

pub(crate) async fn byte_server() -> Upstream {
    Upstream::start(serves_bytes).await
}

pub(crate) fn get(length: usize, user: &str) -> String {
    format!("GET /{length} HTTP/1.1\r\nHost: a\r\nUser-Id: {user}\r\n\r\n")
}

pub(crate) fn post(length: usize, user: &str) -> Vec<u8> {
    let head = format!(
        "POST /up HTTP/1.1\r\nHost: a\r\nUser-Id: {user}\r\nContent-Length: {length}\r\n\r\n"
    );
    let mut request = head.into_bytes();
    request.resize(request.len() + length, b'y');
    request
}

/// Whether `measure` takes `due`, within so many parts of a hundred. On a busy machine it may take
/// longer now and then, but never less.
async fn takes<F: Future<Output = Duration>>(due: Duration, percent: u32, measure: impl Fn() -> F) {
    let mut longest = Duration::ZERO;
    for _ in 0..3 {
        let took = measure().await;
        let off = due * percent / 100;
        assert!(took + off >= due, "{took:?} in place of {due:?}");
        if took <= due + off {
            return;
        }
        longest = longest.max(took);
    }
    panic!("{longest:?} in place of {due:?}");
}

/// How long a user needs for so many bytes over two connections.
async fn over_two_connections(limit: &str, bytes: usize) -> Duration {
    let upstream = byte_server().await;
    let gateway = Running::before(&[upstream.address], limit, "");
    let mut clients = [gateway.connect().await, gateway.connect().await];
    let start = Instant::now();
    for client in &mut clients {
        client.send(get(bytes / 2, "ann")).await;
    }
    for client in &mut clients {
        assert_eq!(client.message().await.body.len(), bytes / 2);
    }
    start.elapsed()
}

// shows: A3 (responses), A3 (case 24 ten times as fast)
#[tokio::test]
async fn alone_a_user_has_one_bandwidth_over_two_connections() {
    let measure = || over_two_connections(PER_USER, 1_000_000);
    takes(Duration::from_secs(1), 6, measure).await;
}

// shows: A3 (responses), A3 (case 24)
#[tokio::test]
#[ignore = "long: ten seconds"]
async fn alone_a_megabyte_at_100_kilobytes_a_second_takes_ten_seconds() {
    let limit = PER_USER.replace("1MB/s", "100KB/s");
    let measure = || over_two_connections(&limit, 1_000_000);
    takes(Duration::from_secs(10), 5, measure).await;
}

// shows: A3 (requests)
#[tokio::test]
async fn alone_uploads_have_one_bandwidth_over_two_connections() {
    let measure = || async {
        let upstream = byte_server().await;
        let limit = format!("{PER_USER}\n    direction: requests");
        let gateway = Running::before(&[upstream.address], &limit, "");
        let upload = || async {
            let mut client = gateway.connect().await;
            client.send(post(500_000, "ann")).await;
            assert_eq!(client.message().await.text(), "500000");
        };
        let start = Instant::now();
        tokio::join!(upload(), upload());
        start.elapsed()
    };
    takes(Duration::from_secs(1), 6, measure).await;
}

#[tokio::test]
async fn what_comes_back_from_an_upload_is_not_held_back() {
    let upstream = byte_server().await;
    // A megabyte would take a quarter of an hour.
    let limit = "  slow:\n    bandwidth: 1KB/s\n    direction: requests";
    let gateway = Running::before(&[upstream.address], limit, "");
    let mut client = gateway.connect().await;
    client.send(get(1_000_000, "ann")).await;
    assert_eq!(client.message().await.body.len(), 1_000_000);
}

/// How many bytes of a body come in each 100 ms.
async fn slots(client: &mut Wire, length: usize) -> Vec<usize> {
    let start = Instant::now();
    let mut slots = Vec::new();
    let mut left = length;
    while left > 0 {
        let read = client.some(left).await;
        assert!(read > 0, "a body broken off");
        left -= read;
        let slot = (start.elapsed().as_millis() / 100) as usize;
        slots.resize(slots.len().max(slot + 1), 0);
        slots[slot] += read;
    }
    slots
}

// shows: A3 (smooth)
#[tokio::test]
async fn alone_bytes_come_evenly() {
    let upstream = byte_server().await;
    let gateway = Running::before(&[upstream.address], PER_USER, "");
    let mut seen = Vec::new();
    for _ in 0..3 {
        let mut client = gateway.connect().await;
        client.send(get(1_000_000, "ann")).await;
        client.head().await.unwrap();
        let slots = slots(&mut client, 1_000_000).await;
        if are_even(&slots) {
            return;
        }
        seen.push(slots);
    }
    panic!("{seen:?}");
}

/// 100 KB each, and at most a burst of 50 KB and a tenth more.
fn are_even(slots: &[usize]) -> bool {
    if !(9..=11).contains(&slots.len()) || slots.iter().any(|bytes| *bytes > 165_000) {
        return false;
    }
    let (_, full) = slots.split_last().unwrap();
    full.iter().all(|bytes| *bytes >= 45_000)
}

// shows: A3 (after)
#[tokio::test]
async fn alone_the_first_part_of_each_response_comes_at_once() {
    let upstream = byte_server().await;
    let limit = format!("{PER_USER}\n    after: 1MB");
    let gateway = Running::before(&[upstream.address], &limit, "");
    let mut client = gateway.connect().await;
    for _ in 0..2 {
        let start = Instant::now();
        client.send(get(1_300_000, "ann")).await;
        client.head().await.unwrap();
        client.exactly(1_000_000).await;
        let free = start.elapsed();
        // Counted, it would take a second.
        assert!(free < Duration::from_millis(500), "{free:?}");
        client.exactly(300_000).await;
        // A burst of 50 KB is there, or some more of what comes while the first part passes.
        let took = start.elapsed();
        assert!(took >= Duration::from_millis(240), "{took:?}");
    }
}

// shows: A3 (backpressure)
#[tokio::test]
async fn an_upstream_that_sends_as_fast_as_it_can_has_to_wait() {
    const ALL: usize = 64 << 20;
    let (send, mut sent) = mpsc::unbounded_channel();
    let upstream = Upstream::start(move |mut served| {
        let send = send.clone();
        async move {
            served.request().await;
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {ALL}\r\n\r\n");
            served.wire.send(head).await;
            let piece = vec![b'x'; 64 << 10];
            for _ in 0..ALL / piece.len() {
                if served.wire.send_all(&piece).await.is_err() {
                    return;
                }
                let _ = send.send(piece.len());
            }
        }
    })
    .await;
    let limit = "  slow:\n    bandwidth: 1MB/s";
    let gateway = Running::before(&[upstream.address], limit, "");
    let mut client = gateway.connect().await;
    client.send(get(ALL, "ann")).await;
    client.head().await.unwrap();
    // As long as half a megabyte takes. What was sent beyond that lies in the buffers of two
    // sockets, and in one frame.
    client.exactly(500_000).await;
    let mut in_all = 0;
    while let Ok(bytes) = sent.try_recv() {
        in_all += bytes;
    }
    assert!(
        in_all < 16 << 20,
        "{in_all} bytes were taken of the upstream"
    );
}

// shows: A3 (backpressure on uploads)
#[tokio::test]
async fn a_client_that_sends_as_fast_as_it_can_has_to_wait() {
    const ALL: usize = 64 << 20;
    let upstream = byte_server().await;
    let limit = "  slow:\n    bandwidth: 1MB/s\n    direction: requests";
    let gateway = Running::before(&[upstream.address], limit, "");
    let mut client = gateway.connect().await;
    let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {ALL}\r\n\r\n");
    client.send(head).await;
    let piece = vec![b'y'; 64 << 10];
    let mut sent = 0;
    let half_a_second = tokio::time::sleep(Duration::from_millis(500));
    let mut half_a_second = std::pin::pin!(half_a_second);
    loop {
        tokio::select! {
            () = &mut half_a_second => break,
            result = client.send_all(&piece) => result.unwrap(),
        }
        sent += piece.len();
    }
    assert!(sent < 16 << 20, "{sent} bytes were taken of the client");
}

// shows: A3 (give back)
#[tokio::test]
async fn a_client_that_goes_away_gives_back_what_it_has_reserved() {
    let upstream = byte_server().await;
    // A kilobyte at once, and the next in an hour.
    let limit = "  slow:\n    bandwidth: 1KB/h\n    burst: 1KB";
    let gateway = Running::before(&[upstream.address], limit, "");
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = gateway.connect().await;
        client.send(get(2_000, "ann")).await;
        client.head().await.unwrap();
        clients.push(client);
    }
    clients[0].exactly(1_000).await;
    // All wait: the last for more than two hours.
    drop(clients);
    gateway
        .counted(|counters| counters.connections_open == 0)
        .await;
    // Who comes now has what comes in the next hour, not after those who have gone.
    let wait = wait_for(&gateway, 1_000);
    assert!(wait <= Duration::from_hours(1), "{wait:?}");
    assert!(wait > Duration::from_mins(59), "{wait:?}");
}

/// How long a body that comes now waits for so many bytes.
fn wait_for(gateway: &Running, bytes: u64) -> Duration {
    let (parts, ()) = http::Request::get("/").body(()).unwrap().into_parts();
    let now = gateway.node.clock().now();
    let snapshot = gateway.node.snapshot();
    let admission = snapshot.decide(&Call {
        request: &RequestView::new(&parts, None),
        route: "",
        limits: &[0],
        permits: 1,
        max_wait: None,
        peek: false,
        now,
    });
    let mut pacer = admission.pacer(BodyOf::Response).unwrap();
    assert!(pacer.most(&gateway.node, now) >= bytes);
    pacer.take(bytes, now).unwrap()
}

// shows: F4 (bandwidth)
#[tokio::test]
async fn a_reload_holds_for_bodies_that_flow() {
    let upstream = byte_server().await;
    let slow = "  user:\n    bandwidth: 10KB/s\n    burst: 1KB";
    let gateway = Running::before(&[upstream.address], slow, "");
    let mut client = gateway.connect().await;
    client.send(get(1_000_000, "ann")).await;
    client.head().await.unwrap();
    client.exactly(3_000).await;
    let fast = "  user:\n    bandwidth: 100MB/s";
    gateway
        .node
        .reload(policy(&[upstream.address], fast, ""))
        .unwrap();
    let start = Instant::now();
    client.exactly(997_000).await;
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "{:?}",
        start.elapsed()
    );
}
