//! A body that keeps something until it has ended.

use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

pin_project! {
    /// A body, and what is to last as long as it does: the place of a request under a concurrency
    /// limit comes back when its answer has been sent, not when it has begun.
    ///
    /// What is kept goes with the body's end: when its last frame has been taken, or an error, or
    /// when it is dropped before.
    #[derive(Debug)]
    pub struct Held<B, H> {
        #[pin]
        body: B,
        hold: Option<H>,
    }
}

impl<B, H> Held<B, H> {
    /// `body`, which keeps `hold`.
    pub const fn new(body: B, hold: H) -> Self {
        Self {
            body,
            hold: Some(hold),
        }
    }
}

impl<B: Body, H> Body for Held<B, H> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.project();
        let frame = this.body.poll_frame(context);
        if let Poll::Ready(None | Some(Err(_))) = frame {
            *this.hold = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::rc::{Rc, Weak};
    use std::task::Waker;

    use bytes::Bytes;
    use http_body_util::{BodyExt, Full};

    use super::*;

    fn body() -> (Held<Full<Bytes>, Rc<()>>, Weak<()>) {
        let hold = Rc::new(());
        let held = Rc::downgrade(&hold);
        (Held::new(Full::from("tide"), hold), held)
    }

    #[test]
    fn what_is_kept_goes_with_the_last_frame() {
        let (mut body, held) = body();
        let mut context = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut body).poll_frame(&mut context).is_ready());
        assert_eq!(held.strong_count(), 1, "the answer has not been sent yet");
        let end = Pin::new(&mut body).poll_frame(&mut context);
        assert!(matches!(end, Poll::Ready(None)));
        assert_eq!(held.strong_count(), 0);
    }

    #[test]
    fn what_is_kept_goes_with_an_abandoned_body() {
        let (body, held) = body();
        drop(body.map_err(|error| error));
        assert_eq!(held.strong_count(), 0);
    }
}
