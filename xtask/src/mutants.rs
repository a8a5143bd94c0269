//! `cargo xtask mutants [ARGS]`: changes the engine in one small place at a time, and sees whether
//! a test notices. What is changed, what is left out and why stands in `.cargo/mutants.toml`.

use std::process::Command;

use crate::shell::{self, Failure, cargo};

/// What needs the engine alone is compiled in a third of the time, and with few cases of each
/// property notices nearly all.
const ENGINE_ALONE: &[&str] = &["--no-default-features", "--cargo-arg=--test=it"];
const FEW_CASES: &str = "100";
/// What has gone unnoticed meets every test.
const ALL: &[&str] = &[
    "--iterate",
    "--cargo-arg=--lib",
    "--cargo-arg=--test=it",
    "--cargo-arg=--test=conformance",
];

/// Arguments go to cargo-mutants: `--file PATTERN` names files, `--list` only shows what would be
/// changed.
pub(crate) fn run(args: &[&str]) -> Result<(), Failure> {
    if !shell::works(&mut cargo("mutants --version")) {
        shell::run(&mut cargo("install cargo-mutants --locked"))?;
    }
    let mut first = mutants(ENGINE_ALONE);
    shell::run(first.env("TIDEGATE_CASES", FEW_CASES).args(args))
        .or_else(|_| shell::run(mutants(ALL).args(args)))
}

fn mutants(tests: &[&str]) -> Command {
    let mut mutants = cargo("mutants --package tidegate --jobs 1 --output target/mutants");
    // That a property fails is enough: nobody reads the smallest case, and a case that is kept
    // would help to catch the next one.
    mutants.env("PROPTEST_MAX_SHRINK_TIME", "1");
    mutants.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1");
    mutants.args(tests);
    mutants
}
