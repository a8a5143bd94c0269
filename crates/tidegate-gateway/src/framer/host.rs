//! Who a request is for.

use super::bytes_of;

/// Whether `text` is what `Host` may say: a name or an address, and a port if there is one.
pub(super) fn is_host(text: &[u8]) -> bool {
    let (name, port) = parts(text);
    let is_named = match name {
        [b'[', inner @ .., b']'] => {
            let is_of_address = |byte: &u8| byte.is_ascii_alphanumeric() || b":.".contains(byte);
            !inner.is_empty() && inner.iter().all(is_of_address)
        }
        _ => bytes_of::are_host_name(name),
    };
    is_named && port.is_none_or(is_port)
}

/// Whether two texts that are hosts name the same one; `default_port` is that of the scheme.
pub(super) fn are_same(one: &[u8], other: &[u8], default_port: &[u8]) -> bool {
    let (name, port) = parts(one);
    let (other_name, other_port) = parts(other);
    name.eq_ignore_ascii_case(other_name)
        && or_default(port, default_port) == or_default(other_port, default_port)
}

fn or_default<'a>(port: Option<&'a [u8]>, default: &'a [u8]) -> &'a [u8] {
    port.filter(|port| !port.is_empty()).unwrap_or(default)
}

/// The name and, behind the colon, the port.
fn parts(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    let from = match memchr::memchr(b']', text) {
        Some(bracket) if text.starts_with(b"[") => bracket,
        _ => 0,
    };
    match memchr::memchr(b':', &text[from..]) {
        Some(colon) => (&text[..from + colon], Some(&text[from + colon + 1..])),
        None => (text, None),
    }
}

fn is_port(port: &[u8]) -> bool {
    port.len() <= 5
        && port.iter().all(u8::is_ascii_digit)
        && port
            .iter()
            .fold(0, |number, digit| number * 10 + u32::from(digit - b'0'))
            <= 0xffff
}
