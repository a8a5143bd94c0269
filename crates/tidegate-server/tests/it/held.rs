//! A server that answers when it is told to, a piece at a time.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

use crate::client::soon;

/// The halves of every answer.
const FIRST: &str = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst";
const LAST: &str = "-last";

/// Requests by their path, with what each has got so far.
#[derive(Debug, Default)]
struct Book(HashMap<String, Seen>);

#[derive(Clone, Debug, Default)]
struct Seen {
    has_come: bool,
    has_gone: bool,
    go_on: Option<mpsc::UnboundedSender<&'static str>>,
}

/// The server; stops when it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) address: SocketAddr,
    book: Arc<watch::Sender<Book>>,
    accepting: AbortHandle,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Held {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let book = Arc::new(watch::Sender::new(Book::default()));
        let of_all = Arc::clone(&book);
        let accepting = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, Arc::clone(&of_all)));
            }
        });
        Self {
            address,
            book,
            accepting: accepting.abort_handle(),
        }
    }

    /// Waits until a request of this path has come.
    pub(crate) async fn has_come(&self, path: &str) {
        self.until(path, |seen| seen.has_come).await;
    }

    /// Waits until whoever sent it on has let go of it.
    pub(crate) async fn has_gone(&self, path: &str) {
        soon(self.until(path, |seen| seen.has_gone)).await;
    }

    async fn until(&self, path: &str, is_so: impl Fn(&Seen) -> bool) {
        let mut book = self.book.subscribe();
        let found = book.wait_for(|book| book.0.get(path).is_some_and(&is_so));
        found.await.expect("the sender is ours");
    }

    /// Answers the first half.
    pub(crate) fn begin(&self, path: &str) {
        self.send(path, FIRST);
    }

    /// Answers what is left.
    pub(crate) fn finish(&self, path: &str) {
        self.send(path, LAST);
    }

    fn send(&self, path: &str, piece: &'static str) {
        let book = self.book.borrow();
        let go_on = book.0[path].go_on.as_ref().expect("it has come");
        go_on.send(piece).expect("it is there");
    }
}

async fn serve(mut stream: TcpStream, book: Arc<watch::Sender<Book>>) {
    let mut head = Vec::new();
    loop {
        while !head.windows(4).any(|end| end == b"\r\n\r\n") {
            if !matches!(stream.read_buf(&mut head).await, Ok(1..)) {
                return;
            }
        }
        let text = String::from_utf8_lossy(&head);
        let path = text.split(' ').nth(1).unwrap().to_owned();
        head.clear();
        let (go_on, mut pieces) = mpsc::unbounded_channel();
        let seen = Seen {
            has_come: true,
            has_gone: false,
            go_on: Some(go_on),
        };
        book.send_modify(|book| {
            book.0.insert(path.clone(), seen);
        });
        loop {
            tokio::select! {
                piece = pieces.recv() => {
                    let Some(piece) = piece else { return };
                    let _ = stream.write_all(piece.as_bytes()).await;
                    if piece == LAST {
                        break;
                    }
                }
                read = stream.read_buf(&mut head) => {
                    if !matches!(read, Ok(1..)) {
                        book.send_modify(|book| {
                            book.0.get_mut(&path).expect("inserted above").has_gone = true;
                        });
                        return;
                    }
                }
            }
        }
    }
}
