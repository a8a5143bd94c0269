//! The `tidegate` command, for the tests of the documentation: they run what it shows, and a test
//! can only rely on a binary of its own package.

use std::process::ExitCode;

fn main() -> ExitCode {
    tidegate_server::run(std::env::args_os())
}
