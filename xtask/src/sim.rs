//! `cargo xtask sim [--seeds N] [--from N]`: random faults in simulated clusters, more of them than
//! an everyday test has time for. A seed that fails is printed; the same seed fails again.

use crate::shell::{self, Failure, cargo};

const SEEDS: &str = "2000";
const TEST: &str = "test --package tidegate-sim --test it --locked -- --ignored --nocapture";
/// Those of buckets and of windows. The everyday tests end where they begin unless it is said
/// otherwise.
const NAME: &str = "cluster::";

pub(crate) fn run(args: &[&str]) -> Result<(), Failure> {
    let mut test = cargo(TEST);
    test.arg(NAME).env("TIDEGATE_SEEDS", SEEDS);
    for pair in args.chunks(2) {
        let variable = match pair {
            ["--seeds", _] => "TIDEGATE_SEEDS",
            ["--from", _] => "TIDEGATE_FIRST_SEED",
            _ => return Err(usage()),
        };
        let number = pair.last().and_then(|number| number.parse::<u64>().ok());
        test.env(variable, number.ok_or_else(usage)?.to_string());
    }
    shell::run(&mut test)
}

fn usage() -> Failure {
    Failure::Usage("usage: cargo xtask sim [--seeds N] [--from N]".to_owned())
}
