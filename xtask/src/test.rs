//! `cargo xtask test`: everything that must hold before a change lands, in the order in which a
//! fault is found soonest.

use std::process::Command;

use crate::metadata::{self, Package};
use crate::shell::{self, Failure, cargo};
use crate::steps::{Done, Steps};
use crate::tree::Tree;
use crate::{fuzz, readme, setup, tidy};

/// How many cases a property runs in `--full` (proptest's own default is 256).
const FULL_CASES: &str = "10000";

/// Tests that want the machine to themselves (they measure a rate) begin their name with this;
/// `.config/nextest.toml` says the same to nextest.
const ALONE: &str = "alone_";

/// How many preemptions loom tries per run of an everyday test; more of them are rarely needed to
/// show a fault and cost exponentially.
const LOOM_PREEMPTIONS: &str = "3";

/// How many schedules of each kind shuttle tries per run of a full test.
const FULL_SCHEDULES: &str = "100000";

/// How much is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// What each change must pass.
    Everyday,
    /// That, with ignored tests, longer property runs and the fuzz targets' build.
    Full,
}

pub(crate) fn run(depth: Depth) -> Result<(), Failure> {
    setup::run()?;
    let mut steps = Steps::default();
    check(&mut steps, depth);
    steps.finish()
}

fn check(steps: &mut Steps, depth: Depth) {
    steps.step("fmt", || run_cargo("fmt --all --check"));
    steps.step("tidy", || passed(tidy::run()));
    steps.step("deny", deny);
    // What does not compile fails once here, not once in each step below.
    if !steps.step("build", || run_cargo("build --locked")) {
        return;
    }
    steps.step("clippy", || {
        run_cargo("clippy --workspace --all-targets --locked --keep-going -- -D warnings")
    });
    steps.step("features", features);
    steps.step("tests", || tests(depth));
    steps.step("doc tests", || run_cargo("test --doc --workspace --locked"));
    steps.step("rustdoc", || {
        let mut doc = cargo("doc --workspace --no-deps --locked");
        passed(shell::run(doc.env("RUSTDOCFLAGS", "-D warnings")))
    });
    steps.step("loom", || {
        let preemptions = (depth == Depth::Everyday).then_some(LOOM_PREEMPTIONS);
        interleavings("loom", "LOOM_MAX_PREEMPTIONS", preemptions)
    });
    steps.step("shuttle", || {
        let schedules = (depth == Depth::Full).then_some(FULL_SCHEDULES);
        interleavings("shuttle", "TIDEGATE_SCHEDULES", schedules)
    });
    steps.step("readme", readme::step);
    if depth == Depth::Full {
        steps.step("fuzz build", fuzz_build);
    }
}

fn passed(result: Result<(), Failure>) -> Result<Done, Failure> {
    result.map(|()| Done::Passed)
}

fn run_cargo(words: &str) -> Result<Done, Failure> {
    passed(shell::run(&mut cargo(words)))
}

fn deny() -> Result<Done, Failure> {
    if !shell::works(&mut cargo("deny --version")) {
        return Ok(Done::Skipped("cargo-deny is not installed".to_owned()));
    }
    // Advisories need a git database, which not every machine reaches.
    run_cargo("deny --locked --log-level error check bans licenses sources")
}

fn tests(depth: Depth) -> Result<Done, Failure> {
    let full = depth == Depth::Full;
    if shell::works(&mut cargo("nextest --version")) {
        let ignored = if full { "--run-ignored all" } else { "" };
        let words = format!("nextest run --workspace --locked --no-fail-fast {ignored}");
        return passed(shell::run(cases(&mut cargo(&words), depth)));
    }
    let test = "test --workspace --locked --no-fail-fast --lib --bins --tests --examples --";
    let ignored = if full { "--include-ignored" } else { "" };
    let together = format!("{test} --skip {ALONE} {ignored}");
    let alone = format!("{test} {ALONE} --test-threads 1 {ignored}");
    let together = shell::run(cases(&mut cargo(&together), depth));
    shell::run(cases(&mut cargo(&alone), depth))?;
    passed(together)
}

/// Properties read from these how long they shall run.
fn cases(command: &mut Command, depth: Depth) -> &mut Command {
    if depth == Depth::Full {
        command.env("PROPTEST_CASES", FULL_CASES);
        command.env("TIDEGATE_CASES", FULL_CASES);
    }
    command
}

/// Each optional feature of each package by itself, and none.
fn features() -> Result<Done, Failure> {
    for Package { name, features, .. } in metadata::packages()? {
        let optional = features.iter().filter(|feature| *feature != "default");
        let sets = optional.map(|feature| format!("--features {feature}"));
        let none = (!features.is_empty()).then(String::new);
        for set in none.into_iter().chain(sets) {
            let words = format!("clippy --package {name} --locked --no-default-features {set}");
            run_cargo(&format!("{words} -- -D warnings"))?;
        }
    }
    Ok(Done::Passed)
}

/// The packages with interleaving tests (named `loom_*` or `shuttle_*`), compiled for that model;
/// `much` says in the variable how much of it they try, where not what goes without saying.
fn interleavings(model: &str, variable: &str, much: Option<&str>) -> Result<Done, Failure> {
    let tree = Tree::read()?;
    let test = format!("fn {model}_");
    let has_tests = |package: &Package| {
        let sources = format!("{}/src/", package.folder);
        let mut own = tree.rust().filter(|(path, ..)| path.starts_with(&sources));
        own.any(|(_, _, rust)| rust.code.contains(&test))
    };
    let mut packages = metadata::packages()?;
    packages.retain(has_tests);
    if packages.is_empty() {
        return Ok(Done::Skipped(format!(
            "no package has tests named {model}_*"
        )));
    }
    for Package { name, .. } in packages {
        // Another cfg is another build of everything: apart, or each would evict the other.
        let words = format!("test --package {name} --lib --release --target-dir target/{model}");
        let mut test = cargo(&format!("{words} --locked {model}_"));
        test.env("RUSTFLAGS", format!("--cfg {model}"));
        if let Some(much) = much {
            test.env(variable, much);
        }
        shell::run(&mut test)?;
    }
    Ok(Done::Passed)
}

fn fuzz_build() -> Result<Done, Failure> {
    if !fuzz::has_nightly() {
        return Ok(Done::Skipped("no nightly toolchain".to_owned()));
    }
    passed(fuzz::build())
}
