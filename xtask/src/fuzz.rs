//! `cargo xtask fuzz [SECONDS] [TARGET]`: each target of `fuzz/` for a while, with what it found
//! before (`fuzz/corpus`, not committed) and the seeds that are committed (`fuzz/seeds`).

use std::fs;

use crate::shell::{self, Failure, cargo, command, root};

const SECONDS: u64 = 60;
/// An input larger than this finds nothing that a smaller one does not.
const LONGEST_INPUT: usize = 16 * 1024;
/// One input that takes longer than this is a fault, seconds.
const LONGEST_CALL: u64 = 10;
const MOST_MEMORY_MB: usize = 2048;

pub(crate) fn run(args: &[&str]) -> Result<(), Failure> {
    let (seconds, only) = parse(args)?;
    tools()?;
    let targets: Vec<String> = targets()?
        .into_iter()
        .filter(|name| only.is_none_or(|only| only == name))
        .collect();
    if targets.is_empty() {
        return Err(Failure::Usage(
            "fuzz/fuzz_targets has no such target".to_owned(),
        ));
    }
    let mut failed = Vec::new();
    for target in &targets {
        println!("\n=== fuzz {target}, {seconds} s");
        if let Err(failure) = fuzz(target, seconds) {
            println!("{failure}");
            failed.push(target.as_str());
        }
    }
    println!(
        "fuzz: {} passed, {} failed",
        targets.len() - failed.len(),
        failed.len()
    );
    if failed.is_empty() {
        return Ok(());
    }
    let names = failed.join(", ");
    Err(Failure::Failed(format!(
        "{names}: the input is in fuzz/artifacts; keep it as a seed"
    )))
}

/// Compiles the targets without running them.
pub(crate) fn build() -> Result<(), Failure> {
    tools()?;
    shell::run(&mut cargo("+nightly fuzz build"))
}

/// Whether this machine has the toolchain that fuzzing needs.
pub(crate) fn has_nightly() -> bool {
    shell::works(&mut command("cargo", &["+nightly", "--version"]))
}

fn parse<'a>(args: &[&'a str]) -> Result<(u64, Option<&'a str>), Failure> {
    let wrong = || Failure::Usage("usage: cargo xtask fuzz [SECONDS] [TARGET]".to_owned());
    match args {
        [] => Ok((SECONDS, None)),
        [one] => Ok(one
            .parse()
            .map_or((SECONDS, Some(*one)), |seconds| (seconds, None))),
        [seconds, target] => Ok((seconds.parse().map_err(|_| wrong())?, Some(*target))),
        _ => Err(wrong()),
    }
}

fn tools() -> Result<(), Failure> {
    if !has_nightly() {
        let text = "fuzzing needs Rust's nightly: rustup toolchain install nightly";
        return Err(Failure::Usage(text.to_owned()));
    }
    if !shell::installed("c++") {
        return Err(Failure::Usage(
            "libFuzzer needs a C++ compiler: apt-get install g++".to_owned(),
        ));
    }
    if shell::works(&mut cargo("fuzz --version")) {
        return Ok(());
    }
    shell::run(&mut cargo("install cargo-fuzz --locked"))
}

fn targets() -> Result<Vec<String>, Failure> {
    let folder = root().join("fuzz/fuzz_targets");
    let entries = fs::read_dir(&folder)
        .map_err(|error| Failure::Usage(format!("fuzz/fuzz_targets cannot be read: {error}")))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".rs").map(str::to_owned))
        .collect();
    names.sort();
    Ok(names)
}

fn fuzz(target: &str, seconds: u64) -> Result<(), Failure> {
    // libFuzzer writes what it finds into the first folder and only reads the second.
    let (corpus, seeds) = (
        format!("fuzz/corpus/{target}"),
        format!("fuzz/seeds/{target}"),
    );
    for folder in [&corpus, &seeds] {
        fs::create_dir_all(root().join(folder))
            .map_err(|error| Failure::Failed(format!("cannot make {folder}: {error}")))?;
    }
    let mut command = cargo("+nightly fuzz run");
    command.args([target, &corpus, &seeds, "--"]);
    command.arg(format!("-max_total_time={seconds}"));
    command.arg(format!("-max_len={LONGEST_INPUT}"));
    command.arg(format!("-timeout={LONGEST_CALL}"));
    command.arg(format!("-rss_limit_mb={MOST_MEMORY_MB}"));
    command.arg("-print_final_stats=1");
    shell::run(&mut command)
}
