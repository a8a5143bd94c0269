//! The cases of the conformance table, read from its source.

use crate::tree::Tree;

/// One case that the conformance suite runs.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) number: u32,
    /// The doors (library, simulate, gateway, ...) it runs through.
    pub(crate) doors: Vec<String>,
}

/// What the table in `crates/tidegate-sim` holds. None yet.
pub(crate) fn conformance_cases(_tree: &Tree) -> Vec<Case> {
    Vec::new()
}
