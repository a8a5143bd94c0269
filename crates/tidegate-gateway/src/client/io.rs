//! A client's socket, as hyper reads and writes it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use hyper::rt::{Read, ReadBufCursor, Write};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::Client;
use super::inbound::{Found, Inbound};
use crate::socket::{Together, write_together};
use crate::watch::Phase;

/// What stands between hyper and the socket: reads what the client sends through the framer, and
/// notes how the client keeps up.
pub(super) struct ClientIo {
    reader: OwnedReadHalf,
    writer: Rc<OwnedWriteHalf>,
    inbound: Inbound,
    client: Rc<Client>,
}

impl ClientIo {
    pub(super) fn new(
        reader: OwnedReadHalf,
        writer: Rc<OwnedWriteHalf>,
        client: Rc<Client>,
    ) -> Self {
        Self {
            reader,
            writer,
            inbound: Inbound::new(client.core.bounds),
            client,
        }
    }

    pub(super) fn into_reader(self) -> OwnedReadHalf {
        self.reader
    }

    /// Takes what the socket has; whether hyper was handed something.
    fn fill(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBufCursor<'_>,
    ) -> Poll<io::Result<Filled>> {
        let client = &self.client;
        let mut scratch = client.core.scratch.borrow_mut();
        let room = self.inbound.room(buffer).min(scratch.len());
        let mut read = ReadBuf::new(&mut scratch[..room]);
        let polled = Pin::new(&mut self.reader).poll_read(context, &mut read);
        if polled.is_pending() {
            client.is_reading.set(true);
        }
        ready!(polled)?;
        let filled = match read.filled() {
            [] => Filled::End,
            bytes if self.inbound.take(bytes, buffer) => Filled::Some,
            _ => Filled::Nothing,
        };
        self.note();
        Poll::Ready(Ok(filled))
    }

    /// Tells the client's other parts where in its messages it is.
    fn note(&self) {
        let client = &self.client;
        client.is_within_head.set(self.inbound.is_within_head());
        client
            .is_between_messages
            .set(self.inbound.is_between_messages());
        client.requests_begun.set(self.inbound.requests());
        client.fault.set(self.inbound.fault());
        if client.is_within_head.get() && client.watch.phase() == Phase::Idle {
            let timeout = client.core.timeouts().header;
            client.watch.expect(Phase::Header, timeout);
        }
    }

    /// Writes with `write`, when the socket takes something, and notes whether it does.
    fn poll_send(
        &self,
        context: &mut Context<'_>,
        write: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        let stream: &TcpStream = (*self.writer).as_ref();
        let watch = &self.client.watch;
        let rate = &self.client.core.timeouts().response_rate;
        self.client.is_flushed.set(false);
        loop {
            let Poll::Ready(ready) = stream.poll_write_ready(context) else {
                watch.download_stalls(rate);
                return Poll::Pending;
            };
            ready?;
            match write(stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => {
                    if let Ok(bytes) = written {
                        watch.download_moved(bytes, rate);
                    }
                    return Poll::Ready(written);
                }
            }
        }
    }
}

/// What came of reading once.
enum Filled {
    Some,
    /// It was not enough for anything.
    Nothing,
    /// The client sends no more.
    End,
}

impl Read for ClientIo {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if this.inbound.hand_on(&mut buffer) {
                this.note();
                return Poll::Ready(Ok(()));
            }
            match this.inbound.fault() {
                Some(Found::InBody(fault)) => {
                    return Poll::Ready(Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        fault.detail,
                    )));
                }
                // hyper has its stand-in, and closes behind it.
                Some(Found::InHead { .. }) => return Poll::Pending,
                None => {}
            }
            match ready!(this.fill(context, &mut buffer))? {
                Filled::Some | Filled::End => return Poll::Ready(Ok(())),
                Filled::Nothing => {}
            }
        }
    }
}

impl Write for ClientIo {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_send(context, |stream| stream.try_write(bytes))
    }

    /// hyper calls this when the socket has taken all that it had.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.client.watch.download_ended();
        self.client.is_flushed.set(true);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let stream: &TcpStream = (*self.writer).as_ref();
        Poll::Ready(socket2::SockRef::from(stream).shutdown(std::net::Shutdown::Write))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        write_together(buffers, |what| match what {
            Together::One(bytes) => self.poll_send(context, |stream| stream.try_write(bytes)),
            Together::Many(buffers) => {
                self.poll_send(context, |stream| stream.try_write_vectored(buffers))
            }
        })
    }
}
