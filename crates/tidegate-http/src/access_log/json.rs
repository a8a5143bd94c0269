//! One JSON object a line.

use std::time::Duration;

use super::text::{Moment, cut, push_address, push_number, push_seconds, version};
use super::{Entry, Upstream};

/// Appends an object and the line's end. Keys come in one order; what is not there is left out.
/// Times are seconds; what is no UTF-8 in a value is replaced.
pub fn json(entry: &Entry<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"time\":\"");
    push_time(out, &Moment::of(entry.at));
    out.extend_from_slice(b"\",\"client\":\"");
    push_address(out, entry.client);
    out.extend_from_slice(b"\",\"peer\":\"");
    push_address(out, entry.peer);
    out.push(b'"');
    if let Some(asked) = &entry.asked {
        push_text(out, b",\"method\":", asked.method.as_bytes());
        push_text(out, b",\"target\":", asked.target.as_bytes());
        if let Some(host) = asked.host {
            push_text(out, b",\"host\":", host);
        }
        push_word(out, b",\"protocol\":", version(asked.version));
    }
    push_count(out, b",\"status\":", u64::from(entry.status));
    push_count(out, b",\"bytes_sent\":", entry.bytes_sent);
    push_count(out, b",\"bytes_received\":", entry.bytes_received);
    push_duration(out, b",\"duration\":", entry.duration);
    push_duration(out, b",\"waited\":", entry.waited);
    if let Some(Upstream {
        name,
        server,
        duration,
    }) = entry.upstream
    {
        push_text(out, b",\"upstream\":", name.as_bytes());
        push_text(out, b",\"server\":", server.as_bytes());
        if let Some(duration) = duration {
            push_duration(out, b",\"server_duration\":", duration);
        }
    }
    if let Some(route) = entry.route {
        push_text(out, b",\"route\":", route.as_bytes());
    }
    if let Some(decision) = entry.decision {
        push_word(out, b",\"decision\":", decision.as_str());
    }
    if let Some(limit) = entry.limit {
        push_text(out, b",\"limit\":", limit.as_bytes());
    }
    if let Some(remaining) = entry.remaining {
        push_count(out, b",\"remaining\":", remaining);
    }
    if let Some(id) = entry.id {
        push_text(out, b",\"request_id\":", id);
    }
    push_word(out, b",\"ended\":", entry.ended.as_str());
    push_headers(out, entry);
    out.extend_from_slice(b"}\n");
}

fn push_headers(out: &mut Vec<u8>, entry: &Entry<'_>) {
    let headers = entry.asked.as_ref().map_or(&[][..], |asked| asked.headers);
    let mut before: &[u8] = b",\"headers\":{";
    for (name, value) in headers {
        out.extend_from_slice(before);
        push_text(out, b"", name.as_bytes());
        push_text(out, b":", value);
        before = b",";
    }
    if !headers.is_empty() {
        out.push(b'}');
    }
}

/// `2026-12-01T01:54:31.250Z`.
fn push_time(out: &mut Vec<u8>, at: &Moment) {
    push_number(out, at.year, 4);
    for (sign, part) in [
        (b'-', at.month as u64),
        (b'-', at.day),
        (b'T', at.hour),
        (b':', at.minute),
        (b':', at.second),
    ] {
        out.push(sign);
        push_number(out, part, 2);
    }
    out.push(b'.');
    push_number(out, at.milli, 3);
    out.push(b'Z');
}

fn push_count(out: &mut Vec<u8>, key: &[u8], count: u64) {
    out.extend_from_slice(key);
    push_number(out, count, 1);
}

fn push_duration(out: &mut Vec<u8>, key: &[u8], duration: Duration) {
    out.extend_from_slice(key);
    push_seconds(out, duration, 6);
}

/// A text in which nothing needs escaping.
fn push_word(out: &mut Vec<u8>, key: &[u8], word: &str) {
    out.extend_from_slice(key);
    out.push(b'"');
    out.extend_from_slice(word.as_bytes());
    out.push(b'"');
}

fn push_text(out: &mut Vec<u8>, key: &[u8], text: &[u8]) {
    let text = cut(text);
    let is_plain = |&byte: &u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
    out.extend_from_slice(key);
    if text.iter().all(is_plain) {
        out.push(b'"');
        out.extend_from_slice(text);
        out.push(b'"');
    } else {
        let text = String::from_utf8_lossy(text);
        serde_json::to_writer(out, &*text).expect("a str is JSON, and a Vec takes all of it");
    }
}
