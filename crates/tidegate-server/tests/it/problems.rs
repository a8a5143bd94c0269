//! What `policy check` says, to the letter, of policies that `serve` does not run.
//!
//! Each `problems/NAME.yaml` is checked, and what comes out is `problems/NAME.txt`. To write these
//! anew, run the tests with `TIDEGATE_BLESS=1` and read the difference.

use std::fs;
use std::path::{Path, PathBuf};

use crate::running::{text, tidegate};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/problems")
}

/// The status of a command in that folder, and what it says to people.
fn said(arguments: &[&str]) -> (Option<i32>, String) {
    let output = tidegate().current_dir(folder()).args(arguments).output();
    let output = output.unwrap();
    (output.status.code(), text(&output.stderr))
}

// shows: F1 (file)
#[test]
fn what_serve_refuses_is_refused_by_check_with_the_same_words() {
    let bless = std::env::var_os("TIDEGATE_BLESS").is_some();
    let paths = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let policies = paths.filter(|path| path.extension().is_some_and(|of| of == "yaml"));
    let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    let mut names: Vec<_> = policies.map(name).collect();
    names.sort();
    assert!(names.len() > 5);
    for name in names {
        let (status, checked) = said(&["policy", "check", &name]);
        let (served, why) = said(&["serve", "-c", &name]);
        assert_eq!(served, Some(2), "{name}: {why}");
        if name == "redis-files.yaml" || name == "redis-not-pem.yaml" {
            // They may be on another machine.
            assert_eq!(status, Some(0), "{name}: {checked}");
            let checked = checked.replace("warning: ", "error: ");
            assert_eq!(why.replace("\n\n", "\n"), checked, "{name}");
        } else {
            assert_eq!(status, Some(1), "{name}: {checked}");
            assert_eq!(why, checked, "{name}");
        }
        assert!(!checked.contains("secret"), "{name}: {checked}");
        let path = folder().join(name.replace(".yaml", ".txt"));
        if bless {
            fs::write(&path, &checked).unwrap();
        }
        let written = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(checked, written, "{name}");
    }
}
