//! What other systems answer, from `tidegate simulate`.
//!
//! Each folder of `tests/golden` is one schedule: `policy.yaml`, which names its source in its
//! first lines, `trace.jsonl`, and what the other system decides, `decisions.jsonl`, one line for
//! each request. A line there has only what that system says; what tidegate says beside it is not
//! compared. The values are the other system's own, or follow from its arithmetic: never ours.
//!
//! `delay_us` is a wait of Guava's in whole microseconds, where the exact one is none. It cuts each
//! price to a microsecond, so that its nth wait may be so many microseconds short.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::running::{text, tidegate};

// shows: A1, B3 (local), B4 (meter), B4 (nginx), B5 (greedy refill), B5 (initial permits)
// shows: B5 (interval and aligned refill), B5 (several bandwidths)
// shows: B6 (local), B7 (local), B10 (sync), G3 (simulate)
#[test]
fn simulate_decides_as_the_systems_it_is_compared_with() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut names: Vec<_> = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    names.sort();
    assert!(names.len() >= 43, "{} schedules", names.len());
    let mut faults = String::new();
    for folder in names {
        if let Err(fault) = play(&folder) {
            writeln!(faults, "{}: {fault}", folder.display()).unwrap();
        }
    }
    assert!(faults.is_empty(), "{faults}");
}

fn play(folder: &Path) -> Result<(), String> {
    let read = |name| fs::read_to_string(folder.join(name)).unwrap();
    if !read("policy.yaml").starts_with("# Source: ") {
        return Err("policy.yaml names no source".to_owned());
    }
    let output = tidegate()
        .arg("simulate")
        .arg("-c")
        .arg(folder.join("policy.yaml"))
        .args(["--decisions", "-"])
        .arg(folder.join("trace.jsonl"))
        .output()
        .unwrap();
    if !output.status.success() {
        return Err(text(&output.stderr));
    }
    let (ours, theirs) = (text(&output.stdout), read("decisions.jsonl"));
    if ours.lines().count() != theirs.lines().count() || ours.is_empty() {
        return Err("as many lines are needed as there are requests".to_owned());
    }
    for (before, (ours, theirs)) in ours.lines().zip(theirs.lines()).enumerate() {
        let decision: Value = serde_json::from_str(ours).unwrap();
        let expected: Value = serde_json::from_str(theirs).unwrap();
        let expected = expected.as_object().unwrap();
        let holds = |(field, value): (&String, &Value)| match field.as_str() {
            "delay_us" => {
                let exact = decision["delay_ns"].as_u64().unwrap();
                let cut = value.as_u64().unwrap() * 1_000;
                (cut..=cut + 1_000 * before as u64).contains(&exact)
            }
            field => decision.get(field) == Some(value),
        };
        if expected.is_empty() || !expected.iter().all(holds) {
            let line = before + 1;
            return Err(format!(
                "decision {line} is\n  {ours}\nand theirs\n  {theirs}"
            ));
        }
    }
    Ok(())
}
