//! Messages that are not passed on, though they are read by all in one way: what the gateway does
//! not carry yet. Such requests are refused before any limit is asked. Those that two might read
//! differently do not come this far ([`framer`](crate::framer)).

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, Response, StatusCode};

use crate::fault::Fault;

const NO_WEBSOCKET: Fault = Fault::new(
    StatusCode::NOT_IMPLEMENTED,
    "WebSocket upgrades are not carried",
);

/// Whether a request with this header can be sent on.
///
/// `Upgrade: websocket` is refused, so that a client is told instead of left to wonder; any
/// other upgrade is ignored, as RFC 9110 section 7.8 allows, and the request goes on without.
pub(crate) fn vet(headers: &HeaderMap) -> Result<(), Fault> {
    if headers.contains_key(UPGRADE) && asks_for_websocket(headers) {
        return Err(NO_WEBSOCKET);
    }
    Ok(())
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
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    if let Some(length) = lengths.next() {
        // hyper takes a list of equal ones.
        let is_one = !length.is_empty() && length.as_bytes().iter().all(u8::is_ascii_digit);
        if !is_one || lengths.next().is_some() {
            return Err("sent two lengths of its response");
        }
        if headers.contains_key(TRANSFER_ENCODING) {
            return Err("sent a length beside the chunks of its response");
        }
    }
    Ok(())
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
