//! Automation: `cargo xtask <task>`.
//!
//! One file per task. Everything that a check of this repository needs is reached from here, so
//! that `cargo xtask test` on a fresh Debian machine is the only command to know.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool"
)]

mod bench;
mod faults;
mod fuzz;
mod metadata;
mod mutants;
mod readme;
mod rust_text;
mod setup;
mod shell;
mod sim;
mod status;
mod steps;
mod test;
mod tidy;
mod tree;

use std::process::ExitCode;

use shell::Failure;

const USAGE: &str = "\
usage: cargo xtask <task>

  setup            install what the tests need (Debian, as root) or print the line to run
  test [--full]    everything that must hold before a change lands; --full adds what is long
  tidy             invariants of the source tree: crate graph, names, sizes, generated files
  status           write docs/status.md: which requirement is shown by which test
  readme           run the README's code blocks
  fuzz [SECONDS] [TARGET]   run each fuzz target (60 s unless told otherwise; needs nightly)
  sim [--seeds N] [--from N]   leased limits of simulated clusters, N random runs (2,000)
  faults           processes that share a limit, killed, stopped and cut off for longer; draws it
  mutants [ARGS]   change the engine in one place at a time, and see whether a test notices
  bench [ARGS]     rivals, floor and tidegate side by side";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            failure.exit_code()
        }
    }
}

fn run(args: &[&str]) -> Result<(), Failure> {
    match args {
        ["setup"] => setup::run(),
        ["test"] => test::run(test::Depth::Everyday),
        ["test", "--full"] => test::run(test::Depth::Full),
        ["tidy"] => tidy::run(),
        ["status"] => status::write(),
        ["readme"] => readme::run(),
        ["fuzz", rest @ ..] => fuzz::run(rest),
        ["sim", rest @ ..] => sim::run(rest),
        ["faults"] => faults::run(),
        ["mutants", rest @ ..] => mutants::run(rest),
        ["bench", rest @ ..] => bench::run(rest),
        [] | ["help" | "-h" | "--help"] => {
            println!("{USAGE}");
            Ok(())
        }
        _ => Err(Failure::Usage(format!(
            "no such task: {}\n\n{USAGE}",
            args.join(" ")
        ))),
    }
}
