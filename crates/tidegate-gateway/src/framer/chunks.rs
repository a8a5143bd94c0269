//! A chunked body, up to the trailer section.

use crate::fault::Fault;

const BAD_SIZE: Fault = Fault::bad("the size of a chunk is no number");
const TOO_LARGE: Fault = Fault::bad("the size of a chunk is too large");
const BAD_LINE: Fault = Fault::bad("the size of a chunk has something else behind it");
const LONG_LINE: Fault = Fault::bad("the extension of a chunk is too long");
const BAD_END: Fault = Fault::bad("a chunk does not end where its size says");

/// Most bytes behind the size of a chunk.
const MAX_EXTENSION: u16 = 256;
/// Most digits of a size, leading zeros among them.
const MAX_DIGITS: u8 = 16;

/// Where in a chunked body a connection is. The size is kept until the chunk's data begins.
#[derive(Debug)]
pub(super) enum Chunks {
    Size {
        digits: u8,
        size: u64,
    },
    /// Space behind the size: an extension has to follow.
    Space {
        size: u64,
        length: u16,
    },
    Extension {
        size: u64,
        length: u16,
    },
    SizeEnd {
        size: u64,
    },
    Bytes {
        left: u64,
    },
    /// The carriage return behind a chunk.
    Return,
    /// The line feed behind it.
    Feed,
    /// Behind the last chunk's size.
    Over,
}

impl Default for Chunks {
    fn default() -> Self {
        Self::Size { digits: 0, size: 0 }
    }
}

impl Chunks {
    pub(super) fn are_over(&self) -> bool {
        matches!(self, Self::Over)
    }

    /// How many of `bytes` belong to the chunks: all of them, or those up to the trailers.
    pub(super) fn look(&mut self, bytes: &[u8]) -> Result<usize, Fault> {
        let mut at = 0;
        while at < bytes.len() && !self.are_over() {
            if let Self::Bytes { left } = self {
                let length = (*left).min((bytes.len() - at) as u64);
                *left -= length;
                at += length as usize;
                if *left == 0 {
                    *self = Self::Return;
                }
            } else {
                match self.after(bytes[at]) {
                    Ok(after) => *self = after,
                    // What comes before the fault goes on, however the bytes are split.
                    Err(_) if at > 0 => break,
                    Err(fault) => return Err(fault),
                }
                at += 1;
            }
        }
        Ok(at)
    }

    /// The state after one byte that is no data.
    fn after(&self, byte: u8) -> Result<Self, Fault> {
        Ok(match (self, byte) {
            (&Self::Size { digits, size }, _) if byte.is_ascii_hexdigit() => {
                if digits == MAX_DIGITS {
                    return Err(TOO_LARGE);
                }
                let digit = (byte as char).to_digit(16).map_or(0, u64::from);
                let size = size.checked_mul(16).ok_or(TOO_LARGE)? + digit;
                if size > i64::MAX as u64 {
                    return Err(TOO_LARGE);
                }
                let digits = digits + 1;
                Self::Size { digits, size }
            }
            (Self::Size { digits: 0, .. }, _) => return Err(BAD_SIZE),
            (&Self::Size { size, .. } | &Self::Extension { size, .. }, b'\r') => {
                Self::SizeEnd { size }
            }
            (&Self::Size { size, .. }, b';') => Self::Extension { size, length: 1 },
            (&Self::Size { size, .. }, b' ' | b'\t') => Self::Space { size, length: 1 },
            (Self::Size { .. }, _) => return Err(BAD_SIZE),
            (&Self::Space { size, length }, b' ' | b'\t') => Self::Space {
                size,
                length: longer(length)?,
            },
            (&Self::Space { size, length }, b';')
            | (&Self::Extension { size, length }, b'\t' | b' '..=b'~' | 0x80..) => {
                Self::Extension {
                    size,
                    length: longer(length)?,
                }
            }
            (Self::SizeEnd { size: 0 }, b'\n') => Self::Over,
            (&Self::SizeEnd { size }, b'\n') => Self::Bytes { left: size },
            (Self::Space { .. } | Self::Extension { .. } | Self::SizeEnd { .. }, _) => {
                return Err(BAD_LINE);
            }
            (Self::Return, b'\r') => Self::Feed,
            (Self::Feed, b'\n') => Self::default(),
            (Self::Return | Self::Feed, _) => return Err(BAD_END),
            (Self::Bytes { .. } | Self::Over, _) => unreachable!("the caller sees to these"),
        })
    }
}

fn longer(length: u16) -> Result<u16, Fault> {
    if length == MAX_EXTENSION {
        return Err(LONG_LINE);
    }
    Ok(length + 1)
}
