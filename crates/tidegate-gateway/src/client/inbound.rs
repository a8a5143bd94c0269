//! What a client sends, on its way to hyper: only what is vetted goes on.

use hyper::rt::ReadBufCursor;

use crate::fault::Fault;
use crate::framer::{Bounds, Framer, Step};

/// A request that hyper is given in place of one that goes no further, so that it is answered in
/// its turn. hyper closes the connection behind the answer.
const STAND_IN: &[u8] = b"GET / HTTP/1.1\r\nhost: refused\r\nconnection: close\r\n\r\n";

/// The bytes that a client has sent and hyper has not been given. None are kept, and no memory
/// taken, between messages.
#[derive(Debug)]
pub(super) struct Inbound {
    framer: Framer,
    /// The beginning of a head or a trailer section, or what hyper had no room for.
    held: Vec<u8>,
    /// How many of them may go on.
    vetted: usize,
    /// Whether more of them are needed before any may go on.
    is_short: bool,
    fault: Option<Found>,
    /// Requests that hyper was given, or will be out of `held`.
    requests: u64,
}

/// What was wrong.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found {
    /// With the head of a request, which is the so-manieth of its connection.
    InHead { request: u64, fault: Fault },
    /// With the body of the last one that hyper was given.
    InBody(Fault),
}

/// How many bytes to drop, and how many behind them to hand on.
#[derive(Clone, Copy, Debug, Default)]
struct Looked {
    dropped: usize,
    vetted: usize,
}

impl Inbound {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            framer: Framer::new(bounds),
            held: Vec::new(),
            vetted: 0,
            is_short: false,
            fault: None,
            requests: 0,
        }
    }

    /// What was wrong, if something was: nothing more is taken then.
    pub(super) fn fault(&self) -> Option<Found> {
        self.fault
    }

    /// Requests that hyper was given.
    pub(super) fn requests(&self) -> u64 {
        self.requests
    }

    /// Whether a head has begun and not ended.
    pub(super) fn is_within_head(&self) -> bool {
        self.held.len() > self.vetted && self.fault.is_none() && self.framer.is_between_messages()
    }

    /// Whether all that came are whole messages, which hyper was given.
    pub(super) fn is_between_messages(&self) -> bool {
        self.held.is_empty() && self.fault.is_none() && self.framer.is_between_messages()
    }

    /// Hands on what is there already; whether there was something.
    pub(super) fn hand_on(&mut self, buffer: &mut ReadBufCursor<'_>) -> bool {
        while self.vetted == 0 && !self.held.is_empty() && !self.is_short && self.fault.is_none() {
            let held = std::mem::take(&mut self.held);
            let looked = self.look(&held);
            self.held = held;
            self.held.drain(..looked.dropped);
            self.vetted = looked.vetted;
            self.refuse();
        }
        let length = self.vetted.min(buffer.remaining());
        if length == 0 {
            return false;
        }
        buffer.put_slice(&self.held[..length]);
        self.vetted -= length;
        if length == self.held.len() {
            self.held = Vec::new();
        } else {
            self.held.drain(..length);
        }
        true
    }

    /// How much to read at once: what hyper has room for, since then nothing need be kept of most;
    /// or, where something is kept already, all that there is.
    pub(super) fn room(&self, buffer: &ReadBufCursor<'_>) -> usize {
        if self.held.is_empty() {
            buffer.remaining()
        } else {
            usize::MAX
        }
    }

    /// Takes `bytes`, for which there is [`room`](Self::room), and hands on what may go on; whether
    /// there was something.
    pub(super) fn take(&mut self, bytes: &[u8], buffer: &mut ReadBufCursor<'_>) -> bool {
        self.is_short = false;
        if !self.held.is_empty() {
            self.held.extend_from_slice(bytes);
            return self.hand_on(buffer);
        }
        let (mut rest, mut has_handed_on) = (bytes, false);
        while !rest.is_empty() && !self.is_short && self.fault.is_none() {
            let looked = self.look(rest);
            let (vetted, behind) = rest[looked.dropped..].split_at(looked.vetted);
            buffer.put_slice(vetted);
            has_handed_on |= !vetted.is_empty();
            rest = behind;
        }
        self.held.extend_from_slice(rest);
        self.refuse();
        has_handed_on
    }

    /// Looks at the first of `bytes`, as far as they are messages one behind the other.
    fn look(&mut self, bytes: &[u8]) -> Looked {
        let mut looked = Looked::default();
        loop {
            let rest = &bytes[looked.dropped + looked.vetted..];
            if rest.is_empty() {
                return looked;
            }
            match self.framer.step(rest) {
                Step::Head(length) => {
                    self.requests += 1;
                    looked.vetted += length;
                }
                Step::Body(length) => looked.vetted += length,
                Step::Blank(length) => {
                    // Dropped in front, so only when nothing stands before it.
                    looked.dropped += length;
                    if looked.vetted > 0 {
                        looked.dropped -= length;
                        return looked;
                    }
                }
                Step::Wait => {
                    self.is_short = true;
                    return looked;
                }
                Step::BadHead(fault) => {
                    let request = self.requests + 1;
                    self.fault = Some(Found::InHead { request, fault });
                    return looked;
                }
                Step::BadBody(fault) => {
                    self.fault = Some(Found::InBody(fault));
                    return looked;
                }
            }
        }
    }

    /// Behind a fault nothing is kept but what was fine, and the stand-in of a bad head.
    fn refuse(&mut self) {
        let Some(fault) = self.fault else {
            return;
        };
        self.held.truncate(self.vetted);
        if let Found::InHead { .. } = fault {
            self.held.extend_from_slice(STAND_IN);
            self.vetted = self.held.len();
            self.requests += 1;
        }
    }
}
