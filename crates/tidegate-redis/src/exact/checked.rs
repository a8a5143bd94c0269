//! The answer of several limits, and by what it is given back.

use std::fmt;
use std::sync::Arc;

use tidegate::{CheckAllError, Decision};

use super::script::Asked;
use crate::call::Unavailable;

/// What a check took from the limits of one slot: give it back by this, once.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "what is not given back stays taken"]
pub struct ExactReceipt {
    pub(crate) limits: Arc<[Asked]>,
    /// Of each of them: permits, and the script's mark.
    pub(crate) taken: Vec<(u64, i64)>,
}

/// The answer of several limits.
#[derive(Debug, Default)]
#[must_use = "a decision that nobody looks at limits nothing"]
pub struct ExactChecked {
    /// The limits that were asked (by their place in the list), and what each said.
    pub(crate) decisions: Vec<(usize, Decision)>,
    pub(crate) receipts: Vec<ExactReceipt>,
}

impl ExactChecked {
    /// Whether the request may go ahead, after the longest delay.
    pub fn is_allowed(&self) -> bool {
        self.decisions
            .iter()
            .all(|(_, decision)| decision.is_allowed())
    }

    /// The decision that a caller should be told, with its place in the list: the denial with the
    /// longest wait, or else the allowance with the least remaining. `None` for an empty list.
    pub fn told(&self) -> Option<(usize, &Decision)> {
        self.decisions().min_by(|(_, a), (_, b)| a.cmp_severity(b))
    }

    /// What each limit said, with its place in the list. After a denial that this node remembers,
    /// those that were not asked again are missing.
    pub fn decisions(&self) -> impl Iterator<Item = (usize, &Decision)> {
        self.decisions
            .iter()
            .map(|(place, decision)| (*place, decision))
    }

    /// What was taken, to be given back: nothing where any refused.
    pub fn into_receipts(self) -> Vec<ExactReceipt> {
        self.receipts
    }
}

/// Why several limits could not be decided as one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CheckFailed {
    /// The list of limits is at fault: nothing was taken.
    List(CheckAllError),
    /// Redis did not answer in time.
    Unavailable(Unavailable),
}

impl fmt::Display for CheckFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::List(_) => "these limits cannot be decided as one",
            Self::Unavailable(_) => "the limits could not be asked",
        })
    }
}

impl std::error::Error for CheckFailed {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(match self {
            Self::List(error) => error,
            Self::Unavailable(error) => error,
        })
    }
}

impl From<CheckAllError> for CheckFailed {
    /// The list is at fault.
    fn from(error: CheckAllError) -> Self {
        Self::List(error)
    }
}

impl From<Unavailable> for CheckFailed {
    /// Redis did not answer.
    fn from(error: Unavailable) -> Self {
        Self::Unavailable(error)
    }
}
