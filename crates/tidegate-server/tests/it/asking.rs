//! Clients that ask all the time, some on a connection each time, some on one that is kept.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::running::DEADLINE;

/// Clients of either kind.
const CLIENTS: usize = 8;
/// What is kept of what went wrong.
const MAX_FAULTS: usize = 20;

/// Clients on a thread of their own.
#[derive(Debug)]
pub(crate) struct Asking {
    shared: Arc<Shared>,
    thread: JoinHandle<Vec<String>>,
}

#[derive(Debug)]
struct Shared {
    address: SocketAddr,
    answered: AtomicU64,
    stop: AtomicBool,
}

impl Asking {
    pub(crate) fn start(address: SocketAddr) -> Self {
        let shared = Arc::new(Shared {
            address,
            answered: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        });
        let clients = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(ask(clients))
        });
        Self { shared, thread }
    }

    /// Waits for so many more answers.
    pub(crate) fn until_answered(&self, more: u64) {
        let wanted = self.shared.answered.load(Ordering::Relaxed) + more;
        let deadline = Instant::now() + DEADLINE;
        while self.shared.answered.load(Ordering::Relaxed) < wanted {
            assert!(Instant::now() < deadline, "nobody is answered");
            if self.thread.is_finished() {
                return; // What is wrong is told at the end.
            }
            std::thread::park_timeout(std::time::Duration::from_millis(1));
        }
    }

    /// What went wrong: nothing, if all that was asked was answered with 200.
    pub(crate) fn stop(self) -> Vec<String> {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

async fn ask(shared: Arc<Shared>) -> Vec<String> {
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        for kept in [false, true] {
            clients.spawn(client(Arc::clone(&shared), kept));
        }
    }
    let mut faults = Vec::new();
    while let Some(ended) = clients.join_next().await {
        if let Err(error) = ended.unwrap() {
            faults.push(error.to_string());
            shared.stop.store(true, Ordering::Relaxed);
        }
    }
    faults.truncate(MAX_FAULTS);
    faults
}

/// Asks until it is to stop, or something is wrong.
async fn client(shared: Arc<Shared>, kept: bool) -> io::Result<()> {
    let is_over = || shared.stop.load(Ordering::Relaxed);
    while !is_over() {
        let mut stream = within("connects", TcpStream::connect(shared.address)).await?;
        let mut asked = 0;
        loop {
            let closes = within("is answered", exchange(&mut stream, kept))
                .await
                .map_err(|error| {
                    let message = format!("request {asked} of a connection: {error}");
                    io::Error::new(error.kind(), message)
                })?;
            shared.answered.fetch_add(1, Ordering::Relaxed);
            asked += 1;
            if closes || is_over() {
                break;
            }
        }
    }
    Ok(())
}

async fn within<T>(what: &str, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let late = || io::Error::new(io::ErrorKind::TimedOut, format!("nobody {what}"));
    timeout(DEADLINE, work).await.map_err(|_| late())?
}

/// One request and its answer, which is 200: whether the connection ends with it.
async fn exchange(stream: &mut TcpStream, kept: bool) -> io::Result<bool> {
    let fields = if kept { "" } else { "connection: close\r\n" };
    let request = format!("GET / HTTP/1.1\r\nhost: a\r\n{fields}\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    loop {
        if stream.read_buf(&mut answer).await? == 0 {
            let message = format!("closed after {} bytes", answer.len());
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
        }
        let text = String::from_utf8_lossy(&answer);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let head = head.to_lowercase();
        let field = |name: &str| {
            let mut fields = head.lines().filter_map(|line| line.split_once(": "));
            fields.find_map(|(its, value)| (its == name).then(|| value.to_owned()))
        };
        let length = field("content-length").and_then(|length| length.parse::<usize>().ok());
        if length != Some(body.len()) {
            continue;
        }
        if !head.starts_with("http/1.1 200 ") {
            return Err(io::Error::other(head.clone()));
        }
        return Ok(field("connection").as_deref() == Some("close"));
    }
}
