//! Bodies on their way through: streamed, never collected.

use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tidegate_http::access_log::Ended;
use tidegate_node::Hold;

use crate::client::Client;
use crate::upstream::Lease;
use crate::watch::Phase;

/// A request's body on its way to the upstream.
#[derive(Debug)]
pub(crate) struct RequestBody {
    /// `None` when it has ended, or has been taken back.
    incoming: Option<Incoming>,
    client: Rc<Client>,
}

impl RequestBody {
    pub(crate) fn new(incoming: Incoming, client: Rc<Client>) -> Self {
        let incoming = Some(incoming).filter(|incoming| !incoming.is_end_stream());
        Self { incoming, client }
    }

    /// The body, if there is one, of a request that was not sent.
    pub(crate) fn take_back(mut self) -> Option<Incoming> {
        self.incoming.take()
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        let Some(incoming) = &mut this.incoming else {
            return Poll::Ready(None);
        };
        let frame = Pin::new(&mut *incoming).poll_frame(context);
        let (watch, timeouts) = (&this.client.watch, this.client.core.timeouts());
        match &frame {
            Poll::Ready(Some(Ok(frame))) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                watch.upload_moved(bytes, &timeouts);
                let log = &this.client.log;
                log.note(|record| record.bytes_received += bytes as u64);
            }
            Poll::Ready(_) => {}
            Poll::Pending => watch.upload_stalls(&timeouts),
        }
        if matches!(frame, Poll::Ready(None)) || incoming.is_end_stream() {
            watch.upload_ended(&timeouts);
            this.incoming = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming
            .as_ref()
            .map_or(SizeHint::with_exact(0), Incoming::size_hint)
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if self.incoming.is_some() {
            // Lost halfway: the client may still be sending.
            self.client.linger.set(true);
        }
    }
}

/// A response's body on its way to the client, and what lasts as long as it does: the
/// upstream connection, and the places that the request holds under its limits.
///
/// Dropped when the response has been handed over, or when the client has gone.
pub(crate) struct ResponseBody {
    kind: Kind,
    /// Given back when this is dropped.
    hold: Hold,
    /// Whether the request that it answers is noted.
    is_noted: bool,
    /// How it ended, if it has.
    ended: Option<Ended>,
    client: Rc<Client>,
}

enum Kind {
    Full(Bytes),
    Upstream {
        incoming: Incoming,
        lease: Lease,
    },
    /// The upstream broke off; the client is not told before it has what came.
    Broken(hyper::Error),
    Done,
}

impl ResponseBody {
    /// Bytes of our own.
    pub(crate) fn full(bytes: Bytes, client: Rc<Client>) -> Self {
        Self {
            kind: Kind::Full(bytes),
            hold: Hold::default(),
            is_noted: false,
            ended: None,
            client,
        }
    }

    /// What an upstream sends.
    pub(crate) fn upstream(incoming: Incoming, lease: Lease, client: Rc<Client>) -> Self {
        let body = Self {
            kind: Kind::Upstream { incoming, lease },
            hold: Hold::default(),
            is_noted: false,
            ended: None,
            client,
        };
        body.expect_more();
        body
    }

    fn expect_more(&self) {
        self.client
            .watch
            .expect(Phase::Body, self.client.core.timeouts().response);
    }

    /// The request that it answers has ended when this has.
    pub(crate) fn ends_request(&mut self) {
        self.is_noted = self.client.log.is_noting();
    }

    /// How it has ended, when it is dropped.
    fn end(&self) -> Ended {
        let is_whole = || {
            let mut wants_body = true;
            self.client
                .log
                .note(|record| wants_body = record.wants_body());
            self.is_end_stream() || !wants_body
        };
        match self.ended {
            Some(ended) => ended,
            None if is_whole() => Ended::Complete,
            None => Ended::ClientGone,
        }
    }

    fn next_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if let Kind::Upstream { incoming, lease } = &mut self.kind {
            let frame = lease.connection().poll_body(incoming, context);
            match frame {
                Poll::Ready(Some(Err(error))) => {
                    self.ended = Some(Ended::UpstreamBrokeOff);
                    self.client.core.counters.upstream_broken.add(1);
                    tracing::debug!(%error, "an upstream broke off within its response");
                    self.client.is_flushed.set(false);
                    self.kind = Kind::Broken(error);
                }
                Poll::Ready(Some(Ok(_))) => {
                    self.expect_more();
                    return frame;
                }
                Poll::Ready(None) | Poll::Pending => return frame,
            }
        }
        match std::mem::replace(&mut self.kind, Kind::Done) {
            Kind::Full(bytes) => Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes)))),
            Kind::Broken(error) if self.client.is_flushed.get() => Poll::Ready(Some(Err(error))),
            // hyper writes what it has when there is no more, and asks again then.
            kind @ Kind::Broken(_) => {
                self.kind = kind;
                Poll::Pending
            }
            Kind::Upstream { .. } => unreachable!("seen to above"),
            Kind::Done => Poll::Ready(None),
        }
    }

    /// Keeps `hold` until the body has ended.
    pub(crate) fn keep(&mut self, hold: Hold) {
        self.hold = hold;
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        let polled = this.next_frame(context);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                if this.is_noted {
                    let length = length(frame);
                    this.client.log.note(|record| record.bytes_sent += length);
                }
            }
            Poll::Ready(None) => this.ended = Some(Ended::Complete),
            Poll::Ready(Some(Err(_))) | Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Full(bytes) => bytes.is_empty(),
            Kind::Upstream { incoming, .. } => incoming.is_end_stream(),
            Kind::Broken(_) => false,
            Kind::Done => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Upstream { incoming, .. } => incoming.size_hint(),
            Kind::Broken(_) => SizeHint::default(),
            Kind::Done => SizeHint::with_exact(0),
        }
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        if self.is_noted {
            self.client.log.end(self.end());
        }
        self.client.rest();
        if let Kind::Upstream { incoming, lease } = std::mem::replace(&mut self.kind, Kind::Done) {
            // Before the connection is looked at: it is of no use while somebody reads from it.
            drop(incoming);
            lease.give_back(self.client.watch.now());
        }
    }
}

fn length(frame: &Frame<Bytes>) -> u64 {
    frame.data_ref().map_or(0, |bytes| bytes.len() as u64)
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody")
            .field("end", &self.is_end_stream())
            .finish_non_exhaustive()
    }
}
