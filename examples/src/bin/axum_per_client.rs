//! An axum service in which each client may ask so often: a keyed limiter in the router's state.
//!
//! `cargo run -p tidegate-examples --bin axum_per_client`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, State};
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tidegate::{Decision, KeyedLimiter, Quota};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Behind a proxy the peer is the proxy: then the key is the address that it forwards.
async fn search(
    State(per_client): State<Arc<KeyedLimiter>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
) -> Response {
    let decision = per_client.check(&peer.ip());
    if decision.is_denied() {
        return too_many_requests(&decision);
    }
    "found\n".into_response()
}

/// 429, and when to come again: rounded up, since who comes earlier is refused again.
fn too_many_requests(decision: &Decision) -> Response {
    let wait = decision.retry_after().unwrap_or_default();
    let seconds = wait.as_nanos().div_ceil(1_000_000_000).to_string();
    (StatusCode::TOO_MANY_REQUESTS, [(RETRY_AFTER, seconds)]).into_response()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // Two at once, and one more each minute; of the million clients that came last.
    let quota = Quota::per_minute(1).burst(2);
    let per_client = KeyedLimiter::builder(quota).max_keys(1_000_000).build()?;
    let router = Router::new()
        .route("/search", get(search))
        .with_state(Arc::new(per_client));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(axum::serve(listener, service).into_future());

    for expected in ["200 OK", "200 OK", "429 Too Many Requests"] {
        let answer = ask(address).await?;
        let status = answer.lines().next().unwrap_or_default();
        println!("{status}");
        assert!(status.ends_with(expected), "{answer}");
        if expected.starts_with("429") {
            assert!(answer.contains("\r\nretry-after: "), "{answer}");
        }
    }
    Ok(())
}

/// What a client does.
async fn ask(address: SocketAddr) -> Result<String, Box<dyn Error>> {
    let mut stream = TcpStream::connect(address).await?;
    let request = "GET /search?q=tea HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}
