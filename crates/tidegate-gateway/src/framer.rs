//! Where the messages of a client's bytes begin and end, and whether each means one thing only.
//!
//! hyper is lenient where its readers upstream may be lenient in another way: it takes bare line
//! feeds, drops a `Content-Length` beside `Transfer-Encoding`, and equal ones but for the first. So
//! its bytes are read here first, by the letter of RFC 9112, and only what two readers cannot read
//! differently is handed on. Nothing is changed but for blank lines in front of a request, which
//! are dropped.
//!
//! Pure, without memory of its own: heads and trailers are looked at line by line as they come,
//! each byte once, but handed on when they are complete, so that whoever calls keeps them until
//! then (at most [`Bounds`] of them). Bodies are handed on as they come.

mod bytes_of;
mod chunks;
mod fields;
mod head;
mod host;
#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use self::chunks::Chunks;
use self::fields::Trailers;
use self::head::{BodyLength, Head};
use crate::fault::Fault;

/// What a head or a trailer section may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Bytes of a head, to the end of its empty line.
    pub(crate) head_bytes: usize,
    /// Bytes of a trailer section, to the end of its empty line.
    pub(crate) trailer_bytes: usize,
    /// Fields of either.
    pub(crate) fields: usize,
}

/// What the first of the bytes at hand are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// So many bytes are a whole head.
    Head(usize),
    /// So many bytes belong to a body (its chunk sizes and trailers are part of it).
    Body(usize),
    /// So many bytes mean nothing and are dropped.
    Blank(usize),
    /// It takes more bytes to tell.
    Wait,
    /// They are part of a head that goes no further, and neither does what follows.
    BadHead(Fault),
    /// They are part of a body that goes no further; its head has.
    BadBody(Fault),
}

/// Where in its bytes a connection is.
#[derive(Debug)]
pub(crate) struct Framer {
    bounds: Bounds,
    state: State,
}

#[derive(Debug)]
enum State {
    /// In a head, or in front of it.
    Head(Head),
    /// In a body of which so many bytes are to come.
    Length(u64),
    Chunks(Chunks),
    Trailers(Trailers),
    /// Behind a fault: what follows is not looked at.
    Bad(Step),
}

impl Framer {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            state: State::Head(Head::default()),
        }
    }

    /// Looks at `bytes`, the first of which is the first that has not been handed on or dropped
    /// yet. After [`Step::Wait`] they are given again, with more behind.
    pub(crate) fn step(&mut self, bytes: &[u8]) -> Step {
        let step = match &mut self.state {
            State::Head(head) => {
                if head.is_first_line() && bytes.starts_with(b"\r\n") {
                    *head = Head::default();
                    return Step::Blank(2);
                }
                match head.look(bytes, &self.bounds) {
                    Ok(None) => Step::Wait,
                    Ok(Some(end)) => {
                        self.state = match end.body {
                            BodyLength::Exact(0) => State::Head(Head::default()),
                            BodyLength::Exact(length) => State::Length(length),
                            BodyLength::Chunked => State::Chunks(Chunks::default()),
                        };
                        Step::Head(end.length)
                    }
                    Err(fault) => Step::BadHead(fault),
                }
            }
            State::Length(left) => {
                let length = (bytes.len() as u64).min(*left);
                *left -= length;
                if *left == 0 {
                    self.state = State::Head(Head::default());
                }
                Step::of_body(length as usize)
            }
            State::Chunks(chunks) => match chunks.look(bytes) {
                Ok(length) => {
                    if chunks.are_over() {
                        self.state = State::Trailers(Trailers::default());
                    }
                    Step::of_body(length)
                }
                Err(fault) => Step::BadBody(fault),
            },
            State::Trailers(trailers) => match trailers.look(bytes, &self.bounds) {
                Ok(None) => Step::Wait,
                Ok(Some(length)) => {
                    self.state = State::Head(Head::default());
                    Step::Body(length)
                }
                Err(fault) => Step::BadBody(fault),
            },
            State::Bad(step) => *step,
        };
        if matches!(step, Step::BadHead(_) | Step::BadBody(_)) {
            self.state = State::Bad(step);
        }
        step
    }

    /// Whether all that was handed on so far are whole messages.
    pub(crate) fn is_between_messages(&self) -> bool {
        matches!(self.state, State::Head(_))
    }
}

impl Step {
    fn of_body(length: usize) -> Self {
        if length == 0 {
            Self::Wait
        } else {
            Self::Body(length)
        }
    }
}
