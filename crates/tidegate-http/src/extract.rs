//! Pieces of a request, in the one form in which routes match and keys count them.
//!
//! Values are bytes: they need not be UTF-8. What has two spellings on the wire has one here
//! wherever an upstream would not tell them apart, so that a limit cannot be walked around by
//! spelling. Nothing here changes what is sent on.

use std::borrow::Cow;

use http::header::{COOKIE, HOST};
use http::{HeaderMap, Uri};

/// The host that was asked for, without a port: the target's authority if there is one (it
/// wins over `Host`, RFC 9112 section 3.2.2), else the `Host` header. `None` where neither is
/// there or it is no text; case is left as it came.
pub fn host<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    let host = match uri.authority() {
        Some(authority) => authority.host(),
        None => std::str::from_utf8(without_port(headers.get(HOST)?.as_bytes())).ok()?,
    };
    (!host.is_empty()).then_some(host)
}

fn without_port(authority: &[u8]) -> &[u8] {
    match authority
        .iter()
        .rposition(|&byte| byte == b':' || byte == b']')
    {
        // `[::1]` has colons of its own.
        Some(at) if authority[at] == b':' => &authority[..at],
        _ => authority,
    }
}

/// The path without the query, normalised as RFC 3986 section 6.2.2 says: unreserved bytes are
/// not percent-encoded, the hex digits of what stays encoded are upper case, `.` and `..` are
/// resolved. Also `//` is one `/`, as most servers have it. `%2F` stays encoded: to some
/// servers it is another thing than `/`.
///
/// ```
/// use tidegate_http::extract;
///
/// let uri = "/a/./b/../%63//%7euser?x=1".parse()?;
/// assert_eq!(extract::path(&uri), "/a/c/~user");
/// # Ok::<(), http::uri::InvalidUri>(())
/// ```
pub fn path(uri: &Uri) -> Cow<'_, str> {
    let path = uri.path();
    let mut bytes = path.bytes();
    // Most paths have nothing to normalise; `previous` catches `//` and `/.`.
    let mut previous = 0;
    let plain = bytes.all(|byte| {
        let plain = byte != b'%' && (previous != b'/' || (byte != b'/' && byte != b'.'));
        previous = byte;
        plain
    });
    if plain {
        Cow::Borrowed(path)
    } else {
        Cow::Owned(normalised(path))
    }
}

fn normalised(path: &str) -> String {
    let decoded = unreserved_decoded(path);
    let mut out = String::with_capacity(decoded.len());
    let mut segments = decoded.split('/').peekable();
    if decoded.starts_with('/') {
        segments.next();
    }
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "" | "." if is_last => out.push('/'),
            "" | "." => {}
            ".." => {
                out.truncate(out.rfind('/').unwrap_or(0));
                if is_last {
                    out.push('/');
                }
            }
            _ => {
                out.push('/');
                out.push_str(segment);
            }
        }
    }
    out
}

fn unreserved_decoded(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let digits = rest.as_bytes().get(at + 1..at + 3);
        match digits.and_then(hex_byte) {
            Some(byte) if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
                out.push(char::from(byte));
                rest = &rest[at + 3..];
            }
            Some(_) => {
                out.push_str(&rest[at..at + 3].to_ascii_uppercase());
                rest = &rest[at + 3..];
            }
            // A `%` that begins no escape is itself: written so, it cannot make one with what is
            // decoded after it (`/%%41B` is not `/%AB`).
            None => {
                out.push_str("%25");
                rest = &rest[at + 1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// The value of a header. One that was sent more than once is its values joined with `", "`,
/// in the order they came.
pub fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<Cow<'a, [u8]>> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?.as_bytes();
    let mut joined = Cow::Borrowed(first);
    for value in values {
        let joined = joined.to_mut();
        joined.extend_from_slice(b", ");
        joined.extend_from_slice(value.as_bytes());
    }
    Some(joined)
}

/// The value of a cookie, without quotes around it; the first, if it was sent more than once.
pub fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<Cow<'a, [u8]>> {
    let lines = headers.get_all(COOKIE).iter();
    let pairs = lines.flat_map(|line| line.as_bytes().split(|&byte| byte == b';'));
    for pair in pairs {
        let Some(equals) = pair.iter().position(|&byte| byte == b'=') else {
            continue;
        };
        if pair[..equals].trim_ascii() == name.as_bytes() {
            let value = pair[equals + 1..].trim_ascii();
            let quoted = value
                .strip_prefix(b"\"")
                .and_then(|rest| rest.strip_suffix(b"\""));
            return Some(Cow::Borrowed(quoted.unwrap_or(value)));
        }
    }
    None
}

/// The value of a query parameter, percent-decoded and with `+` as a space, as forms have it;
/// the first, if it was sent more than once. A name without `=` has an empty value.
pub fn query<'a>(uri: &'a Uri, name: &str) -> Option<Cow<'a, [u8]>> {
    for pair in uri.query()?.as_bytes().split(|&byte| byte == b'&') {
        let equals = pair.iter().position(|&byte| byte == b'=');
        let (key, value) = match equals {
            Some(equals) => (&pair[..equals], &pair[equals + 1..]),
            None => (pair, &[][..]),
        };
        if !pair.is_empty() && *form_decoded(key) == *name.as_bytes() {
            return Some(form_decoded(value));
        }
    }
    None
}

/// `+` is a space, and percent-encoding undone.
pub(crate) fn form_decoded(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.iter().any(|&byte| byte == b'%' || byte == b'+') {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        match byte {
            b'+' => out.push(b' '),
            b'%' => match tail.get(..2).and_then(hex_byte) {
                Some(decoded) => {
                    out.push(decoded);
                    rest = &tail[2..];
                }
                None => out.push(b'%'),
            },
            _ => out.push(*byte),
        }
    }
    Cow::Owned(out)
}

fn hex_byte(digits: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    match digits {
        &[high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
