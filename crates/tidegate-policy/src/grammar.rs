//! The small languages that stand in values: rates, bandwidths, durations, sizes.

mod bandwidth;
mod duration;
mod rate;
mod size;
mod token;

use std::fmt;

pub(crate) use self::bandwidth::parse_bandwidth;
pub(crate) use self::duration::parse_duration;
pub(crate) use self::rate::{RateText, parse_rate};
pub(crate) use self::size::parse_size;

/// Why a text is not of a grammar, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GrammarError {
    pub(crate) message: String,
    pub(crate) help: String,
}

impl GrammarError {
    pub(crate) fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            help: help.into(),
        }
    }
}

impl fmt::Display for GrammarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.message, self.help)
    }
}

#[cfg(test)]
mod tests;
