//! `cargo xtask test`: everything that must hold before a change lands, in the order in which a
//! fault is found soonest.

use std::process::Command;

use crate::metadata::{self, Package};
use crate::shell::{self, Failure, cargo};
use crate::steps::{Done, Steps};
use crate::{fuzz, readme, setup, tidy};

/// How many cases a property runs in `--full` (proptest's own default is 256).
const FULL_CASES: &str = "20000";

/// Tests that want the machine to themselves (they measure a rate) begin their name with this.
const ALONE: &str = "alone_";

/// How much is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// What each change must pass.
    Everyday,
    /// That, with ignored tests, longer property runs and the fuzz targets' build.
    Full,
}

pub(crate) fn run(depth: Depth) -> Result<(), Failure> {
    let mut steps = Steps::default();
    if steps.step("setup", || passed(setup::run())) {
        check(&mut steps, depth);
    }
    steps.finish()
}

fn check(steps: &mut Steps, depth: Depth) {
    steps.step("fmt", || {
        passed(shell::run(&mut cargo(&["fmt", "--all", "--check"])))
    });
    steps.step("tidy", || passed(tidy::run()));
    steps.step("deny", deny);
    let clippy = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ];
    steps.step("clippy", || passed(shell::run(&mut cargo(&clippy))));
    // What does not compile fails once here, not once in each step below.
    if !steps.step("build", || {
        passed(shell::run(&mut cargo(&["build", "--locked"])))
    }) {
        return;
    }
    steps.step("tests", || tests(depth));
    let doctests = ["test", "--doc", "--workspace", "--locked"];
    steps.step("doc tests", || passed(shell::run(&mut cargo(&doctests))));
    steps.step("rustdoc", || {
        let mut doc = cargo(&["doc", "--workspace", "--no-deps", "--locked"]);
        passed(shell::run(doc.env("RUSTDOCFLAGS", "-D warnings")))
    });
    steps.step("features", features);
    steps.step("loom", || loom(depth));
    steps.step("readme", readme::step);
    if depth == Depth::Full {
        steps.step("fuzz build", || {
            if !fuzz::has_nightly() {
                return Ok(Done::Skipped("no nightly toolchain".to_owned()));
            }
            passed(fuzz::build())
        });
    }
}

fn passed(result: Result<(), Failure>) -> Result<Done, Failure> {
    result.map(|()| Done::Passed)
}

fn deny() -> Result<Done, Failure> {
    if !shell::works(&mut cargo(&["deny", "--version"])) {
        return Ok(Done::Skipped("cargo-deny is not installed".to_owned()));
    }
    // Advisories need a git database, which not every machine reaches.
    passed(shell::run(&mut cargo(&[
        "deny", "--locked", "check", "bans", "licenses", "sources",
    ])))
}

fn tests(depth: Depth) -> Result<Done, Failure> {
    if shell::works(&mut cargo(&["nextest", "--version"])) {
        let mut nextest = cargo(&[
            "nextest",
            "run",
            "--workspace",
            "--locked",
            "--no-fail-fast",
        ]);
        if depth == Depth::Full {
            nextest.args(["--run-ignored", "all"]);
        }
        return passed(shell::run(cases(&mut nextest, depth)));
    }
    let kinds = ["--lib", "--bins", "--tests", "--examples", "--no-fail-fast"];
    let ignored: &[&str] = if depth == Depth::Full {
        &["--include-ignored"]
    } else {
        &[]
    };
    let test = || {
        let mut test = cargo(&["test", "--workspace", "--locked"]);
        test.args(kinds);
        test
    };
    let mut together = test();
    together.args(["--", "--skip", ALONE]).args(ignored);
    let mut alone = test();
    alone
        .args(["--", ALONE, "--test-threads", "1"])
        .args(ignored);
    let together = shell::run(cases(&mut together, depth));
    shell::run(cases(&mut alone, depth))?;
    passed(together)
}

/// Properties read how long they shall run from these.
fn cases(command: &mut Command, depth: Depth) -> &mut Command {
    if depth == Depth::Full {
        command
            .env("PROPTEST_CASES", FULL_CASES)
            .env("TIDEGATE_CASES", FULL_CASES);
    }
    command
}

/// Each feature of each package by itself, and none.
fn features() -> Result<Done, Failure> {
    for package in metadata::packages()? {
        for feature in [None].into_iter().chain(package.features.iter().map(Some)) {
            if package.features.is_empty() {
                continue;
            }
            let mut clippy = cargo(&["clippy", "--quiet", "--locked", "--no-default-features"]);
            clippy.args(["--package", &package.name]);
            if let Some(feature) = feature {
                clippy.args(["--features", feature]);
            }
            shell::run(clippy.args(["--", "-D", "warnings"]))?;
        }
    }
    Ok(Done::Passed)
}

/// The packages that know loom, compiled for it; their interleaving tests are named `loom_*`.
fn loom(depth: Depth) -> Result<Done, Failure> {
    let uses_loom = |package: &Package| {
        package
            .dependencies
            .iter()
            .chain(&package.dev_dependencies)
            .any(|name| name == "loom")
    };
    let packages: Vec<Package> = metadata::packages()?
        .into_iter()
        .filter(uses_loom)
        .collect();
    if packages.is_empty() {
        return Ok(Done::Skipped("no package has loom tests".to_owned()));
    }
    for package in packages {
        // Another cfg is another build of everything: kept apart, or the two would evict each other.
        let mut test = cargo(&[
            "test",
            "--release",
            "--locked",
            "--target-dir",
            "target/loom",
        ]);
        test.args(["--package", &package.name, "--lib", "loom_"]);
        test.env("RUSTFLAGS", "--cfg loom");
        if depth == Depth::Everyday {
            test.env("LOOM_MAX_PREEMPTIONS", "3");
        }
        shell::run(&mut test)?;
    }
    Ok(Done::Passed)
}
