//! How a command ends.

use std::fmt;
use std::io;
use std::process::ExitCode;

use tidegate_policy::Problems;

/// An exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All is well.
    Fine,
    /// The question was answered with no.
    No,
    /// Wrong use, or input that is none.
    BadInput,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Fine => 0,
            Exit::No => 1,
            Exit::BadInput => 2,
        })
    }
}

/// Why a command could not do its work.
#[derive(Debug)]
pub(crate) enum CommandError {
    /// The policy is wrong.
    Policy(Problems),
    /// Something else: what, and where there is one, the cause.
    Other {
        what: String,
        source: Option<io::Error>,
    },
}

impl CommandError {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self::Other {
            what: what.into(),
            source: None,
        }
    }

    pub(crate) fn io(what: impl Into<String>, source: io::Error) -> Self {
        Self::Other {
            what: what.into(),
            source: Some(source),
        }
    }
}

impl From<Problems> for CommandError {
    fn from(problems: Problems) -> Self {
        Self::Policy(problems)
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(problems) => write!(f, "{problems}"),
            Self::Other { what, source: None } => f.write_str(what),
            Self::Other {
                what,
                source: Some(source),
            } => write!(f, "{what}: {source}"),
        }
    }
}

impl std::error::Error for CommandError {}
