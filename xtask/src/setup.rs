//! `cargo xtask setup`: what the tests start and call, installed where that is possible.
//!
//! Debian starts nginx, Redis and HAProxy as services only where systemd runs; the tests never use
//! those, they start their own on free ports.

use std::path::Path;

use crate::shell::{self, Failure, cargo, command};

/// Program and the Debian package that brings it.
const PROGRAMS: &[(&str, &str)] = &[
    ("curl", "curl"),
    ("haproxy", "haproxy"),
    ("nginx", "nginx"),
    ("openssl", "openssl"),
    ("redis-server", "redis-server"),
    ("wrk", "wrk"),
];

pub(crate) fn run() -> Result<(), Failure> {
    let missing: Vec<&str> = PROGRAMS
        .iter()
        .filter(|(program, _)| !shell::installed(program))
        .map(|(_, package)| *package)
        .collect();
    if missing.is_empty() {
        println!("everything that the tests start is installed");
    } else {
        install(&missing)?;
    }
    components();
    Ok(())
}

fn install(packages: &[&str]) -> Result<(), Failure> {
    let line = format!(
        "apt-get update && apt-get install -y {}",
        packages.join(" ")
    );
    if !shell::installed("apt-get") {
        let names = packages.join(", ");
        return Err(Failure::Usage(format!(
            "install these first (Debian's names): {names}"
        )));
    }
    if !is_root() {
        return Err(Failure::Usage(format!(
            "programs are missing; run this line first:\nsudo sh -c '{line}'"
        )));
    }
    let mut apt = command("sh", &["-c", &line]);
    shell::run(apt.env("DEBIAN_FRONTEND", "noninteractive"))
}

/// rustfmt and clippy come with rustup's default profile; a minimal one lacks them.
fn components() {
    for (tool, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if shell::works(cargo(tool).arg("--version")) {
            continue;
        }
        if shell::run(&mut command("rustup", &["component", "add", component])).is_err() {
            println!("`cargo {tool}` is missing and could not be installed; its step will fail");
        }
    }
    if !shell::works(&mut cargo("nextest --version")) {
        println!("cargo-nextest is not installed: tests run with `cargo test`");
    }
}

fn is_root() -> bool {
    // Nothing in std tells the user id; on Linux /proc/self belongs to it.
    std::fs::metadata(Path::new("/proc/self"))
        .is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}
