//! A body that is held back.

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::Arc;

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tidegate::Timer;

use crate::pace::Pace;
use crate::pacing::Pacing;

pin_project! {
    /// A body whose data passes as fast as somebody lets it; see [`Pacing`].
    pub struct PacedBody<B, P: Pace> {
        #[pin]
        body: B,
        // Boxed, and not there for most bodies.
        paced: Option<Box<(Pacing<P>, Arc<dyn Timer>)>>,
    }
}

impl<B, P: Pace> PacedBody<B, P> {
    /// `body`, paced by `pace` on `timer`, which goes with the clock of `pace`.
    pub fn new(body: B, pace: P, timer: Arc<dyn Timer>) -> Self {
        let paced = Some(Box::new((Pacing::new(pace), timer)));
        Self { body, paced }
    }

    /// `body` as it comes.
    pub const fn unpaced(body: B) -> Self {
        Self { body, paced: None }
    }
}

impl<B: Body, P: Pace> Body for PacedBody<B, P> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        match this.paced {
            Some(paced) => {
                let (pacing, timer) = &mut **paced;
                pacing.poll_frame(&**timer, context, |context| this.body.poll_frame(context))
            }
            None => this
                .body
                .poll_frame(context)
                .map_ok(|frame| frame.map_data(|mut bytes| bytes.copy_to_bytes(bytes.remaining()))),
        }
    }

    fn is_end_stream(&self) -> bool {
        let held = self.paced.as_ref().map_or(0, |paced| paced.0.held());
        held == 0 && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let hint = self.body.size_hint();
        match &self.paced {
            Some(paced) => paced.0.size_hint(hint),
            None => hint,
        }
    }
}

impl<B: fmt::Debug, P: Pace> fmt::Debug for PacedBody<B, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacedBody")
            .field("body", &self.body)
            .field("paced", &self.paced.as_ref().map(|paced| &paced.0))
            .finish()
    }
}
