//! A TCP socket as hyper reads and writes it.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use smallvec::SmallVec;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;

/// Where what is read from a socket of a core stands for a moment, so that connections need no
/// memory for it.
pub(crate) type Scratch = Rc<RefCell<Box<[u8]>>>;

/// Most bytes that are read into it at once.
const SCRATCH: usize = 64 * 1024;

pub(crate) fn scratch() -> Scratch {
    Rc::new(RefCell::new(vec![0; SCRATCH].into_boxed_slice()))
}

/// A socket that writes little things at once.
#[derive(Debug)]
pub(crate) struct Socket(TokioIo<TcpStream>);

impl Socket {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self(TokioIo::new(stream))
    }

    /// Reads into `bytes`, and says how much.
    pub(crate) fn poll_read_some(
        &mut self,
        context: &mut Context<'_>,
        bytes: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut read = ReadBuf::new(bytes);
        let polled = Pin::new(self.0.inner_mut()).poll_read(context, &mut read);
        polled.map_ok(|()| read.filled().len())
    }

    fn io(self: Pin<&mut Self>) -> Pin<&mut TokioIo<TcpStream>> {
        Pin::new(&mut self.get_mut().0)
    }
}

impl Read for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        self.io().poll_read(context, buffer)
    }
}

impl Write for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.io().poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io().poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io().poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        write_together(buffers, |what| match what {
            Together::One(bytes) => self.io().poll_write(context, bytes),
            Together::Many(buffers) => self.io().poll_write_vectored(context, buffers),
        })
    }
}

/// What is to be written in one call.
pub(crate) enum Together<'a> {
    One(&'a [u8]),
    Many(&'a [IoSlice<'a>]),
}

/// Little things are copied together first: a header and a short body are cheaper to write so than
/// to have the kernel gather them. Long bodies are not copied.
pub(crate) fn write_together<R>(
    buffers: &[IoSlice<'_>],
    write: impl FnOnce(Together<'_>) -> R,
) -> R {
    /// Up to here a copy is cheaper.
    const SMALL: usize = 2048;
    if let [bytes] = buffers {
        return write(Together::One(bytes));
    }
    if buffers.iter().map(|bytes| bytes.len()).sum::<usize>() > SMALL {
        return write(Together::Many(buffers));
    }
    let mut together = SmallVec::<[u8; SMALL]>::new();
    for bytes in buffers {
        together.extend_from_slice(bytes);
    }
    write(Together::One(&together))
}
