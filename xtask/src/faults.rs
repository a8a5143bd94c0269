//! `cargo xtask faults`: faults of real processes that an everyday test has no time for, and the
//! guide's picture of them, drawn from such a run.

use crate::shell::{self, Failure, cargo};

const TEST: &str = "test --package tidegate-sim --test redis --locked -- --ignored --nocapture \
                    --test-threads 1 faults::";

pub(crate) fn run() -> Result<(), Failure> {
    let pictures = shell::root().join("docs/guide/pictures");
    shell::run(cargo(TEST).env("TIDEGATE_PICTURES", pictures))
}
