//! Field lines, of heads and of trailer sections.

use http::StatusCode;

use super::{Bounds, bytes_of};
use crate::fault::Fault;

const BARE_LF: Fault = Fault::bad("a line ends without a carriage return");
const FOLDED: Fault = Fault::bad("a field goes on in a second line");
const NO_COLON: Fault = Fault::bad("a field has no colon");
const NO_NAME: Fault = Fault::bad("a field has no name");
const SPACE_BEFORE_COLON: Fault = Fault::bad("a field has a space in front of its colon");
const BAD_NAME: Fault = Fault::bad("the name of a field has characters that no name has");
const BAD_VALUE: Fault = Fault::bad("the value of a field has control characters");
const TOO_MANY: Fault = Fault::new(
    StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
    "the request has too many header fields",
);
const TRAILERS_TOO_LONG: Fault = Fault::new(
    StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
    "the trailer fields are too long",
);
const FORBIDDEN_TRAILER: Fault =
    Fault::bad("a trailer field would change what has been read already");

/// Where in its lines a section is.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Where the line begins that has not ended yet.
    start: usize,
    /// Up to here no end of it has been found.
    searched: usize,
}

/// A line without its end, and where it begins.
pub(super) struct Line<'a> {
    pub(super) text: &'a [u8],
    pub(super) start: usize,
    /// Behind its end.
    pub(super) end: usize,
}

impl Lines {
    /// The next line of `bytes`, if it has ended; `bytes` are those of the last call, and more.
    #[inline]
    pub(super) fn next<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<Line<'a>>, Fault> {
        let Some(at) = memchr::memchr(b'\n', &bytes[self.searched..]) else {
            self.searched = bytes.len();
            return Ok(None);
        };
        let (start, end) = (self.start, self.searched + at + 1);
        let [text @ .., b'\r', b'\n'] = &bytes[start..end] else {
            return Err(BARE_LF);
        };
        self.start = end;
        self.searched = end;
        Ok(Some(Line { text, start, end }))
    }
}

/// The name and the value of a field, the latter without the space around it.
#[inline]
pub(super) fn field(line: &[u8]) -> Result<(&[u8], &[u8]), Fault> {
    let Some(colon) = memchr::memchr(b':', line) else {
        return Err(if line.starts_with(b" ") || line.starts_with(b"\t") {
            FOLDED
        } else {
            NO_COLON
        });
    };
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    if !bytes_of::are_token(name) {
        return Err(match name {
            [] => NO_NAME,
            [b' ' | b'\t', ..] => FOLDED,
            [.., b' ' | b'\t'] => SPACE_BEFORE_COLON,
            _ => BAD_NAME,
        });
    }
    if !bytes_of::are_value(value) {
        return Err(BAD_VALUE);
    }
    Ok((name, value))
}

/// Counts one more field.
pub(super) fn count(fields: &mut usize, bounds: &Bounds) -> Result<(), Fault> {
    *fields += 1;
    if *fields > bounds.fields {
        return Err(TOO_MANY);
    }
    Ok(())
}

/// A trailer section.
#[derive(Debug, Default)]
pub(super) struct Trailers {
    lines: Lines,
    fields: usize,
}

impl Trailers {
    /// The length of the section, if it has ended.
    pub(super) fn look(&mut self, bytes: &[u8], bounds: &Bounds) -> Result<Option<usize>, Fault> {
        let within = &bytes[..bytes.len().min(bounds.trailer_bytes)];
        while let Some(line) = self.lines.next(within)? {
            if line.text.is_empty() {
                return Ok(Some(line.end));
            }
            let (name, _) = field(line.text)?;
            count(&mut self.fields, bounds)?;
            if is_forbidden(name) {
                return Err(FORBIDDEN_TRAILER);
            }
        }
        if bytes.len() >= bounds.trailer_bytes {
            return Err(TRAILERS_TOO_LONG);
        }
        Ok(None)
    }
}

/// What says how a message is read, to whom it goes, or who sends it, has to be said in its head
/// (RFC 9110 section 6.5.1).
fn is_forbidden(name: &[u8]) -> bool {
    const NAMES: [&str; 20] = [
        "authorization",
        "cache-control",
        "connection",
        "content-encoding",
        "content-length",
        "content-range",
        "content-type",
        "cookie",
        "expect",
        "forwarded",
        "host",
        "keep-alive",
        "max-forwards",
        "proxy-authorization",
        "range",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "x-forwarded-for",
    ];
    NAMES
        .iter()
        .any(|forbidden| name.eq_ignore_ascii_case(forbidden.as_bytes()))
}
