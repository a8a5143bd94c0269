//! The programs of `src/bin`.

use std::process::Command;

/// Each checks itself, and ends with status 0.
#[test]
fn each_example_runs() {
    for program in [
        env!("CARGO_BIN_EXE_one_key"),
        env!("CARGO_BIN_EXE_per_client"),
        env!("CARGO_BIN_EXE_concurrency"),
        env!("CARGO_BIN_EXE_several_limits"),
        env!("CARGO_BIN_EXE_manual_clock"),
        env!("CARGO_BIN_EXE_pace"),
        env!("CARGO_BIN_EXE_axum_per_client"),
        env!("CARGO_BIN_EXE_bulkhead"),
        env!("CARGO_BIN_EXE_weighted"),
    ] {
        let output = Command::new(program).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program}: {errors}");
        assert!(!output.stdout.is_empty(), "{program} says nothing");
    }
}
