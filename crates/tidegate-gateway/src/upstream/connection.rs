//! One connection to an upstream server, driven by whoever uses it.
//!
//! hyper wants a connection to be spawned; here it is polled by the task of the client
//! connection that has borrowed it, which spares two wake-ups per request. The invariant that
//! makes this sound: whoever waits for something of a connection polls [`Connection::drive`]
//! with its own waker first, and then looks with a waker that does nothing, because only
//! driving can have changed anything.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::body::RequestBody;
use crate::watch::{Late, Watch};

/// A connection on which one request at a time is sent.
#[derive(Debug)]
pub(crate) struct Connection {
    sender: SendRequest<RequestBody>,
    /// `None` when the connection is closed: dropping it is what hands back an unsent request.
    driver: Option<http1::Connection<TokioIo<TcpStream>, RequestBody>>,
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

impl Connection {
    /// Speaks HTTP/1.1 on `stream`.
    pub(crate) async fn open(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let (sender, driver) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(io::Error::other)?;
        Ok(Self {
            sender,
            driver: Some(driver),
        })
    }

    /// Reads and writes what can be.
    fn drive(&mut self, context: &mut Context<'_>) {
        if let Some(driver) = &mut self.driver
            && Pin::new(driver).poll(context).is_ready()
        {
            // An error has been told to whoever waits for a response or a body.
            self.driver = None;
        }
    }

    /// Sends `request`, and waits for the header of the response.
    ///
    /// # Cancel safety
    /// Dropping the future abandons the exchange; the connection must then be dropped too.
    pub(crate) async fn send(
        &mut self,
        request: Request<RequestBody>,
        watch: &Watch,
    ) -> Result<Response<Incoming>, Failure> {
        let mut response = pin!(self.sender.try_send_request(request));
        std::future::poll_fn(|context| {
            self.drive(context);
            if let Poll::Ready(done) = response.as_mut().poll(&mut nobody()) {
                return Poll::Ready(done.map_err(|mut error| match error.take_message() {
                    Some(request) => Failure::Unsent(Box::new(request)),
                    None => Failure::Broken(error.into_error()),
                }));
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
        if let Poll::Ready(frame) = Pin::new(&mut *body).poll_frame(&mut nobody()) {
            return Poll::Ready(frame);
        }
        self.drive(context);
        Pin::new(body).poll_frame(&mut nobody())
    }

    /// After a response has ended: whether another request can be sent.
    ///
    /// Drives without a waker, so that nobody is woken by what happens while the connection
    /// rests.
    pub(crate) fn is_reusable(&mut self) -> bool {
        self.drive(&mut nobody());
        self.driver.is_some() && self.sender.is_ready()
    }
}

fn nobody() -> Context<'static> {
    Context::from_waker(Waker::noop())
}
