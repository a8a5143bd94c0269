//! `cargo xtask bench`: the `bench` crate, in release.

use crate::shell::{self, Failure, cargo};

pub(crate) fn run(args: &[&str]) -> Result<(), Failure> {
    // The gateway's rows start the binary that stands beside the benchmark.
    shell::run(&mut cargo(
        "build --release --locked --package tidegate-server",
    ))?;
    let mut command = cargo("run --release --locked --package tidegate-bench --");
    shell::run(command.args(args))
}
