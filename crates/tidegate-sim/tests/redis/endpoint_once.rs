//! An endpoint never sends a call again that may have run: seen from a server's side.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tidegate_redis::{EndpointConfig, Scripts, Unavailable};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::endpoint::{BUDGET, COUNT, call, is_up, start, until};

/// Reads one command: an array of strings.
async fn command(stream: &mut BufReader<TcpStream>) -> Option<Vec<String>> {
    let mut words = Vec::new();
    for _ in 0..number(stream).await? {
        let mut word = vec![0; number(stream).await? + 2];
        stream.read_exact(&mut word).await.ok()?;
        words.push(String::from_utf8_lossy(&word).trim_end().to_owned());
    }
    Some(words)
}

/// `*<number>` or `$<number>`.
async fn number(stream: &mut BufReader<TcpStream>) -> Option<usize> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    line.get(1..)?.trim_end().parse().ok()
}

/// What a server does with calls of scripts.
#[derive(Clone, Copy, Debug)]
enum Manner {
    /// Closes the connection.
    Closes,
    /// Nothing.
    Waits,
}

/// How often scripts were called, and connections closed.
#[derive(Debug, Default)]
struct Seen {
    calls: AtomicU64,
    closed: AtomicU64,
}

async fn converse(stream: TcpStream, manner: Manner, seen: Arc<Seen>) {
    let mut stream = BufReader::new(stream);
    while let Some(words) = command(&mut stream).await {
        if !words[0].starts_with("EVAL") {
            let _ = stream.get_mut().write_all(b"+OK\r\n").await;
            continue;
        }
        seen.calls.fetch_add(1, Ordering::Relaxed);
        if matches!(manner, Manner::Closes) {
            break;
        }
    }
    seen.closed.fetch_add(1, Ordering::Relaxed);
}

/// A server that answers everything but scripts: its URL, and what it sees.
async fn serve(manner: Manner) -> (String, Arc<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let seen = Arc::new(Seen::default());
    let theirs = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(converse(stream, manner, Arc::clone(&theirs)));
        }
    });
    (url, seen)
}

#[tokio::test]
async fn a_connection_that_owes_answers_is_closed_all_the_same() {
    let (url, seen) = serve(Manner::Waits).await;
    let endpoint = start(EndpointConfig::single(&url).unwrap()).await;
    let budget = Duration::from_millis(2);
    for _ in 0..5 {
        let answer = endpoint.call(call(&COUNT, "k", 1), budget).await;
        assert_eq!(answer, Err(Unavailable::TimedOut(budget)));
    }
    until(&endpoint, |_| seen.closed.load(Ordering::Relaxed) == 2).await;
}

#[tokio::test]
async fn a_call_whose_connection_is_lost_is_not_sent_again() {
    let (url, seen) = serve(Manner::Closes).await;
    let endpoint = start(EndpointConfig::single(&url).unwrap()).await;
    for round in 1..5 {
        let connects = endpoint.health().counts.connects;
        let answer = endpoint.call(call(&COUNT, "k", 1), BUDGET).await;
        let lost = matches!(&answer, Err(Unavailable::Server(why)) if why.contains("lost"));
        assert!(lost, "{answer:?}");
        until(&endpoint, |endpoint| {
            endpoint.health().counts.connects > connects
        })
        .await;
        until(&endpoint, is_up).await;
        assert_eq!(seen.calls.load(Ordering::Relaxed), round);
    }
    assert_eq!(endpoint.health().counts.lost, 4);
}
