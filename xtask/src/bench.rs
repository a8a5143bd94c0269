//! `cargo xtask bench`: the `bench` crate, in release.

use crate::shell::{self, Failure, cargo};

pub(crate) fn run(args: &[&str]) -> Result<(), Failure> {
    let mut command = cargo("run --release --locked --package tidegate-bench --");
    shell::run(command.args(args))
}
