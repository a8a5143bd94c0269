//! What changes in the header of a message that passes through.
//!
//! Fields of one hop end here (RFC 9110 section 7.6.1), in both directions. The request says
//! for whom it comes: `X-Forwarded-For` gains the peer, `X-Forwarded-Proto` and `-Host` say what
//! the client used; what an untrusted peer claims in them, or in their relatives, is dropped.
//! `Host` stays as it came. No `Via` is added: it would tell upstreams that they talk to a
//! proxy, upon which some (nginx, by default) stop compressing.

use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, Entry, HOST, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE,
    TRANSFER_ENCODING, UPGRADE,
};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, Uri, Version};
use hyper::body::Body;
use smallvec::SmallVec;
use tidegate_http::client_address::X_FORWARDED_FOR;

const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// Fields that nobody may have removed by naming them in `Connection`: without them the message
/// would mean something else.
const KEPT: [HeaderName; 2] = [HOST, CONTENT_LENGTH];

/// Removes the fields that end at this hop, from a request or a response.
fn strip_hop_by_hop(headers: &mut HeaderMap) {
    let mut doomed: Names = headers
        .keys()
        .filter(|name| is_hop_by_hop(name))
        .cloned()
        .collect();
    if doomed.is_empty() {
        return;
    }
    for value in headers.get_all(CONNECTION) {
        if value.as_bytes().eq_ignore_ascii_case(b"keep-alive") {
            continue; // what nearly all say, and no more than its own name
        }
        let tokens = value.as_bytes().split(|&byte| byte == b',');
        let names = tokens.filter_map(|token| HeaderName::from_bytes(token.trim_ascii()).ok());
        doomed.extend(names.filter(|name| !KEPT.contains(name)));
    }
    for name in doomed {
        headers.remove(name);
    }
}

type Names = SmallVec<[HeaderName; 8]>;

fn is_hop_by_hop(name: &HeaderName) -> bool {
    *name == CONNECTION
        || *name == TRANSFER_ENCODING
        || *name == TE
        || *name == UPGRADE
        || *name == PROXY_AUTHENTICATE
        || *name == PROXY_AUTHORIZATION
        // The gateway itself answers with 100 when it reads the body.
        || *name == EXPECT
        || matches!(name.as_str(), "keep-alive" | "proxy-connection" | "http2-settings")
}

/// For whom a request comes.
#[derive(Debug)]
pub(crate) struct Origin<'a> {
    /// The peer's address, as text.
    pub(crate) peer: &'a HeaderValue,
    /// Whether the peer is a trusted proxy.
    pub(crate) trusted: bool,
    /// What the upstream is called by those who say no `Host`.
    pub(crate) upstream: &'a HeaderValue,
}

/// Turns a request as it came into the one that is sent on.
pub(crate) fn rewrite_request<B: Body>(request: &mut Request<B>, origin: &Origin<'_>) {
    *request.version_mut() = Version::HTTP_11;
    request.extensions_mut().clear();
    strip_hop_by_hop(request.headers_mut());
    take_authority(request);
    if !request.body().is_end_stream() && !request.headers().contains_key(CONTENT_LENGTH) {
        // Said outright, because hyper takes it that a GET has no body.
        let chunked = HeaderValue::from_static("chunked");
        request.headers_mut().insert(TRANSFER_ENCODING, chunked);
    }
    say_for_whom(request.headers_mut(), origin);
}

/// Turns an upstream's response into ours.
pub(crate) fn rewrite_response<B>(response: &mut Response<B>) {
    *response.version_mut() = Version::HTTP_11;
    response.extensions_mut().clear();
    let headers = response.headers_mut();
    if headers.contains_key(TRANSFER_ENCODING) {
        // It said how long the body is before it knew (RFC 9112 section 6.3).
        headers.remove(CONTENT_LENGTH);
    }
    strip_hop_by_hop(headers);
}

fn say_for_whom(headers: &mut HeaderMap, origin: &Origin<'_>) {
    drop_claims(headers, origin.trusted);
    match headers.entry(X_FORWARDED_FOR) {
        Entry::Vacant(entry) => {
            entry.insert(origin.peer.clone());
        }
        Entry::Occupied(mut entry) => {
            let line = joined(entry.iter(), origin.peer);
            entry.insert(line);
        }
    }
    headers
        .entry(X_FORWARDED_PROTO)
        .or_insert(HeaderValue::from_static("http"));
    match headers.get(HOST).cloned() {
        Some(host) => {
            headers.entry(X_FORWARDED_HOST).or_insert(host);
        }
        // HTTP/1.0 need not name one, HTTP/1.1 has to, and many a server wants more than nothing
        // in it. `X-Forwarded-Host` says what the client said, so there is none.
        None => {
            headers.insert(HOST, origin.upstream.clone());
        }
    }
}

/// Of an absolute-form target the authority becomes `Host` (RFC 9112 section 3.2.2), and the
/// rest is the target.
fn take_authority<B>(request: &mut Request<B>) {
    let Some(authority) = request.uri().authority() else {
        return;
    };
    let host = authority.as_str().rsplit('@').next().unwrap_or_default();
    if let Ok(host) = HeaderValue::from_str(host) {
        request.headers_mut().insert(HOST, host);
    }
    let target = request.uri().path_and_query().cloned();
    *request.uri_mut() = Uri::from(target.unwrap_or_else(|| PathAndQuery::from_static("/")));
}

/// Drops what only a trusted proxy may say of the client; with underscores nobody may say it:
/// to many an application `X_Forwarded_For` is the same, and no proxy writes it so.
fn drop_claims(headers: &mut HeaderMap, trusted: bool) {
    let is_false =
        |name: &HeaderName| is_claim(name.as_str()) && (!trusted || name.as_str().contains('_'));
    let doomed: Names = headers
        .keys()
        .filter(|name| is_false(name))
        .cloned()
        .collect();
    for name in doomed {
        headers.remove(name);
    }
}

fn is_claim(name: &str) -> bool {
    let begins = |with: &str| {
        let plain = name
            .bytes()
            .map(|byte| if byte == b'_' { b'-' } else { byte });
        plain.take(with.len()).eq(with.bytes())
    };
    name == "forwarded"
        || (name.starts_with('x') && (begins("x-forwarded-") || begins("x-real-ip")))
}

/// All lines of `X-Forwarded-For` and the peer, as one.
fn joined<'a>(lines: impl Iterator<Item = &'a HeaderValue>, peer: &HeaderValue) -> HeaderValue {
    let mut line = Vec::new();
    for value in lines {
        line.extend_from_slice(value.as_bytes());
        line.extend_from_slice(b", ");
    }
    line.extend_from_slice(peer.as_bytes());
    HeaderValue::from_bytes(&line).expect("values joined with a comma are a value")
}
