//! Sizes: `32768`, `32KiB`, `64KB`.

use super::GrammarError;
use super::token::{split_decimal, split_word};

const UNITS: &[(&str, u128)] = &[
    ("", 1),
    ("B", 1),
    ("KB", 1_000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
];

/// Reads a size in bytes. KB is 1000, KiB 1024.
pub(crate) fn parse_size(text: &str) -> Result<u64, GrammarError> {
    let error = || {
        GrammarError::new(
            format!("`{text}` is no size"),
            "write `32768`, `32KiB` or `64KB`",
        )
    };
    let (number, rest) = split_decimal(text.trim()).ok_or_else(error)?;
    let (unit, "") = split_word(rest.trim_start()) else {
        return Err(error());
    };
    let (_, factor) = UNITS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(unit))
        .ok_or_else(error)?;
    number
        .times(*factor)
        .and_then(|bytes| u64::try_from(bytes).ok())
        .ok_or_else(error)
}
