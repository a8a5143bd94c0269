//! `cargo xtask mutants [ARGS]`: changes the engine in one small place at a time, and sees whether
//! a test notices. What is changed, what is left out and why stands in `.cargo/mutants.toml`.

use crate::shell::{self, Failure, cargo};

/// Arguments go to cargo-mutants: `--file PATTERN` names files, `--list` only shows what would be
/// changed, `--iterate` leaves out what an earlier run caught.
pub(crate) fn run(args: &[&str]) -> Result<(), Failure> {
    if !shell::works(&mut cargo("mutants --version")) {
        shell::run(&mut cargo("install cargo-mutants --locked"))?;
    }
    let mut mutants = cargo("mutants --package tidegate --jobs 1 --output target/mutants");
    // That a property fails is enough: nobody reads the smallest case, and a case that is kept
    // would help to catch the next one.
    mutants.env("PROPTEST_MAX_SHRINK_TIME", "1");
    mutants.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1");
    shell::run(mutants.args(args))
}
