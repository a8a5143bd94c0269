//! The body of an answer: the service's, or that of a refusal.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::held::Held;

pin_project! {
    /// The body of an answer: the service's, with what its request holds, or that of a refusal.
    #[derive(Debug)]
    pub struct LimitBody<R, H> {
        // `None` of a refusal.
        #[pin]
        held: Option<Held<R, H>>,
        // Of a refusal; `None` when it has been taken.
        own: Option<Bytes>,
    }
}

impl<R, H> LimitBody<R, H> {
    /// Bytes of our own.
    pub(crate) fn own(bytes: Bytes) -> Self {
        Self {
            held: None,
            own: Some(bytes).filter(|bytes| !bytes.is_empty()),
        }
    }

    /// What a service sends, and what is held until it has.
    pub(crate) const fn held(body: R, hold: H) -> Self {
        Self {
            held: Some(Held::new(body, hold)),
            own: None,
        }
    }
}

impl<R: Body<Data = Bytes>, H> Body for LimitBody<R, H> {
    type Data = Bytes;
    type Error = R::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, R::Error>>> {
        let this = self.project();
        match this.held.as_pin_mut() {
            Some(held) => held.poll_frame(context),
            None => Poll::Ready(this.own.take().map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.held {
            Some(held) => held.is_end_stream(),
            None => self.own.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.held {
            Some(held) => held.size_hint(),
            None => SizeHint::with_exact(self.own.as_ref().map_or(0, |own| own.len() as u64)),
        }
    }
}
