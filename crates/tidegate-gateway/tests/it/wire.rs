//! HTTP/1.1 by hand, for both ends: what is sent is exactly what a test wrote.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Nothing in these tests takes that long, unless it is broken.
const DEADLINE: Duration = Duration::from_secs(20);

/// `what`, which must come within the deadline.
#[track_caller]
pub(crate) fn soon<F: Future>(what: F) -> impl Future<Output = F::Output> {
    let place = std::panic::Location::caller();
    async move {
        let done = tokio::time::timeout(DEADLINE, what).await;
        done.unwrap_or_else(|_| panic!("{place}: nothing within {DEADLINE:?}"))
    }
}

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: TcpStream,
    /// Read and not looked at.
    buffer: Vec<u8>,
}

/// The header of a message.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    /// `GET / HTTP/1.1`, or `HTTP/1.1 200 OK`.
    pub(crate) start: String,
    /// Names in lower case, in order.
    pub(crate) fields: Vec<(String, String)>,
}

/// A whole message.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) head: Head,
    pub(crate) body: Vec<u8>,
}

impl Head {
    pub(crate) fn status(&self) -> u16 {
        self.start
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .expect("a status line")
    }

    /// The values of a field, joined.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        let fields = self.fields.iter().filter(|(field, _)| field == name);
        let values: Vec<_> = fields.map(|(_, value)| value.as_str()).collect();
        (!values.is_empty()).then(|| values.join(", "))
    }

    fn is_chunked(&self) -> bool {
        self.get("transfer-encoding")
            .is_some_and(|value| value == "chunked")
    }

    fn length(&self) -> Option<usize> {
        self.get("content-length")
            .map(|length| length.parse().expect("a length"))
    }
}

impl Message {
    pub(crate) fn status(&self) -> u16 {
        self.head.status()
    }

    pub(crate) fn get(&self, name: &str) -> Option<String> {
        self.head.get(name)
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("a body of text")
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("a body of JSON")
    }
}

impl Wire {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = soon(TcpStream::connect(address))
            .await
            .expect("a connection");
        Self::new(stream)
    }

    pub(crate) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            buffer: Vec::new(),
        }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes).await.expect("the other end reads");
    }

    pub(crate) async fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> std::io::Result<()> {
        soon(self.stream.write_all(bytes.as_ref())).await
    }

    /// Sends a request without a body, and reads the answer.
    pub(crate) async fn get(&mut self, path: &str) -> Message {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: example.com\r\n\r\n"))
            .await
    }

    /// Sends what is a request, and reads the answer.
    pub(crate) async fn ask(&mut self, request: &str) -> Message {
        self.send(request).await;
        self.message().await
    }

    /// The next message.
    pub(crate) async fn message(&mut self) -> Message {
        self.next_message().await.expect("a message")
    }

    /// The next message; `None` if the other end has closed instead.
    pub(crate) async fn next_message(&mut self) -> Option<Message> {
        let head = self.head().await?;
        let body = self.body(&head).await;
        Some(Message { head, body })
    }

    /// The header of the next message; `None` if the other end has closed instead.
    pub(crate) async fn head(&mut self) -> Option<Head> {
        let end = loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                break end;
            }
            if self.read().await == 0 {
                assert!(
                    self.buffer.is_empty(),
                    "half a header: {:?}",
                    self.buffer.escape_ascii()
                );
                return None;
            }
        };
        let text: Vec<u8> = self.buffer.drain(..end + 4).collect();
        let text = String::from_utf8(text).expect("a header of text");
        let mut lines = text.trim_end().split("\r\n");
        let start = lines.next().unwrap_or_default().to_owned();
        let fields = lines.map(|line| {
            let (name, value) = line.split_once(':').expect("a field");
            (name.to_ascii_lowercase(), value.trim().to_owned())
        });
        Some(Head {
            start,
            fields: fields.collect(),
        })
    }

    async fn body(&mut self, head: &Head) -> Vec<u8> {
        if head.is_chunked() {
            let mut body = Vec::new();
            while let Some(chunk) = self.chunk().await {
                body.extend(chunk);
            }
            return body;
        }
        let is_answer = head.start.starts_with("HTTP/");
        match head.length() {
            Some(length) => self.exactly(length).await,
            None if is_answer && head.status() != 204 && head.status() != 304 => self.rest().await,
            None => Vec::new(),
        }
    }

    /// The next piece of a chunked body; `None` at its end.
    pub(crate) async fn chunk(&mut self) -> Option<Vec<u8>> {
        let end = loop {
            if let Some(end) = find(&self.buffer, b"\r\n") {
                break end;
            }
            assert!(self.read().await > 0, "a chunked body broken off");
        };
        let line: Vec<u8> = self.buffer.drain(..end + 2).collect();
        let line = std::str::from_utf8(&line[..end]).expect("a length");
        let length = usize::from_str_radix(line, 16).expect("a length");
        let mut chunk = self.exactly(length + 2).await;
        chunk.truncate(length);
        (length > 0).then_some(chunk)
    }

    pub(crate) async fn exactly(&mut self, length: usize) -> Vec<u8> {
        while self.buffer.len() < length {
            assert!(self.read().await > 0, "a body broken off");
        }
        self.buffer.drain(..length).collect()
    }

    /// Takes what is there of a body of which `most` are still to come; how much that was.
    pub(crate) async fn some(&mut self, most: usize) -> usize {
        if self.buffer.is_empty() {
            self.read().await;
        }
        let length = self.buffer.len().min(most);
        self.buffer.drain(..length);
        length
    }

    /// Sends, however long the other end takes to read.
    pub(crate) async fn send_all(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Everything until the other end closes or breaks off.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        while self.read().await > 0 {}
        std::mem::take(&mut self.buffer)
    }

    /// Says that nothing more will be sent, and still reads.
    pub(crate) async fn shut(&mut self) {
        self.stream.shutdown().await.expect("a socket that is open");
    }

    /// Reads for as long as something comes; what ended it.
    pub(crate) async fn end(&mut self) -> (Vec<u8>, std::io::Result<()>) {
        loop {
            match soon(self.stream.read_buf(&mut self.buffer)).await {
                Ok(0) => return (std::mem::take(&mut self.buffer), Ok(())),
                Ok(_) => {}
                Err(error) => return (std::mem::take(&mut self.buffer), Err(error)),
            }
        }
    }

    /// Waits until the other end has closed, and says whether it sent nothing before.
    pub(crate) async fn closes_quietly(&mut self) -> bool {
        self.rest().await.is_empty()
    }

    /// 0: closed, or reset.
    async fn read(&mut self) -> usize {
        soon(self.stream.read_buf(&mut self.buffer))
            .await
            .unwrap_or(0)
    }

    /// Closes the connection with a reset.
    pub(crate) fn reset(self) {
        self.stream
            .set_zero_linger()
            .expect("a socket that can be reset");
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
