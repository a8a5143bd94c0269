//! Which bytes may stand where.

const TOKEN: u8 = 1;
const PATH: u8 = 2;
const QUERY: u8 = 4;
const HOST: u8 = 8;

static CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let is = byte as u8;
        let mut class = 0;
        if is.is_ascii_alphanumeric() || is_one_of(is, b"!#$%&'*+-.^_`|~") {
            class |= TOKEN;
        }
        // What `http::Uri` takes, but for a fragment, which it would drop.
        if is.is_ascii_graphic() && !is_one_of(is, b"#<>?`") || !is.is_ascii() {
            class |= PATH;
        }
        if is.is_ascii_graphic() && !is_one_of(is, b"\"#<>") || !is.is_ascii() {
            class |= QUERY;
        }
        // No comma: it would be two hosts that somebody has joined.
        if is.is_ascii_alphanumeric() || is_one_of(is, b"-._~%!$&'()*+;=") {
            class |= HOST;
        }
        classes[byte] = class;
        byte += 1;
    }
    classes
}

const fn is_one_of(byte: u8, set: &[u8]) -> bool {
    let mut at = 0;
    while at < set.len() {
        if set[at] == byte {
            return true;
        }
        at += 1;
    }
    false
}

fn all(bytes: &[u8], class: u8) -> bool {
    bytes
        .iter()
        .all(|&byte| CLASSES[usize::from(byte)] & class != 0)
}

/// A method or the name of a field.
pub(super) fn are_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && all(bytes, TOKEN)
}

/// A path and a query, if any, that `http::Uri` takes as they are.
pub(super) fn are_path_and_query(bytes: &[u8]) -> bool {
    let end = memchr::memchr(b'?', bytes).unwrap_or(bytes.len());
    let (path, query) = bytes.split_at(end);
    let query = query.get(1..).unwrap_or_default();
    all(path, PATH) && all(query, QUERY) && (bytes.is_ascii() || std::str::from_utf8(bytes).is_ok())
}

/// The name of a host, which may be empty.
pub(super) fn are_host_name(bytes: &[u8]) -> bool {
    all(bytes, HOST)
}

/// The value of a field: text, spaces and tabs. Written so that it is done 16 bytes at a time.
#[expect(
    clippy::needless_bitwise_bool,
    reason = "without branches it is vectorised"
)]
pub(super) fn are_value(bytes: &[u8]) -> bool {
    bytes.iter().fold(true, |fine, &byte| {
        // From the space to the tilde.
        let is_ascii_text = byte.wrapping_sub(b' ') < 0x5f;
        fine & (is_ascii_text | (byte >= 0x80) | (byte == b'\t'))
    })
}
