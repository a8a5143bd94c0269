//! Upstream servers that do what a test says.

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

use crate::wire::{Message, Wire, soon};

/// A server; stops when it is dropped.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    seen: mpsc::UnboundedReceiver<Message>,
    accepting: AbortHandle,
}

/// What a script gets of one connection.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) wire: Wire,
    seen: mpsc::UnboundedSender<Message>,
}

impl Served {
    /// The next request, which the test can look at; `None` when the gateway has closed.
    pub(crate) async fn request(&mut self) -> Option<Message> {
        let request = self.wire.next_message().await?;
        let _ = self.seen.send(request.clone());
        Some(request)
    }
}

pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

impl Upstream {
    /// Runs `script` for each connection.
    pub(crate) async fn start<F>(script: impl Fn(Served) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("a free port");
        let address = listener.local_addr().expect("an address");
        let connections = Arc::new(AtomicUsize::new(0));
        let (send, seen) = mpsc::unbounded_channel();
        let count = Arc::clone(&connections);
        let accepting = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.expect("a connection");
                count.fetch_add(1, Ordering::SeqCst);
                let served = Served {
                    wire: Wire::new(stream),
                    seen: send.clone(),
                };
                tokio::spawn(script(served));
            }
        });
        Self {
            address,
            connections,
            seen,
            accepting: accepting.abort_handle(),
        }
    }

    /// Answers each request with `answer`.
    pub(crate) async fn answering(answer: &'static str) -> Self {
        Self::start(move |mut served| async move {
            while served.request().await.is_some() {
                served.wire.send(answer).await;
            }
        })
        .await
    }

    /// Answers each request with `first`, and with `rest` when the test says so, which is handed a
    /// way to say so for each.
    pub(crate) async fn held(
        first: &'static str,
        rest: &'static str,
    ) -> (Self, mpsc::UnboundedReceiver<oneshot::Sender<()>>) {
        let (send, held) = mpsc::unbounded_channel();
        let upstream = Self::start(move |mut served| {
            let send = send.clone();
            async move {
                while served.request().await.is_some() {
                    served.wire.send(first).await;
                    let (go_on, wait) = oneshot::channel();
                    send.send(go_on).expect("the test runs");
                    let _ = wait.await;
                    if served.wire.try_send(rest).await.is_err() {
                        return;
                    }
                }
            }
        })
        .await;
        (upstream, held)
    }

    /// A port at which nobody listens.
    pub(crate) async fn nobody() -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("a free port");
        listener.local_addr().expect("an address")
    }

    /// The next request that arrived.
    pub(crate) async fn seen(&mut self) -> Message {
        soon(self.seen.recv()).await.expect("the server runs")
    }

    /// Whether a request has arrived that the test has not looked at.
    pub(crate) fn has_seen(&mut self) -> bool {
        !self.seen.is_empty()
    }

    /// Connections so far.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}
