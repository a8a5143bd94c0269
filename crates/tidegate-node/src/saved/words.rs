//! Words in blocks, each with a check of itself and of all before it: who reads a word knows that
//! it is one that was written.
//!
//! `tidegate`, the version (4 bytes), then blocks: how many bytes (4), a check (8), words (8 each,
//! all in little endian). A block without words is the last, and nothing comes after it.

use std::io::{self, Read, Write};

use tidegate::KeyHasher;

use super::SavedError;

const MAGIC: &[u8; 8] = b"tidegate";
/// Counted up with whatever changes what words mean, or how keys are hashed.
const VERSION: u32 = 1;
/// Bytes of a full block, a whole number of words.
const BLOCK: usize = 1 << 18;
/// The most of a file: 130 million keys of a token bucket.
pub(super) const MAX_BYTES: u64 = 1 << 32;

/// The check of a block: of its bytes behind the check of the block before it.
fn check_of(chained: &[u8]) -> u64 {
    // Against accidents. Who can write the file can write a check, whatever it is.
    let [check, _] = KeyHasher::with_keys(0, 0).hash_bytes(chained).to_words();
    check
}

fn invalid_input(message: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

/// Writes words.
#[derive(Debug)]
pub(super) struct WordWriter<W> {
    out: W,
    /// The last check, and the bytes of the next block.
    chained: Vec<u8>,
    written: u64,
}

impl<W: Write> WordWriter<W> {
    pub(super) fn new(mut out: W) -> io::Result<Self> {
        out.write_all(MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        Ok(Self {
            out,
            chained: vec![0; 8],
            written: 12,
        })
    }

    pub(super) fn put(&mut self, words: &[u64]) -> io::Result<()> {
        for word in words {
            self.chained.extend_from_slice(&word.to_le_bytes());
            if self.chained.len() == 8 + BLOCK {
                self.end_block()?;
            }
        }
        Ok(())
    }

    /// A text as its length in bytes and as many words as that takes.
    pub(super) fn put_text(&mut self, text: &str) -> io::Result<()> {
        self.put(&[text.len() as u64])?;
        for part in text.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.put(&[u64::from_le_bytes(word)])?;
        }
        Ok(())
    }

    fn end_block(&mut self) -> io::Result<()> {
        let check = check_of(&self.chained);
        let (_, words) = self.chained.split_at(8);
        let length = u32::try_from(words.len()).map_err(|_| invalid_input("too long a block"))?;
        self.written += 12 + u64::from(length);
        if self.written > MAX_BYTES {
            return Err(invalid_input("more than a file of counts may have (4 GiB)"));
        }
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(&check.to_le_bytes())?;
        self.out.write_all(words)?;
        self.chained.clear();
        self.chained.extend_from_slice(&check.to_le_bytes());
        Ok(())
    }

    /// Ends the file, and says how many bytes it has.
    pub(super) fn finish(mut self) -> io::Result<u64> {
        if self.chained.len() > 8 {
            self.end_block()?;
        }
        self.end_block()?;
        self.out.flush()?;
        Ok(self.written)
    }
}

/// Reads words.
#[derive(Debug)]
pub(super) struct WordReader<R> {
    input: R,
    chained: Vec<u8>,
    /// How many bytes of the block have been read.
    at: usize,
    read: u64,
}

impl<R: Read> WordReader<R> {
    pub(super) fn new(mut input: R) -> Result<Self, SavedError> {
        let (mut magic, mut version) = ([0; 8], [0; 4]);
        if input.read_exact(&mut magic).is_err() || magic != *MAGIC {
            return Err(SavedError::Foreign);
        }
        fill(&mut input, &mut version)?;
        match u32::from_le_bytes(version) {
            VERSION => Ok(Self {
                input,
                chained: vec![0; 8],
                at: 8,
                read: 12,
            }),
            other => Err(SavedError::Version(other)),
        }
    }

    pub(super) fn word(&mut self) -> Result<u64, SavedError> {
        if self.at == self.chained.len() && self.next_block()? == 0 {
            return Err(SavedError::Torn("it ends too early"));
        }
        let rest = self.chained.get(self.at..).and_then(<[u8]>::first_chunk);
        let word = rest.ok_or(SavedError::Torn("a word is cut"))?;
        self.at += 8;
        Ok(u64::from_le_bytes(*word))
    }

    /// A number up to `most`.
    pub(super) fn number(&mut self, most: u64) -> Result<u64, SavedError> {
        let number = self.word()?;
        if number > most {
            return Err(SavedError::Wrong("a number is too large"));
        }
        Ok(number)
    }

    /// So many words, appended. Room is made as they come.
    pub(super) fn words(&mut self, count: u64, words: &mut Vec<u64>) -> Result<(), SavedError> {
        for _ in 0..count {
            words.push(self.word()?);
        }
        Ok(())
    }

    pub(super) fn text(&mut self, most: u64) -> Result<String, SavedError> {
        let length = self.number(most)?;
        let mut bytes = Vec::new();
        for _ in 0..length.div_ceil(8) {
            bytes.extend_from_slice(&self.word()?.to_le_bytes());
        }
        let length = usize::try_from(length).map_err(|_| SavedError::TooLarge)?;
        bytes.truncate(length);
        String::from_utf8(bytes).map_err(|_| SavedError::Wrong("a name is no text"))
    }

    /// Reads the next block; returns its length.
    fn next_block(&mut self) -> Result<usize, SavedError> {
        let (mut length, mut check) = ([0; 4], [0; 8]);
        fill(&mut self.input, &mut length)?;
        fill(&mut self.input, &mut check)?;
        let length = u32::from_le_bytes(length);
        let bytes = usize::try_from(length).map_err(|_| SavedError::TooLarge)?;
        if bytes > BLOCK {
            return Err(SavedError::Torn("a block is too long"));
        }
        self.read += 12 + u64::from(length);
        if self.read > MAX_BYTES {
            return Err(SavedError::TooLarge);
        }
        self.chained.resize(8 + bytes, 0);
        fill(&mut self.input, &mut self.chained[8..])?;
        if check_of(&self.chained) != u64::from_le_bytes(check) {
            return Err(SavedError::Torn("a check does not hold"));
        }
        // The check is that of the block after it, too.
        self.chained[..8].copy_from_slice(&check);
        self.at = 8;
        Ok(bytes)
    }

    /// Whether this is the end of the file.
    pub(super) fn finish(mut self) -> Result<(), SavedError> {
        if self.at != self.chained.len() || self.next_block()? != 0 {
            return Err(SavedError::Torn("there is more than there should be"));
        }
        match self.input.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(SavedError::Torn("there is more than there should be")),
            Err(error) => Err(SavedError::Unreadable(error)),
        }
    }
}

fn fill(input: &mut impl Read, bytes: &mut [u8]) -> Result<(), SavedError> {
    input.read_exact(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => SavedError::Torn("it ends too early"),
        _ => SavedError::Unreadable(error),
    })
}
