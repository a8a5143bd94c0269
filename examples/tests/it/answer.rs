//! What the gateway answers, clock standing still.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use tidegate::{ManualClock, Timestamp};
use tidegate_gateway::{Gateway, TokioTimer};
use tidegate_node::Node;
use tidegate_policy::Policy;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// Longest time that all of it may take.
const DEADLINE: Duration = Duration::from_secs(20);

/// The answer to the `number`th `GET /` of one connection, without its date.
pub(crate) fn nth_answer(policy: Policy, number: usize) -> Result<String, String> {
    let mut config = policy.gateway.clone().ok_or("this policy has no gateway")?;
    config.listen = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
    let clock = Arc::new(ManualClock::new(Timestamp::from_secs(1_000_000)));
    let node = Node::new(policy, clock.clone()).map_err(|error| error.to_string())?;
    let timer = Arc::new(TokioTimer::new(clock));
    let bound = Gateway::bind_on(&config, node, timer, NonZeroUsize::MIN);
    let bound = bound.map_err(|error| error.to_string())?;
    let address = bound.local_addrs()[0];
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let serving = bound.run(async {
            let _ = stopped.await;
        });
        let asking = async {
            let answer = tokio::time::timeout(DEADLINE, ask(address, number)).await;
            drop(stop);
            answer
        };
        let (served, answer) = tokio::join!(serving, asking);
        served.map_err(|error| error.to_string())?;
        answer
            .map_err(|_| "no answer in time".to_owned())?
            .map_err(|error| error.to_string())
    })
}

async fn ask(address: SocketAddr, number: usize) -> std::io::Result<String> {
    let mut stream = BufReader::new(TcpStream::connect(address).await?);
    let mut answer = String::new();
    for _ in 0..number {
        stream
            .write_all(b"GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n")
            .await?;
        answer = one_answer(&mut stream).await?;
    }
    Ok(answer)
}

async fn one_answer(stream: &mut BufReader<TcpStream>) -> std::io::Result<String> {
    let mut text = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end();
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().map_err(std::io::Error::other)?;
        }
        if !line.starts_with("date: ") {
            text.push_str(line);
            text.push('\n');
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    text.push_str(&String::from_utf8_lossy(&body));
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}
