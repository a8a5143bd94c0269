//! What the `tidegate` binary does, as a library: its commands, and the traces that `simulate`
//! reads.

mod admin;
mod cli;
mod command;
mod exit;
mod hand_over;
mod redis;
pub mod simulation;
mod state;
mod terminal;
pub mod trace;
mod validation;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command, PolicyCommand};
use crate::exit::Exit;
use crate::terminal::Terminal;

/// Runs the command line `args` (the program's name first) and says how it ended: 0 fine, 1 the
/// answer is "no", 2 wrong use or bad input.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut terminal = Terminal::new();
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        // Help and version are no errors; clap knows which stream each belongs to.
        Err(error) => {
            let code = if error.use_stderr() {
                Exit::BadInput
            } else {
                Exit::Fine
            };
            return error.print().map_or(Exit::BadInput, |()| code).into();
        }
    };
    let result = match cli.command {
        Command::Serve(args) => command::serve::run(&args, &mut terminal),
        Command::Load(args) => command::load::run(&args, &mut terminal),
        Command::Simulate(args) => command::simulate::run(&args, &mut terminal),
        Command::Policy { command } => match command {
            PolicyCommand::Check(args) => command::policy::check(&args, &mut terminal),
            PolicyCommand::Default => command::policy::default(&mut terminal),
            PolicyCommand::Schema => command::policy::schema(&mut terminal),
        },
    };
    match result {
        Ok(exit) => exit,
        Err(error) => terminal.fail(&error),
    }
    .into()
}
