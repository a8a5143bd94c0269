//! An upstream server that keeps every byte it is sent.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

use crate::upstream::OK;

/// A server that answers each request with [`OK`]; stops when it is dropped.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<u8>>>,
    accepting: AbortHandle,
}

impl Recorder {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&seen);
        let accepting = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, Arc::clone(&all)));
            }
        });
        Self {
            address,
            seen,
            accepting: accepting.abort_handle(),
        }
    }

    /// All that came, on whatever connection, since this was last asked.
    pub(crate) fn take(&self) -> String {
        let seen = std::mem::take(&mut *self.seen.lock().unwrap());
        String::from_utf8(seen).unwrap()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(mut stream: TcpStream, all: Arc<Mutex<Vec<u8>>>) {
    let mut request = Vec::new();
    let mut buffer = vec![0; 4096];
    loop {
        let read = stream.read(&mut buffer).await.unwrap_or(0);
        if read == 0 {
            return;
        }
        request.extend_from_slice(&buffer[..read]);
        all.lock().unwrap().extend_from_slice(&buffer[..read]);
        if is_whole(&request) {
            request.clear();
            if stream.write_all(OK.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

/// Of the requests that the gateway writes: it says one length, and chunks without more.
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_ascii_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    if head.contains("\r\ntransfer-encoding: chunked") {
        return body.ends_with("0\r\n\r\n");
    }
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    body.len() == length.map_or(0, |length| length.parse().unwrap())
}
