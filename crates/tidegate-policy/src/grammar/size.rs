//! Sizes: `32768`, `32KiB`, `64KB`, `1GB`.

use super::GrammarError;
use super::token::{split_decimal, split_word};

const UNITS: &[(&str, u128)] = &[
    ("", 1),
    ("B", 1),
    ("KB", 1_000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
];

/// The units, for people.
pub(super) const UNIT_NAMES: &str = "B, KB, KiB, MB, MiB, GB and GiB";

/// How many bytes a unit has.
pub(super) fn factor(unit: &str) -> Option<u128> {
    let mut units = UNITS.iter();
    let (_, factor) = units.find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    Some(*factor)
}

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
    number
        .times(factor(unit).ok_or_else(error)?)
        .and_then(|bytes| u64::try_from(bytes).ok())
        .ok_or_else(error)
}
