//! What a limit's state is called in Redis.
//!
//! `tg:{subject}:limit`: the braces make the subject the hash tag, so that all limits of one
//! subject are in one slot of a cluster and can be decided in one script call. A subject is one
//! or more key parts (bytes, in order), each with its length before it, so that no two lists of
//! parts read the same. What is long, or has bytes that are no plain text, is told by its SHA-256:
//! clients choose what key parts say, and nobody must be able to make two of them the same.
//! (SHA-2 because it is that, has no key which all nodes would have to agree on, and needs no C
//! compiler.) So a key has at most [`MAX_KEY_BYTES`].

use sha2::{Digest, Sha256};

/// Longest text that stands in a key as it is.
const MAX_TEXT: usize = 64;

/// Digits of a [`short_hash`].
const SHORT_HASH: usize = 8;

/// The longest key: two texts, or what stands for them, and what is around them.
pub const MAX_KEY_BYTES: usize = 2 * (MAX_TEXT + 1) + "tgb:{}:".len() + SHORT_HASH;

/// Who is limited: the key parts of a request, in order, as they stand in a key.
///
/// ```
/// use tidegate_redis::Subject;
///
/// let subject = Subject::new(["alice", "/search"]);
/// assert_eq!(subject.as_str(), "5:alice7:/search");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Subject(String);

impl Subject {
    /// The subject of these key parts. No parts at all are a subject, too: everybody.
    pub fn new<P: AsRef<[u8]>>(parts: impl IntoIterator<Item = P>) -> Self {
        let mut joined = Vec::new();
        for part in parts {
            let part = part.as_ref();
            joined.extend_from_slice(part.len().to_string().as_bytes());
            joined.push(b':');
            joined.extend_from_slice(part);
        }
        Self(text_of(&joined))
    }

    /// As it stands in a key.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<P: AsRef<[u8]>, const N: usize> From<[P; N]> for Subject {
    /// The subject of these parts.
    fn from(parts: [P; N]) -> Self {
        Self::new(parts)
    }
}

impl From<&str> for Subject {
    /// The subject of one part.
    fn from(part: &str) -> Self {
        Self::new([part])
    }
}

impl From<&Self> for Subject {
    fn from(subject: &Self) -> Self {
        subject.clone()
    }
}

/// The key of a limit's state. `family` says what type of value it has: a limit that changes its
/// algorithm must not find a value of another type.
pub(crate) fn key_of(family: &str, subject: &Subject, limit: &str) -> Vec<u8> {
    let limit = text_of(limit.as_bytes());
    format!("{family}:{{{}}}:{limit}", subject.as_str()).into_bytes()
}

/// The key of a limit's definition; of some of its keys only, where those have other numbers. All
/// definitions are in one slot, with the list of nodes.
pub(crate) fn definition_key(limit: &str, keys: &[u8]) -> Vec<u8> {
    let mut key = format!("tgd:{{nodes}}:{}", text_of(limit.as_bytes()));
    if !keys.is_empty() {
        key.push(':');
        key.push_str(&text_of(keys));
    }
    key.into_bytes()
}

/// Short plain text as it is, all else by its SHA-256 (in hexadecimal, behind a `#`, with which
/// nothing begins that stands as it is).
fn text_of(bytes: &[u8]) -> String {
    let plain = |byte: &u8| byte.is_ascii_graphic() && !b"{}".contains(byte);
    let is_plain = bytes.len() <= MAX_TEXT && bytes.iter().all(plain);
    match std::str::from_utf8(bytes) {
        Ok(text) if is_plain && !text.starts_with('#') => text.to_owned(),
        _ => {
            let mut text = String::with_capacity(MAX_TEXT + 1);
            text.push('#');
            push_hash(&mut text, bytes);
            text
        }
    }
}

fn push_hash(text: &mut String, bytes: &[u8]) {
    for byte in Sha256::digest(bytes) {
        text.push(char::from(HEX[usize::from(byte >> 4)]));
        text.push(char::from(HEX[usize::from(byte & 15)]));
    }
}

/// Tells a few of our own making apart.
pub(crate) fn short_hash(bytes: &[u8]) -> String {
    let mut text = String::new();
    push_hash(&mut text, bytes);
    text.truncate(SHORT_HASH);
    text
}

const HEX: &[u8; 16] = b"0123456789abcdef";

#[cfg(test)]
mod tests;
