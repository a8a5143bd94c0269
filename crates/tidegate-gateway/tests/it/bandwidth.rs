//! Bodies held back to what limits of bandwidth let pass, on the wire.

use std::time::{Duration, Instant};

use crate::gateway::Running;
use crate::upstream::{Served, Upstream};

/// Answers `GET /1000` with 1000 bytes, as fast as it can.
async fn serves_bytes(mut served: Served) {
    while let Some(request) = served.request().await {
        let length = request.head.start.split(' ').nth(1).unwrap();
        let length: usize = length.trim_start_matches('/').parse().unwrap();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        served.wire.send(head).await;
        if served.wire.try_send(vec![b'x'; length]).await.is_err() {
            return;
        }
    }
}

async fn byte_server() -> Upstream {
    Upstream::start(serves_bytes).await
}

/// The limit of case 24, ten times as fast.
const PER_USER: &str = "  user:\n    bandwidth: 1MB/s\n    key: header:user-id";

fn get(length: usize, user: &str) -> String {
    format!("GET /{length} HTTP/1.1\r\nHost: a\r\nUser-Id: {user}\r\n\r\n")
}

// shows: A3 (responses)
#[tokio::test]
async fn alone_a_user_has_one_bandwidth_over_two_connections() {
    let upstream = byte_server().await;
    let gateway = Running::before(&[upstream.address], PER_USER, "");
    let mut clients = [gateway.connect().await, gateway.connect().await];
    let start = Instant::now();
    for client in &mut clients {
        client.send(get(500_000, "ann")).await;
    }
    for client in &mut clients {
        assert_eq!(client.message().await.body.len(), 500_000);
    }
    is_within(start.elapsed(), Duration::from_secs(1), 0.05);
}

#[track_caller]
fn is_within(took: Duration, due: Duration, part: f64) {
    let ratio = took.as_secs_f64() / due.as_secs_f64();
    assert!((ratio - 1.0).abs() <= part, "{took:?} in place of {due:?}");
}
