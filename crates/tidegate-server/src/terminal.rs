//! What people and scripts read: standard output and standard error.

use std::io::{self, IsTerminal, Write};

use tidegate_policy::{Problem, Problems};

use crate::exit::{CommandError, Exit};

/// Writes to both streams; colours only where a person looks and has not set `NO_COLOR`.
#[derive(Debug)]
pub(crate) struct Terminal {
    color: bool,
    out: io::Stdout,
    err: io::Stderr,
}

impl Terminal {
    pub(crate) fn new() -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self {
            color: wanted && io::stderr().is_terminal(),
            out: io::stdout(),
            err: io::stderr(),
        }
    }

    /// Writes to standard output. A reader that has gone away (`| head`) is no fault.
    pub(crate) fn print(&mut self, text: &str) -> Result<(), CommandError> {
        let mut out = self.out.lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(CommandError::io("cannot write to standard output", error))
            }
            _ => Ok(()),
        }
    }

    /// Writes to standard error; where that fails there is nobody to tell.
    pub(crate) fn note(&mut self, text: &str) {
        let mut err = self.err.lock();
        let _ = err
            .write_all(text.as_bytes())
            .and_then(|()| err.write_all(b"\n"));
    }

    pub(crate) fn warn(&mut self, warnings: &[Problem], omitted: usize) {
        for warning in warnings {
            self.note(&warning.render(self.color));
        }
        if omitted > 0 {
            self.note(&format!("and {omitted} more warnings"));
        }
    }

    pub(crate) fn problems(&mut self, problems: &Problems) {
        self.note(&problems.render(self.color));
    }

    /// Says why a command failed.
    pub(crate) fn fail(&mut self, error: &CommandError) -> Exit {
        match error {
            CommandError::Policy(problems) => self.problems(problems),
            CommandError::Other { .. } => self.note(&format!("error: {error}")),
        }
        Exit::BadInput
    }
}
