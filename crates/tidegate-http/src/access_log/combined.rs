//! nginx's `combined`, and what we add to it.

use std::borrow::Cow;

use super::text::{Moment, cut, push_address, push_number, push_seconds, version};
use super::{Asked, Entry};

const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// Appends nginx's
/// `$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer"
/// "$http_user_agent"`, and the line's end.
pub fn combined(entry: &Entry<'_>, out: &mut Vec<u8>) {
    push_combined(entry, out);
    out.push(b'\n');
}

/// The same, then `limit="NAME" decision=WORD waited=SECONDS time=SECONDS id="ID"`.
pub fn combined_limits(entry: &Entry<'_>, out: &mut Vec<u8>) {
    push_combined(entry, out);
    out.extend_from_slice(b" limit=\"");
    push_escaped(out, entry.limit.map(str::as_bytes));
    out.extend_from_slice(b"\" decision=");
    let decision = entry.decision.map_or("-", super::Decided::as_str);
    out.extend_from_slice(decision.as_bytes());
    out.extend_from_slice(b" waited=");
    push_seconds(out, entry.waited, 3);
    out.extend_from_slice(b" time=");
    push_seconds(out, entry.duration, 3);
    out.extend_from_slice(b" id=\"");
    push_escaped(out, entry.id);
    out.extend_from_slice(b"\"\n");
}

fn push_combined(entry: &Entry<'_>, out: &mut Vec<u8>) {
    let asked = entry.asked.as_ref();
    push_address(out, entry.client);
    out.extend_from_slice(b" - ");
    let user = asked.and_then(|asked| basic_user(asked.authorization?));
    push_escaped(out, user.as_deref());
    out.extend_from_slice(b" [");
    push_time(out, &Moment::of(entry.at));
    out.extend_from_slice(b"] \"");
    match asked {
        Some(Asked {
            method,
            target,
            version: of,
            ..
        }) => {
            push_escaped(out, Some(method.as_bytes()));
            out.push(b' ');
            push_escaped(out, Some(target.as_bytes()));
            out.push(b' ');
            out.extend_from_slice(version(*of).as_bytes());
        }
        None => out.push(b'-'),
    }
    out.extend_from_slice(b"\" ");
    push_number(out, u64::from(entry.status), 3);
    out.push(b' ');
    push_number(out, entry.bytes_sent, 1);
    out.extend_from_slice(b" \"");
    push_escaped(out, asked.and_then(|asked| asked.referer.as_deref()));
    out.extend_from_slice(b"\" \"");
    push_escaped(out, asked.and_then(|asked| asked.user_agent));
    out.push(b'"');
}

/// `01/Dec/2026:01:54:31 +0000`.
fn push_time(out: &mut Vec<u8>, at: &Moment) {
    push_number(out, at.day, 2);
    out.push(b'/');
    out.extend_from_slice(MONTHS[at.month - 1]);
    out.push(b'/');
    push_number(out, at.year, 4);
    for part in [at.hour, at.minute, at.second] {
        out.push(b':');
        push_number(out, part, 2);
    }
    out.extend_from_slice(b" +0000");
}

/// Appends a value as nginx does: quotes, backslashes, and what is no printable ASCII, as `\xXX`;
/// one that is not there as `-`.
fn push_escaped(out: &mut Vec<u8>, value: Option<&[u8]>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let Some(value) = value else {
        return out.push(b'-');
    };
    let value = cut(value);
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
    if value.iter().all(|&byte| is_plain(byte)) {
        return out.extend_from_slice(value);
    }
    for &byte in value {
        if is_plain(byte) {
            out.push(byte);
        } else {
            let [high, low] = [byte >> 4, byte & 15].map(|digit| HEX[usize::from(digit)]);
            out.extend_from_slice(&[b'\\', b'x', high, low]);
        }
    }
}

/// The user of `Authorization: Basic`, as nginx finds it: what is before the first colon, if
/// that is anything.
pub fn basic_user(authorization: &[u8]) -> Option<Cow<'_, [u8]>> {
    let (scheme, rest) = authorization.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    let login = from_base64(rest.trim_ascii_start())?;
    let end = login.iter().position(|&byte| byte == b':')?;
    (end > 0).then(|| Cow::Owned(login[..end].to_vec()))
}

/// Bytes from base64, with or without padding.
fn from_base64(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let end = text.iter().position(|&byte| byte == b'=');
    let text = &text[..end.unwrap_or(text.len())];
    if text.is_empty() || text.len() % 4 == 1 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut count) = (0_u32, 0);
    for &byte in text {
        bits = bits << 6 | u32::from(digit(byte)?);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}
