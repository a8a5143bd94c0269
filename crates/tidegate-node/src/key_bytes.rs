//! A request's key for one limit, as bytes: each part with its length before it.

use smallvec::SmallVec;
use tidegate_policy::{KeyPart, LimitRule};

use crate::call::Call;

/// Stands for the length of a part that the request lacks. No part is this long: a header is
/// bounded far below it.
const MISSING: [u8; 4] = u32::MAX.to_le_bytes();

/// The parts of one key, kept apart: `a` + `bc` is not `ab` + `c`.
#[derive(Debug, Default)]
pub(crate) struct KeyBytes {
    bytes: SmallVec<[u8; 128]>,
    /// Where each part ends.
    ends: SmallVec<[usize; LimitRule::MAX_KEY_PARTS]>,
    /// The first part that the request lacks.
    missing: Option<usize>,
}

impl KeyBytes {
    /// The key that `call` has for a limit counted by `parts`.
    pub(crate) fn of(parts: &[KeyPart], call: &Call<'_>, ipv6_prefix: u8) -> Self {
        let mut key = Self::default();
        for part in parts {
            let start = key.bytes.len();
            key.bytes.extend_from_slice(&MISSING);
            if part.write_value(call.request, call.route, ipv6_prefix, &mut key.bytes) {
                let length = key.bytes.len() - start - MISSING.len();
                let length = u32::try_from(length).unwrap_or(u32::MAX - 1);
                key.bytes[start..start + MISSING.len()].copy_from_slice(&length.to_le_bytes());
            } else {
                key.missing = key.missing.or(Some(key.ends.len()));
            }
            key.ends.push(key.bytes.len());
        }
        key
    }

    /// The key whose parts have these values.
    #[cfg(test)]
    pub(crate) fn of_values(values: &[&[u8]]) -> Self {
        let mut key = Self::default();
        for value in values {
            key.bytes
                .extend_from_slice(&(value.len() as u32).to_le_bytes());
            key.bytes.extend_from_slice(value);
            key.ends.push(key.bytes.len());
        }
        key
    }

    /// The first part that the request lacks, by its place in the key.
    pub(crate) const fn missing(&self) -> Option<usize> {
        self.missing
    }

    /// Whether nothing is in it: each of its parts is missing, or empty.
    pub(crate) fn is_empty(&self) -> bool {
        !self.ends.is_empty() && self.bytes.len() == self.ends.len() * MISSING.len()
    }

    /// From here on a part that is missing is one that is empty.
    pub(crate) fn make_missing_empty(&mut self) {
        let mut start = 0;
        for end in &self.ends {
            if self.bytes[start..].starts_with(&MISSING) {
                self.bytes[start..start + MISSING.len()].fill(0);
            }
            start = *end;
        }
        self.missing = None;
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A part with its length before it; for a missing part the mark that stands for it.
    pub(crate) fn part(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[index]]
    }

    /// A part's value; `None` where it is missing.
    pub(crate) fn value(&self, index: usize) -> Option<&[u8]> {
        let part = self.part(index);
        let (length, value) = part.split_at(MISSING.len());
        (length != MISSING).then_some(value)
    }
}
