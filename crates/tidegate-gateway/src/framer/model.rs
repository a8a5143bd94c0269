//! The same, slowly: one pass over all bytes at once, with a vector wherever one helps.

use super::Bounds;

/// What a connection sent, as far as it is complete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Read {
    pub(super) messages: Vec<Message>,
    /// The status, and whether the head of the message had been handed on.
    pub(super) fault: Option<(u16, bool)>,
}

/// A message: its head, and as much of its body as has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) head: Vec<u8>,
    pub(super) body: Vec<u8>,
    pub(super) trailers: usize,
}

enum Body {
    None,
    Length(u64),
    Chunked,
}

type Found<T> = Result<Option<T>, u16>;

pub(super) fn read(mut bytes: &[u8], bounds: &Bounds) -> Read {
    let mut read = Read::default();
    loop {
        while let Some(rest) = bytes.strip_prefix(b"\r\n") {
            bytes = rest;
        }
        let (head, body) = match head(bytes, bounds) {
            Err(status) => {
                read.fault = Some((status, false));
                return read;
            }
            Ok(None) => return read,
            Ok(Some(found)) => found,
        };
        read.messages.push(Message {
            head: bytes[..head].to_vec(),
            ..Message::default()
        });
        bytes = &bytes[head..];
        let message = read.messages.last_mut().unwrap();
        let end = match body {
            Body::None => Ok(Some(0)),
            Body::Length(length) => {
                let have = (bytes.len() as u64).min(length) as usize;
                message.body.extend(&bytes[..have]);
                Ok((have as u64 == length).then_some(have))
            }
            Body::Chunked => chunked(bytes, bounds, message),
        };
        match end {
            Ok(Some(length)) => bytes = &bytes[length..],
            Ok(None) => return read,
            Err(status) => {
                read.fault = Some((status, true));
                return read;
            }
        }
    }
}

/// The lines up to the empty one, and how long all of them are; `look` is shown each.
fn section(
    bytes: &[u8],
    most: usize,
    too_long: impl Fn(usize) -> u16,
    mut look: impl FnMut(usize, &[u8]) -> Result<(), u16>,
) -> Found<usize> {
    let (mut at, mut line) = (0, Vec::new());
    let mut number = 0;
    loop {
        if at == most {
            return Err(too_long(number));
        }
        let Some(&byte) = bytes.get(at) else {
            return Ok(None);
        };
        line.push(byte);
        at += 1;
        if byte == b'\n' {
            if line.len() < 2 || line[line.len() - 2] != b'\r' {
                return Err(400);
            }
            line.truncate(line.len() - 2);
            if line.is_empty() && number > 0 {
                return Ok(Some(at));
            }
            look(number, &line)?;
            number += 1;
            line.clear();
        }
    }
}

fn is_token(text: &[u8]) -> bool {
    let is = |byte: &u8| byte.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(*byte as char);
    !text.is_empty() && text.iter().all(|byte| byte.is_ascii() && is(byte))
}

fn named_value(line: &[u8]) -> Result<(String, Vec<u8>), u16> {
    let colon = line.iter().position(|&byte| byte == b':').ok_or(400_u16)?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    if !is_token(name) {
        return Err(400);
    }
    for &byte in value {
        if byte == 127 || (byte < 32 && byte != 9) {
            return Err(400);
        }
    }
    let name = String::from_utf8(name.to_vec()).unwrap().to_lowercase();
    Ok((name, value.trim_ascii().to_vec()))
}

/// Whether a field can stand behind these.
fn add_up(fields: &[(String, Vec<u8>)], name: &str, value: &[u8], is_old: bool) -> Result<(), u16> {
    let has = |wanted: &str| fields.iter().any(|(name, _)| name == wanted);
    match name.replace('_', "-").as_str() {
        "host" if name == "host" && (has("host") || host(value).is_none()) => return Err(400),
        "content-length" => {
            let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
            let text = String::from_utf8_lossy(value);
            if name.contains('_')
                || has("content-length")
                || !digits
                || text.parse::<i64>().is_err()
                || has("transfer-encoding")
            {
                return Err(400);
            }
        }
        "transfer-encoding" => {
            if name.contains('_') || has("transfer-encoding") || is_old {
                return Err(400);
            }
            if !value.eq_ignore_ascii_case(b"chunked") {
                return Err(501);
            }
            if has("content-length") {
                return Err(400);
            }
        }
        _ => {}
    }
    Ok(())
}

fn head(bytes: &[u8], bounds: &Bounds) -> Found<(usize, Body)> {
    let mut start = None;
    let mut fields: Vec<(String, Vec<u8>)> = Vec::new();
    let too_long = |lines| if lines == 0 { 414 } else { 431 };
    let found = section(bytes, bounds.head_bytes, too_long, |number, line| {
        if number == 0 {
            start = Some(request_line(line)?);
            return Ok(());
        }
        let (name, value) = named_value(line)?;
        let is_old = start.as_ref().is_some_and(|start| start.is_old);
        add_up(&fields, &name, &value, is_old)?;
        fields.push((name, value));
        if fields.len() > bounds.fields {
            return Err(431);
        }
        Ok(())
    })?;
    let Some(length) = found else {
        return Ok(None);
    };
    let get = |wanted: &str| {
        let mut values = fields.iter().filter(|(name, _)| name == wanted);
        values.next().map(|(_, value)| value.clone())
    };
    let start = start.expect("a head has a first line");
    match (get("host"), start.authority) {
        (None, _) if !start.is_old => return Err(400),
        (Some(field), Some((authority, port))) => {
            let with_port = |text: &[u8]| {
                let (name, found) = host(text).expect("looked at before");
                (
                    name,
                    if found.is_empty() {
                        port.to_owned()
                    } else {
                        found
                    },
                )
            };
            if with_port(&field) != with_port(&authority) {
                return Err(400);
            }
        }
        _ => {}
    }
    let body = match get("content-length") {
        _ if get("transfer-encoding").is_some() => Body::Chunked,
        Some(length) => Body::Length(String::from_utf8(length).unwrap().parse().unwrap()),
        None => Body::None,
    };
    Ok(Some((length, body)))
}

struct Start {
    is_old: bool,
    authority: Option<(Vec<u8>, &'static str)>,
}

fn request_line(line: &[u8]) -> Result<Start, u16> {
    let parts: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    let [method, .., version] = parts[..] else {
        return Err(400);
    };
    if !is_token(method) {
        return Err(400);
    }
    let is_old = match version {
        b"HTTP/1.1" => false,
        b"HTTP/1.0" => true,
        _ if version.starts_with(b"HTTP/") && parts.len() > 2 => return Err(505),
        _ => return Err(400),
    };
    let [_, target, _] = parts[..] else {
        return Err(400);
    };
    if target.is_empty() || target.contains(&b'\t') {
        return Err(400);
    }
    if target.len() > 65_534 {
        return Err(414);
    }
    if method == b"CONNECT" {
        return Err(501);
    }
    let plain = Ok(Start {
        is_old,
        authority: None,
    });
    if target == b"*" {
        return if method == b"OPTIONS" {
            plain
        } else {
            Err(400)
        };
    }
    let text = std::str::from_utf8(target).map_err(|_| 400_u16)?;
    if text.starts_with('/') {
        return if is_path(text) { plain } else { Err(400) };
    }
    let (scheme, rest) = text.split_once("://").ok_or(400_u16)?;
    let port = match scheme.to_lowercase().as_str() {
        "http" => "80",
        "https" => "443",
        _ => return Err(400),
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    match host(authority.as_bytes()) {
        Some((name, _)) if !name.is_empty() && is_path(path) => Ok(Start {
            is_old,
            authority: Some((authority.into(), port)),
        }),
        _ => Err(400),
    }
}

fn is_path(text: &str) -> bool {
    let (path, query) = text.split_once('?').unwrap_or((text, ""));
    let fine = |text: &str, but: &str| {
        let is = |char: char| !char.is_ascii() || (char.is_ascii_graphic() && !but.contains(char));
        text.chars().all(is)
    };
    fine(path, "#<>?`") && fine(query, "\"#<>")
}

/// The name, in lower case, and the port, or an empty text.
fn host(text: &[u8]) -> Option<(String, String)> {
    let text = std::str::from_utf8(text).ok()?.to_lowercase();
    let (name, port) = if let Some(rest) = text.strip_prefix('[') {
        let (inner, rest) = rest.split_once(']')?;
        let is = |char: char| char.is_ascii_alphanumeric() || ":.".contains(char);
        if inner.is_empty() || !inner.chars().all(is) {
            return None;
        }
        let port = match rest.strip_prefix(':') {
            None if rest.is_empty() => "",
            None => return None,
            Some(port) => port,
        };
        (format!("[{inner}]"), port.to_owned())
    } else {
        let (name, port) = text.split_once(':').unwrap_or((&text, ""));
        let is = |char: char| char.is_ascii_alphanumeric() || "-._~%!$&'()*+;=".contains(char);
        if !name.chars().all(is) {
            return None;
        }
        (name.to_owned(), port.to_owned())
    };
    let is_number = port.chars().all(|char| char.is_ascii_digit()) && port.len() <= 5;
    let is_port = is_number && (port.is_empty() || port.parse::<u16>().is_ok());
    is_port.then_some((name, port))
}

fn chunked(bytes: &[u8], bounds: &Bounds, message: &mut Message) -> Found<usize> {
    let mut at = 0;
    loop {
        let Some((size, length)) = chunk_line(&bytes[at..])? else {
            return Ok(None);
        };
        at += length;
        if size == 0 {
            break;
        }
        let have = (bytes.len() - at).min(usize::try_from(size).unwrap());
        message.body.extend(&bytes[at..at + have]);
        at += have;
        for wanted in [b'\r', b'\n'] {
            match bytes.get(at) {
                None => return Ok(None),
                Some(&byte) if byte == wanted => at += 1,
                Some(_) => return Err(400),
            }
        }
    }
    // A section ends at its second line or later: it is given one in front.
    let section_bytes = [b"x\r\n", &bytes[at..]].concat();
    let mut fields = 0;
    let end = section(
        &section_bytes,
        bounds.trailer_bytes + 3,
        |_| 431,
        |number, line| {
            if number == 0 {
                return Ok(());
            }
            let (name, _) = named_value(line)?;
            fields += 1;
            if fields > bounds.fields {
                return Err(431);
            }
            if ["content-length", "host", "transfer-encoding"].contains(&name.as_str()) {
                return Err(400);
            }
            Ok(())
        },
    )?;
    message.trailers = fields;
    Ok(end.map(|end| at + end - 3))
}

/// The size on a chunk's line, and the length of the line.
fn chunk_line(bytes: &[u8]) -> Found<(u64, usize)> {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_hexdigit());
    let digits = digits.count();
    let text = std::str::from_utf8(&bytes[..digits.min(17)]).unwrap();
    if !text.is_empty() && (text.len() > 16 || i64::from_str_radix(text, 16).is_err()) {
        return Err(400);
    }
    let mut at = digits;
    let mut extension = false;
    loop {
        let Some(&byte) = bytes.get(at) else {
            return Ok(None);
        };
        if digits == 0 || at - digits > 256 {
            return Err(400);
        }
        let blank = byte == b' ' || byte == b'\t';
        match byte {
            b'\r' if at == digits || extension => break,
            b';' => extension = true,
            _ if blank && at == digits => {}
            _ if blank && !extension => {}
            9 | 32..=126 | 128.. if extension => {}
            _ => return Err(400),
        }
        at += 1;
        if at - digits > 256 {
            return Err(400);
        }
    }
    match bytes.get(at + 1) {
        None => Ok(None),
        Some(b'\n') => {
            let size = u64::from_str_radix(text, 16).unwrap();
            Ok(Some((size, at + 2)))
        }
        Some(_) => Err(400),
    }
}
