//! Holding back the frames of a body.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http_body::{Frame, SizeHint};
use tidegate::Timer;

use crate::pace::Pace;

type Wait = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Passes the frames of one body on as fast as somebody lets it, and no faster.
///
/// A frame of data is split (not copied) into pieces of at most what [`Pace::most`] says. Each is
/// taken as a whole, held back until it may pass, and passed on. Nothing more is asked of the body
/// meanwhile, so that whoever sends it has to wait too, and no more than one frame is kept.
/// Trailers and errors pass as they come. Dropped, it gives back the piece that it holds.
pub struct Pacing<P: Pace> {
    pace: P,
    /// What is there and has not passed.
    rest: Bytes,
    /// Bytes of the piece that was taken.
    taken: u64,
    /// Until the piece may pass, or may be asked for again.
    wait: Option<Wait>,
}

impl<P: Pace> Pacing<P> {
    /// Of a body that `pace` paces.
    pub const fn new(pace: P) -> Self {
        Self {
            pace,
            rest: Bytes::new(),
            taken: 0,
            wait: None,
        }
    }

    /// How many bytes are there and have not passed.
    pub const fn held(&self) -> usize {
        self.rest.len()
    }

    /// What is still to pass, of a body of which `hint` is still to come.
    pub fn size_hint(&self, hint: SizeHint) -> SizeHint {
        let held = self.rest.len() as u64;
        let mut sum = SizeHint::new();
        sum.set_lower(hint.lower().saturating_add(held));
        if let Some(upper) = hint.upper() {
            sum.set_upper(upper.saturating_add(held));
        }
        sum
    }

    /// The next frame; `next` is asked for one where none is held. Pending with something
    /// [held](Self::held), it waits for its time on `timer`; with nothing, for the body.
    pub fn poll_frame<D: Buf, E>(
        &mut self,
        timer: &dyn Timer,
        context: &mut Context<'_>,
        next: impl FnOnce(&mut Context<'_>) -> Poll<Option<Result<Frame<D>, E>>>,
    ) -> Poll<Option<Result<Frame<Bytes>, E>>> {
        if self.rest.is_empty() {
            let frame = match next(context) {
                Poll::Ready(Some(Ok(frame))) => frame,
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => {
                    self.pace.idle();
                    return Poll::Pending;
                }
            };
            // Bytes are handed over as they are.
            let frame = frame.map_data(|mut bytes| bytes.copy_to_bytes(bytes.remaining()));
            match frame.into_data() {
                Ok(bytes) if !bytes.is_empty() => self.rest = bytes,
                Ok(empty) => return Poll::Ready(Some(Ok(Frame::data(empty)))),
                Err(other) => return Poll::Ready(Some(Ok(other))),
            }
        }
        let length = ready!(self.poll_piece(timer, context));
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(length)))))
    }

    /// How much of what is there may pass now.
    fn poll_piece(&mut self, timer: &dyn Timer, context: &mut Context<'_>) -> Poll<usize> {
        loop {
            if let Some(wait) = &mut self.wait {
                ready!(wait.as_mut().poll(context));
                self.wait = None;
            } else if self.taken == 0 {
                let now = self.pace.now();
                let most = self.pace.most(now).max(1);
                let bytes = most.min(self.rest.len() as u64);
                let (Ok(delay) | Err(delay)) = match self.pace.take(bytes, now) {
                    Ok(delay) => {
                        self.taken = bytes;
                        Ok(delay)
                    }
                    // Asked for again at once, it would be for ever.
                    Err(wait) => Err(wait.max(core::time::Duration::from_nanos(1))),
                };
                if !delay.is_zero() {
                    self.wait = Some(timer.sleep_until(now.after(delay)));
                    continue;
                }
            }
            if self.taken > 0 {
                self.pace.passed();
                let bytes = core::mem::take(&mut self.taken);
                return Poll::Ready(usize::try_from(bytes).unwrap_or(usize::MAX));
            }
        }
    }
}

impl<P: Pace> Drop for Pacing<P> {
    fn drop(&mut self) {
        if self.taken > 0 {
            let now = self.pace.now();
            self.pace.give_back(now);
        }
    }
}

impl<P: Pace> fmt::Debug for Pacing<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pacing")
            .field("held", &self.rest.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
