//! A socket on which a request that its server may never have seen is sent once more.
//!
//! A server may close a connection that rests at the moment at which a request is put on it. What
//! then was lost cannot be told from what was done without an answer, so that only a request that
//! may be done twice is sent again (RFC 9110 section 9.2.2): of an idempotent method, without a
//! body, on a connection that had rested, of whose answer no byte has come; once, over a new
//! connection to the same server. hyper does not notice: below it, the new connection takes the
//! place of the old one.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::{Read, ReadBufCursor, Write};
use tokio::net::TcpStream;

use crate::counters::CoreCounters;
use crate::socket::{Scratch, Socket};

/// What has been sent, and may be sent again: shared by a connection and its socket.
#[derive(Debug)]
pub(super) struct Resend {
    address: Box<str>,
    counters: Arc<CoreCounters>,
    scratch: Scratch,
    is_allowed: Cell<bool>,
    timeout: Cell<Duration>,
    sent: RefCell<Vec<u8>>,
}

impl Resend {
    /// Longer requests are not kept.
    const MAX_BYTES: usize = 8 * 1024;

    pub(super) fn new(address: &str, counters: Arc<CoreCounters>, scratch: Scratch) -> Rc<Self> {
        Rc::new(Self {
            address: Box::from(address),
            counters,
            scratch,
            is_allowed: Cell::new(false),
            timeout: Cell::new(Duration::ZERO),
            sent: RefCell::default(),
        })
    }

    /// The next request may be sent twice; a new connection is given `timeout`.
    pub(super) fn allow(&self, timeout: Duration) {
        self.timeout.set(timeout);
        self.is_allowed.set(true);
        self.sent.borrow_mut().clear();
    }

    /// Nothing may be sent again any more.
    pub(super) fn forbid(&self) {
        self.is_allowed.set(false);
    }

    fn note(&self, bytes: &[u8]) {
        if !self.is_allowed.get() {
            return;
        }
        let mut sent = self.sent.borrow_mut();
        if sent.len() + bytes.len() > Self::MAX_BYTES {
            self.forbid();
        } else {
            sent.extend_from_slice(bytes);
        }
    }

    /// Whether something was sent that is to be sent again; says so once.
    fn take(&self) -> bool {
        self.is_allowed.replace(false) && !self.sent.borrow().is_empty()
    }
}

/// The socket.
pub(super) struct ResendingSocket {
    socket: Socket,
    resend: Rc<Resend>,
    again: Option<Again>,
}

/// A new connection, and how much of the request has been written to it.
enum Again {
    Connecting(Pin<Box<dyn Future<Output = io::Result<TcpStream>>>>),
    Writing(usize),
}

impl ResendingSocket {
    pub(super) fn new(stream: TcpStream, resend: Rc<Resend>) -> Self {
        Self {
            socket: Socket::new(stream),
            resend,
            again: None,
        }
    }

    #[cold]
    fn start_again(&mut self) {
        let resend = Rc::clone(&self.resend);
        resend.counters.upstream_retries.add(1);
        self.again = Some(Again::Connecting(Box::pin(async move {
            let connecting = TcpStream::connect(&*resend.address);
            let stream = tokio::time::timeout(resend.timeout.get(), connecting).await??;
            stream.set_nodelay(true)?;
            resend.counters.upstream_connections.add(1);
            Ok(stream)
        })));
    }

    /// Puts the request on a new connection.
    fn poll_again(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            match &mut self.again {
                None => return Poll::Ready(Ok(())),
                Some(Again::Connecting(connecting)) => {
                    let stream = ready!(connecting.as_mut().poll(context))?;
                    self.socket = Socket::new(stream);
                    self.again = Some(Again::Writing(0));
                }
                Some(Again::Writing(written)) => {
                    let sent = self.resend.sent.borrow();
                    if *written == sent.len() {
                        self.again = None;
                        continue;
                    }
                    let socket = Pin::new(&mut self.socket);
                    match ready!(socket.poll_write(context, &sent[*written..]))? {
                        0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                        more => *written += more,
                    }
                }
            }
        }
    }

    /// The first of the answer, and how much it is. A cursor that is given away does not say so:
    /// it goes through memory of ours.
    fn poll_answer(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBufCursor<'_>,
    ) -> Poll<io::Result<usize>> {
        let mut scratch = self.resend.scratch.borrow_mut();
        let room = buffer.remaining().min(scratch.len());
        let bytes = &mut scratch[..room];
        let read = ready!(self.socket.poll_read_some(context, bytes))?;
        buffer.put_slice(&bytes[..read]);
        Poll::Ready(Ok(read))
    }

    /// What came of writing `bytes`: a closed connection is found out when it is read from.
    fn written(&mut self, result: io::Result<usize>, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
        let length = match &result {
            Ok(length) => *length,
            Err(error) if is_closed(error) && self.resend.is_allowed.get() => {
                bytes.iter().map(|bytes| bytes.len()).sum()
            }
            Err(_) => return result,
        };
        if self.resend.is_allowed.get() {
            let mut left = length;
            for bytes in bytes {
                let now = left.min(bytes.len());
                self.resend.note(&bytes[..now]);
                left -= now;
            }
            if result.is_err() && !self.resend.is_allowed.get() {
                return result;
            }
        }
        if result.is_err() && self.resend.take() {
            self.start_again();
        }
        Ok(length)
    }
}

fn is_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
    matches!(
        error.kind(),
        BrokenPipe | ConnectionAborted | ConnectionReset
    )
}

impl Read for ResendingSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if this.again.is_some() {
                ready!(this.poll_again(context))?;
            }
            if !this.resend.is_allowed.get() {
                return Pin::new(&mut this.socket).poll_read(context, buffer);
            }
            match ready!(this.poll_answer(context, &mut buffer)) {
                Ok(0) if this.resend.take() => this.start_again(),
                Err(error) if is_closed(&error) && this.resend.take() => this.start_again(),
                came => {
                    this.resend.forbid();
                    return Poll::Ready(came.map(|_| ()));
                }
            }
        }
    }
}

impl Write for ResendingSocket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = ready!(Pin::new(&mut this.socket).poll_write(context, bytes));
        Poll::Ready(this.written(result, &[IoSlice::new(bytes)]))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = ready!(Pin::new(&mut this.socket).poll_write_vectored(context, buffers));
        Poll::Ready(this.written(result, buffers))
    }
}

impl fmt::Debug for ResendingSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResendingSocket")
            .field("socket", &self.socket)
            .field("resend", &self.resend)
            .finish_non_exhaustive()
    }
}
