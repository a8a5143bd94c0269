//! One connection to an upstream server, driven by whoever uses it.
//!
//! hyper wants a connection to be spawned; here it is polled by the task of the client
//! connection that has borrowed it, which spares two wake-ups per request. The invariant that
//! makes this sound: whoever waits for something of a connection looks with a waker that does
//! nothing, because only [`Connection::drive`] can have changed anything; and before it waits
//! it has driven the connection with its own waker.
//!
//! Driving without a waker comes first, where something has probably arrived: what comes of it
//! would otherwise wake the very task that is looking at it.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, SendRequest};
use tokio::net::TcpStream;

use super::resend::{Resend, ResendingSocket};
use crate::body::RequestBody;
use crate::watch::{Late, Watch};

/// A connection on which one request at a time is sent.
#[derive(Debug)]
pub(crate) struct Connection {
    sender: SendRequest<RequestBody>,
    /// `None` when the connection is closed: dropping it is what hands back an unsent request.
    driver: Option<http1::Connection<ResendingSocket, RequestBody>>,
    /// Whether nobody is told of what happens: it was last driven without a waker.
    silent: bool,
    resend: Rc<Resend>,
}

/// Why there is no response.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The connection was closed before anything of the request was sent.
    Unsent(Box<Request<RequestBody>>),
    /// The server broke off, or answered with what is no HTTP.
    Broken(hyper::Error),
    /// Somebody was too slow.
    Late(Late),
}

/// A request that has been put on a connection.
pub(crate) trait Started:
    Future<Output = Result<Response<Incoming>, TrySendError<Request<RequestBody>>>>
{
}

impl<F> Started for F where
    F: Future<Output = Result<Response<Incoming>, TrySendError<Request<RequestBody>>>>
{
}

impl Connection {
    /// Longest header of a response, and longest trailer section, in bytes. It has 100 fields at
    /// most, which is hyper's own bound.
    const MAX_HEADER: usize = 64 * 1024;

    /// Speaks HTTP/1.1 on `stream`, to the server that `resend` tells of.
    pub(super) async fn open(stream: TcpStream, resend: Rc<Resend>) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let mut http = http1::Builder::new();
        http.max_header_size(Self::MAX_HEADER);
        let handshake = http.handshake(ResendingSocket::new(stream, Rc::clone(&resend)));
        let (sender, driver) = handshake.await.map_err(io::Error::other)?;
        Ok(Self {
            sender,
            driver: Some(driver),
            silent: true,
            resend,
        })
    }

    /// Reads and writes what can be, and remembers who is to be told when more can.
    pub(crate) fn drive(&mut self, context: &mut Context<'_>) {
        self.silent = context.waker().will_wake(Waker::noop());
        if let Some(driver) = &mut self.driver
            && Pin::new(driver).poll(context).is_ready()
        {
            // An error has been told to whoever waits for a response or a body.
            self.driver = None;
        }
    }

    /// Puts `request` on the connection; [`response`](Self::response) sends it. If nothing is heard
    /// of it, it is sent again over a connection that is made within `again`, where it may be.
    pub(super) fn start(
        &mut self,
        request: Request<RequestBody>,
        again: Option<Duration>,
    ) -> impl Started + use<> {
        match again {
            Some(timeout) if request.method().is_idempotent() && request.body().is_end_stream() => {
                self.resend.allow(timeout);
            }
            Some(_) | None => self.resend.forbid(),
        }
        self.sender.try_send_request(request)
    }

    /// Sends what was started, and waits for the header of the response.
    ///
    /// # Cancel safety
    /// Dropping the future abandons the exchange; the connection must then be dropped too.
    pub(crate) async fn response(
        &mut self,
        mut started: Pin<&mut impl Started>,
        watch: &Watch,
    ) -> Result<Response<Incoming>, Failure> {
        let mut sent = false;
        poll_fn(|context| {
            if sent {
                self.drive(&mut nobody());
                if let Poll::Ready(done) = started.as_mut().poll(&mut nobody()) {
                    return Poll::Ready(done.map_err(Failure::of));
                }
            }
            sent = true;
            self.drive(context);
            if let Poll::Ready(done) = started.as_mut().poll(&mut nobody()) {
                return Poll::Ready(done.map_err(Failure::of));
            }
            match watch.response_late() {
                Some(late) => Poll::Ready(Err(Failure::Late(late))),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// The next piece of the response's body.
    pub(crate) fn poll_body(
        &mut self,
        body: &mut Incoming,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let mut body = Pin::new(body);
        let mut frame = body.as_mut().poll_frame(&mut nobody());
        if frame.is_pending() {
            self.drive(&mut nobody());
            frame = body.as_mut().poll_frame(&mut nobody());
        }
        if frame.is_pending() {
            self.drive(context);
            frame = body.poll_frame(&mut nobody());
        }
        frame
    }

    /// After a response has ended: whether another request can be sent.
    ///
    /// Leaves the connection without a waker, so that nobody is woken by what happens while it
    /// rests.
    pub(crate) fn is_reusable(&mut self) -> bool {
        if !self.silent || !self.sender.is_ready() {
            self.drive(&mut nobody());
        }
        self.driver.is_some() && self.sender.is_ready()
    }

    /// Whether a connection that rests is still of use.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.drive(&mut nobody());
        self.driver.is_some() && self.sender.is_ready()
    }
}

impl Failure {
    fn of(mut error: TrySendError<Request<RequestBody>>) -> Self {
        match error.take_message() {
            Some(request) => Self::Unsent(Box::new(request)),
            None => Self::Broken(error.into_error()),
        }
    }
}

fn nobody() -> Context<'static> {
    Context::from_waker(Waker::noop())
}
