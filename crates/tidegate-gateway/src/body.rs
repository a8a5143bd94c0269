//! Bodies on their way through: streamed, never collected.

use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tidegate_http::access_log::Ended;
use tidegate_node::{Hold, Pacer};
use tidegate_policy::BodyOf;

use crate::body_pace::BodyPacing;
use crate::client::Client;
use crate::upstream::Lease;

/// A request's body on its way to the upstream.
#[derive(Debug)]
pub(crate) struct RequestBody {
    /// `None` when it has ended, or has been taken back.
    incoming: Option<Incoming>,
    client: Rc<Client>,
    /// What holds it back, if it is held back.
    pacing: Option<Box<BodyPacing>>,
}

impl RequestBody {
    pub(crate) fn new(incoming: Incoming, client: Rc<Client>, pacer: Option<Pacer>) -> Self {
        let incoming = Some(incoming).filter(|incoming| !incoming.is_end_stream());
        let pacing = pacer.map(|pacer| Box::new(BodyPacing::of(BodyOf::Request, pacer, &client)));
        Self {
            incoming,
            client,
            pacing,
        }
    }

    /// The body, if there is one, of a request that was not sent.
    pub(crate) fn take_back(mut self) -> Option<Incoming> {
        self.incoming.take()
    }

    /// The next frame as it comes from the client.
    fn next_frame(
        incoming: &mut Option<Incoming>,
        client: &Client,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = incoming else {
            return Poll::Ready(None);
        };
        let frame = Pin::new(&mut *body).poll_frame(context);
        let (watch, timeouts) = (&client.watch, client.core.timeouts());
        match &frame {
            Poll::Ready(Some(Ok(frame))) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                watch.upload_moved(bytes, &timeouts);
                let log = &client.log;
                log.note(|record| record.bytes_received += bytes as u64);
            }
            Poll::Ready(_) => {}
            Poll::Pending => watch.upload_stalls(&timeouts),
        }
        if matches!(frame, Poll::Ready(None)) || body.is_end_stream() {
            watch.upload_ended(&timeouts);
            *incoming = None;
        }
        frame
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Self {
            incoming,
            client,
            pacing,
        } = self.get_mut();
        let mut next = |context: &mut Context<'_>| Self::next_frame(incoming, client, context);
        match pacing {
            Some(pacing) => pacing.poll_frame(context, next),
            None => next(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_none() && self.pacing.as_ref().is_none_or(|pacing| pacing.held() == 0)
    }

    fn size_hint(&self) -> SizeHint {
        let hint = self
            .incoming
            .as_ref()
            .map_or(SizeHint::with_exact(0), Incoming::size_hint);
        match &self.pacing {
            Some(pacing) => pacing.size_hint(hint),
            None => hint,
        }
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
    /// What holds it back, if it is held back.
    pacing: Option<Box<BodyPacing>>,
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
            pacing: None,
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
            pacing: None,
        };
        body.client.expect_more();
        body
    }

    /// Holds back what an upstream sends; what the gateway itself has to say passes at once.
    pub(crate) fn pace(&mut self, pacer: Pacer) {
        if matches!(self.kind, Kind::Upstream { .. }) && !self.is_end_stream() {
            let pacing = BodyPacing::of(BodyOf::Response, pacer, &self.client);
            self.pacing = Some(Box::new(pacing));
        }
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

    /// The next frame as it comes.
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
                    self.client.expect_more();
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

    /// The next frame, when it may pass.
    fn next_paced(
        &mut self,
        mut pacing: Box<BodyPacing>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = pacing.poll_frame(context, |context| self.next_frame(context));
        match &frame {
            // It has been held back for its time, and the client has its own from here on.
            Poll::Ready(Some(Ok(_))) => self.client.expect_more(),
            Poll::Pending if pacing.held() > 0 => {
                if let Kind::Upstream { lease, .. } = &mut self.kind {
                    // What the client still sends goes on.
                    lease.connection().drive(context);
                }
            }
            Poll::Ready(_) | Poll::Pending => {}
        }
        self.pacing = Some(pacing);
        frame
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
        let polled = match this.pacing.take() {
            Some(pacing) => this.next_paced(pacing, context),
            None => this.next_frame(context),
        };
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
        if self.pacing.as_ref().is_some_and(|pacing| pacing.held() > 0) {
            return false;
        }
        match &self.kind {
            Kind::Full(bytes) => bytes.is_empty(),
            Kind::Upstream { incoming, .. } => incoming.is_end_stream(),
            Kind::Broken(_) => false,
            Kind::Done => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        let hint = match &self.kind {
            Kind::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Upstream { incoming, .. } => incoming.size_hint(),
            Kind::Broken(_) => SizeHint::default(),
            Kind::Done => SizeHint::with_exact(0),
        };
        match &self.pacing {
            Some(pacing) => pacing.size_hint(hint),
            None => hint,
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
