//! Messages that are not passed on: requests that two readers would read differently, and what
//! the gateway does not carry yet. Such requests are refused before any limit is asked.

use http::header::{HOST, TRANSFER_ENCODING, UPGRADE};
use http::uri::Scheme;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, Version};

/// Why a request goes nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) status: StatusCode,
    pub(crate) detail: &'static str,
}

impl Fault {
    const fn new(status: StatusCode, detail: &'static str) -> Self {
        Self { status, detail }
    }
}

const NO_CONNECT: Fault = Fault::new(StatusCode::NOT_IMPLEMENTED, "CONNECT is not carried");
const NO_WEBSOCKET: Fault = Fault::new(
    StatusCode::NOT_IMPLEMENTED,
    "WebSocket upgrades are not carried",
);
const NO_CODING: Fault = Fault::new(
    StatusCode::NOT_IMPLEMENTED,
    "no transfer coding but chunked is understood",
);
const NO_HOST: Fault = Fault::new(StatusCode::BAD_REQUEST, "the request has no Host");
const TWO_HOSTS: Fault = Fault::new(StatusCode::BAD_REQUEST, "the request has several Hosts");
const BAD_HOST: Fault = Fault::new(StatusCode::BAD_REQUEST, "the Host of the request is none");
const BAD_TARGET: Fault = Fault::new(StatusCode::BAD_REQUEST, "the request's target is no path");
const TOO_MANY_FIELDS: Fault = Fault::new(
    StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
    "the request has too many header fields",
);

/// Whether a request can be sent on and means one thing only.
///
/// `Upgrade: websocket` is refused, so that a client is told instead of left to wonder; any
/// other upgrade is ignored, as RFC 9110 section 7.8 allows, and the request goes on without.
pub(crate) fn vet<B>(request: &Request<B>, max_headers: usize) -> Result<(), Fault> {
    if request.method() == Method::CONNECT {
        return Err(NO_CONNECT);
    }
    let headers = request.headers();
    if headers.len() > max_headers {
        return Err(TOO_MANY_FIELDS);
    }
    if headers.contains_key(UPGRADE) && asks_for_websocket(headers) {
        return Err(NO_WEBSOCKET);
    }
    if headers.contains_key(TRANSFER_ENCODING) && !is_only_chunked(headers) {
        return Err(NO_CODING);
    }
    vet_target(request.method(), request.uri())?;
    vet_host(headers, request.version())
}

/// Whether a response can be passed on; if not, what its server did.
pub(crate) fn vet_response<B>(response: &Response<B>) -> Result<(), &'static str> {
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return Err("switched protocols unasked");
    }
    let headers = response.headers();
    if headers.contains_key(TRANSFER_ENCODING) && !is_only_chunked(headers) {
        return Err("used a transfer coding that it was not offered");
    }
    Ok(())
}

fn vet_target(method: &Method, uri: &Uri) -> Result<(), Fault> {
    let fine = match (uri.scheme(), uri.authority()) {
        (None, None) => {
            uri.path().starts_with('/') || (uri.path() == "*" && method == Method::OPTIONS)
        }
        (Some(scheme), Some(_)) => *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS,
        _ => false,
    };
    if fine { Ok(()) } else { Err(BAD_TARGET) }
}

fn vet_host(headers: &HeaderMap, version: Version) -> Result<(), Fault> {
    let mut lines = headers.get_all(HOST).iter();
    let Some(host) = lines.next() else {
        // HTTP/1.0 had none.
        return if version == Version::HTTP_11 {
            Err(NO_HOST)
        } else {
            Ok(())
        };
    };
    if lines.next().is_some() {
        return Err(TWO_HOSTS);
    }
    let is_host_byte =
        |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~:[]%!$&'()*+,;=".contains(byte);
    if host.as_bytes().iter().all(is_host_byte) {
        Ok(())
    } else {
        Err(BAD_HOST)
    }
}

fn asks_for_websocket(headers: &HeaderMap) -> bool {
    let values = headers.get_all(UPGRADE).iter();
    let mut protocols = values.flat_map(|value| value.as_bytes().split(|&byte| byte == b','));
    protocols.any(|protocol| protocol.trim_ascii().eq_ignore_ascii_case(b"websocket"))
}

fn is_only_chunked(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(TRANSFER_ENCODING).iter();
    let first = values
        .next()
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"chunked"));
    first && values.next().is_none()
}
