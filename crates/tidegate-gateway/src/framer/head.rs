//! The head of a request.

use std::ops::Range;

use http::StatusCode;

use super::fields::{self, Line, Lines};
use super::{Bounds, bytes_of, host};
use crate::fault::Fault;

const BAD_LINE: Fault = Fault::bad("the request line is none");
const BAD_TARGET: Fault = Fault::bad("the request's target is no path");
const BAD_VERSION: Fault = Fault::new(
    StatusCode::HTTP_VERSION_NOT_SUPPORTED,
    "HTTP/1.1 and HTTP/1.0 are spoken here",
);
const NO_CONNECT: Fault = Fault::new(StatusCode::NOT_IMPLEMENTED, "CONNECT is not carried");
const LONG_LINE: Fault = Fault::new(StatusCode::URI_TOO_LONG, "the request's target is too long");
const LONG_HEAD: Fault = Fault::new(
    StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
    "the request's header is too long",
);
const NO_HOST: Fault = Fault::bad("the request has no Host");
const TWO_HOSTS: Fault = Fault::bad("the request has several Hosts");
const BAD_HOST: Fault = Fault::bad("the Host of the request is none");
const OTHER_HOST: Fault = Fault::bad("the request's target and its Host name two hosts");
const BAD_LENGTH: Fault = Fault::bad("the Content-Length is no number, or too large a one");
const TWO_LENGTHS: Fault = Fault::bad("the request has several Content-Lengths");
const LENGTH_AND_CODING: Fault =
    Fault::bad("the request has a Content-Length and a Transfer-Encoding");
const TWO_CODINGS: Fault = Fault::bad("the request has several Transfer-Encodings");
const OLD_CODING: Fault = Fault::bad("HTTP/1.0 has no Transfer-Encoding");
const OTHER_CODING: Fault = Fault::new(
    StatusCode::NOT_IMPLEMENTED,
    "no transfer coding but chunked is understood",
);
const DISGUISED: Fault =
    Fault::bad("the name of a field differs from that of a body's length by a _ only");

/// Longest target: what hyper takes.
const MAX_TARGET: usize = 65_534;

/// What has been seen of a head.
#[derive(Debug, Default)]
pub(super) struct Head {
    lines: Lines,
    /// `None` in front of its end.
    request_line: Option<RequestLine>,
    fields: usize,
    /// Where the value of `Host` stands.
    host: Option<Range<usize>>,
    length: Option<u64>,
    is_chunked: bool,
}

#[derive(Debug)]
struct RequestLine {
    is_old: bool,
    /// Of a target that has a host: where it stands, and the port of the scheme.
    authority: Option<(Range<usize>, &'static [u8])>,
}

/// A whole head.
#[derive(Debug)]
pub(super) struct End {
    /// Its bytes.
    pub(super) length: usize,
    pub(super) body: BodyLength,
}

/// How the end of a body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyLength {
    Exact(u64),
    Chunked,
}

impl Head {
    /// Whether no line of it has ended.
    pub(super) fn is_first_line(&self) -> bool {
        self.request_line.is_none()
    }

    /// The head at the front of `bytes`, if it is whole.
    pub(super) fn look(&mut self, bytes: &[u8], bounds: &Bounds) -> Result<Option<End>, Fault> {
        let within = &bytes[..bytes.len().min(bounds.head_bytes)];
        while let Some(line) = self.lines.next(within)? {
            if self.request_line.is_none() {
                self.request_line = Some(request_line(line.text)?);
            } else if line.text.is_empty() {
                let body = self.end(bytes)?;
                let length = line.end;
                return Ok(Some(End { length, body }));
            } else {
                self.field(&line)?;
                fields::count(&mut self.fields, bounds)?;
            }
        }
        if bytes.len() < bounds.head_bytes {
            return Ok(None);
        }
        Err(if self.request_line.is_none() {
            LONG_LINE
        } else {
            LONG_HEAD
        })
    }

    #[inline]
    fn field(&mut self, line: &Line<'_>) -> Result<(), Fault> {
        let (name, value) = fields::field(line.text)?;
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => {
                if self.host.is_some() {
                    return Err(TWO_HOSTS);
                }
                let value = value.trim_ascii();
                if !host::is_host(value) {
                    return Err(BAD_HOST);
                }
                let end = line.start + line.text.trim_ascii_end().len();
                self.host = Some(end - value.len()..end);
            }
            14 if is_named(name, b"content-length")? => {
                if self.length.is_some() {
                    return Err(TWO_LENGTHS);
                }
                self.length = Some(number(value.trim_ascii())?);
            }
            17 if is_named(name, b"transfer-encoding")? => {
                if self.is_chunked {
                    return Err(TWO_CODINGS);
                }
                if self.request_line.as_ref().is_some_and(|line| line.is_old) {
                    return Err(OLD_CODING);
                }
                if !value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                    return Err(OTHER_CODING);
                }
                self.is_chunked = true;
            }
            _ => return Ok(()),
        }
        if self.is_chunked && self.length.is_some() {
            return Err(LENGTH_AND_CODING);
        }
        Ok(())
    }

    /// What follows, now that all fields are there.
    fn end(&self, bytes: &[u8]) -> Result<BodyLength, Fault> {
        let line = self.request_line.as_ref().ok_or(BAD_LINE)?;
        match (&self.host, &line.authority) {
            (None, _) if !line.is_old => return Err(NO_HOST),
            (Some(host), Some((authority, port))) => {
                if !host::are_same(&bytes[host.clone()], &bytes[authority.clone()], port) {
                    return Err(OTHER_HOST);
                }
            }
            (None | Some(_), _) => {}
        }
        Ok(match self.length {
            _ if self.is_chunked => BodyLength::Chunked,
            length => BodyLength::Exact(length.unwrap_or(0)),
        })
    }
}

/// Whether this is the field of that name; one that becomes it where `_` is `-`, as in CGI and its
/// heirs, is refused.
fn is_named(name: &[u8], wanted: &[u8]) -> Result<bool, Fault> {
    if name.eq_ignore_ascii_case(wanted) {
        return Ok(true);
    }
    let plain = name
        .iter()
        .map(|&byte| if byte == b'_' { b'-' } else { byte });
    if plain
        .map(|byte| byte.to_ascii_lowercase())
        .eq(wanted.iter().copied())
    {
        return Err(DISGUISED);
    }
    Ok(false)
}

/// Digits and nothing else; no more than an `i64` has.
fn number(text: &[u8]) -> Result<u64, Fault> {
    if text.is_empty() {
        return Err(BAD_LENGTH);
    }
    let mut number = 0_u64;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(BAD_LENGTH);
        }
        number = number
            .checked_mul(10)
            .and_then(|number| number.checked_add(u64::from(digit)))
            .filter(|&number| i64::try_from(number).is_ok())
            .ok_or(BAD_LENGTH)?;
    }
    Ok(number)
}

/// `GET /path HTTP/1.1`: three parts, one space between them.
fn request_line(line: &[u8]) -> Result<RequestLine, Fault> {
    let first = memchr::memchr(b' ', line).ok_or(BAD_LINE)?;
    let last = memchr::memrchr(b' ', line).ok_or(BAD_LINE)?;
    let (method, version) = (&line[..first], &line[last + 1..]);
    if !bytes_of::are_token(method) {
        return Err(BAD_LINE);
    }
    let is_old = match version {
        b"HTTP/1.1" => false,
        b"HTTP/1.0" => true,
        [b'H', b'T', b'T', b'P', b'/', ..] if first < last => return Err(BAD_VERSION),
        _ => return Err(BAD_LINE),
    };
    let start = first + 1;
    let target = line.get(start..last).ok_or(BAD_LINE)?;
    if target.is_empty() || memchr::memchr2(b' ', b'\t', target).is_some() {
        return Err(BAD_LINE);
    }
    if target.len() > MAX_TARGET {
        return Err(LONG_LINE);
    }
    if method == b"CONNECT" {
        return Err(NO_CONNECT);
    }
    let is_fine = match target {
        [b'/', ..] => bytes_of::are_path_and_query(target),
        b"*" => method == b"OPTIONS",
        _ => {
            let (authority, default_port) = authority(target).ok_or(BAD_TARGET)?;
            let authority = start + authority.start..start + authority.end;
            return Ok(RequestLine {
                is_old,
                authority: Some((authority, default_port)),
            });
        }
    };
    if !is_fine {
        return Err(BAD_TARGET);
    }
    Ok(RequestLine {
        is_old,
        authority: None,
    })
}

/// Where in an absolute target its authority stands, and the port of its scheme.
fn authority(target: &[u8]) -> Option<(Range<usize>, &'static [u8])> {
    let begins = |with: &[u8]| {
        target
            .get(..with.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(with))
    };
    let (start, default_port): (_, &[u8]) = if begins(b"http://") {
        (7, b"80")
    } else if begins(b"https://") {
        (8, b"443")
    } else {
        return None;
    };
    let rest = &target[start..];
    let length = memchr::memchr3(b'/', b'?', b'#', rest).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(length);
    let is_fine = !authority.is_empty()
        && !authority.starts_with(b":")
        && host::is_host(authority)
        && bytes_of::are_path_and_query(path);
    is_fine.then_some((start..start + length, default_port))
}
