//! Bodies on their way through: streamed, never collected.

use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tidegate_node::{Hold, Pacer};

use crate::body_pace::BodyPacing;
use crate::client::Client;
use crate::upstream::Lease;
use crate::watch::Phase;

/// A request's body on its way to the upstream.
#[derive(Debug)]
pub(crate) struct RequestBody {
    /// `None` when it has ended, or has been taken back.
    incoming: Option<Incoming>,
    client: Rc<Client>,
    /// How long the upstream may take from the last piece on.
    timeout: Duration,
    /// What holds it back, if it is held back.
    pacing: Option<Box<BodyPacing>>,
}

impl RequestBody {
    pub(crate) fn new(
        incoming: Incoming,
        client: Rc<Client>,
        timeout: Duration,
        pacer: Option<Pacer>,
    ) -> Self {
        let incoming = Some(incoming).filter(|incoming| !incoming.is_end_stream());
        let pacing = pacer.map(|pacer| Box::new(BodyPacing::of(pacer, &client)));
        Self {
            incoming,
            client,
            timeout,
            pacing,
        }
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
        let Self {
            incoming,
            client,
            timeout,
            pacing,
        } = this;
        let mut next = |context: &mut Context<'_>| {
            let Some(body) = incoming else {
                return Poll::Ready(None);
            };
            let frame = Pin::new(&mut *body).poll_frame(context);
            client.watch.upload_moved(frame.is_ready(), *timeout);
            if matches!(frame, Poll::Ready(None)) || body.is_end_stream() {
                *incoming = None;
            }
            frame
        };
        let Some(pacing) = pacing else {
            return next(context);
        };
        let frame = pacing.poll_frame(&*client.core.timer, context, next);
        client
            .watch
            .hold_upload(pacing.held() > 0 && frame.is_pending(), *timeout);
        frame
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
        if self.pacing.is_some() {
            // Nobody is held back any more.
            self.client.watch.hold_upload(false, self.timeout);
        }
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
    client: Rc<Client>,
    /// What holds it back, if it is held back.
    pacing: Option<Box<BodyPacing>>,
}

enum Kind {
    Full(Bytes),
    Upstream { incoming: Incoming, lease: Lease },
    Done,
}

impl ResponseBody {
    /// Bytes of our own.
    pub(crate) fn full(bytes: Bytes, client: Rc<Client>) -> Self {
        Self {
            kind: Kind::Full(bytes),
            hold: Hold::default(),
            client,
            pacing: None,
        }
    }

    /// What an upstream sends.
    pub(crate) fn upstream(incoming: Incoming, lease: Lease, client: Rc<Client>) -> Self {
        let body = Self {
            kind: Kind::Upstream { incoming, lease },
            hold: Hold::default(),
            client,
            pacing: None,
        };
        body.client.expect_more();
        body
    }

    /// Keeps `hold` until the body has ended.
    pub(crate) fn keep(&mut self, hold: Hold) {
        self.hold = hold;
    }

    /// Holds back what an upstream sends; what the gateway itself has to say passes at once.
    pub(crate) fn pace(&mut self, pacer: Pacer) {
        if matches!(self.kind, Kind::Upstream { .. }) && !self.is_end_stream() {
            self.pacing = Some(Box::new(BodyPacing::of(pacer, &self.client)));
        }
    }

    /// The next frame as it comes.
    fn poll_next(
        kind: &mut Kind,
        client: &Client,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match kind {
            Kind::Full(bytes) => {
                let bytes = std::mem::take(bytes);
                *kind = Kind::Done;
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
            Kind::Upstream { incoming, lease } => {
                let frame = lease.connection().poll_body(incoming, context);
                match &frame {
                    Poll::Ready(Some(Ok(_))) => client.expect_more(),
                    Poll::Ready(Some(Err(error))) => {
                        client.core.counters.upstream_broken.add(1);
                        tracing::debug!(%error, "an upstream broke off within its response");
                    }
                    Poll::Ready(None) | Poll::Pending => {}
                }
                frame
            }
            Kind::Done => Poll::Ready(None),
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Self {
            kind,
            client,
            pacing,
            ..
        } = self.get_mut();
        let Some(pacing) = pacing else {
            return Self::poll_next(kind, client, context);
        };
        let next = |context: &mut Context<'_>| Self::poll_next(kind, client, context);
        let frame = pacing.poll_frame(&*client.core.timer, context, next);
        match &frame {
            // It has been held back for its time, and the client has its own from here on.
            Poll::Ready(Some(Ok(_))) => client.expect_more(),
            Poll::Pending if pacing.held() > 0 => {
                client.watch.hold();
                if let Kind::Upstream { lease, .. } = kind {
                    // What the client still sends goes on.
                    lease.connection().drive(context);
                }
            }
            _ => {}
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        if self.pacing.as_ref().is_some_and(|pacing| pacing.held() > 0) {
            return false;
        }
        match &self.kind {
            Kind::Full(bytes) => bytes.is_empty(),
            Kind::Upstream { incoming, .. } => incoming.is_end_stream(),
            Kind::Done => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        let hint = match &self.kind {
            Kind::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Upstream { incoming, .. } => incoming.size_hint(),
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
        let watch = &self.client.watch;
        watch.expect(Phase::Idle, self.client.core.timeouts().idle);
        if let Kind::Upstream { incoming, lease } = std::mem::replace(&mut self.kind, Kind::Done) {
            // Before the connection is looked at: it is of no use while somebody reads from it.
            drop(incoming);
            lease.give_back(watch.now());
        }
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody")
            .field("end", &self.is_end_stream())
            .finish_non_exhaustive()
    }
}
