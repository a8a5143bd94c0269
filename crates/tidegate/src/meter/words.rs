//! States as words, in which they outlive their process. What is read is kept within what meters
//! reckon with: a state that no meter has written must not make one overflow.

use super::word::MOST_OWED;

/// Permits that no state counts, with room for as many more.
const MOST_COUNTED: u64 = 1 << 61;
/// A time, or a number of ticks, after the end of time.
const LATEST: u64 = 1 << 63;

pub(super) fn count(word: u64) -> u64 {
    word.min(MOST_COUNTED)
}

pub(super) fn tick(word: u64) -> u64 {
    word.min(LATEST)
}

/// A scaled time, the upper half first.
pub(super) const fn halves(scaled: u128) -> [u64; 2] {
    [(scaled >> 64) as u64, scaled as u64]
}

/// A scaled time of its halves. What is later is never paid for, nor is this.
pub(super) fn scaled(upper: u64, lower: u64) -> u128 {
    let whole = u128::from(upper) << 64 | u128::from(lower);
    whole.min(MOST_OWED)
}
