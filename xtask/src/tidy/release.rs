//! Rules about what a person meets first: the lock file and the README.

use super::Finding;
use super::allow::README_LENGTH;
use crate::metadata::Package;
use crate::tree::{Tree, line_at};

const README: &str = "README.md";

/// The binary is built from a committed lock file.
pub(super) fn lock_is_committed(tree: &Tree) -> Vec<Finding> {
    if tree.text("Cargo.lock").is_some() {
        return Vec::new();
    }
    vec![Finding::new(
        "Cargo.lock",
        0,
        "is not committed",
        "git add Cargo.lock",
    )]
}

pub(super) fn readme_length(tree: &Tree) -> Vec<Finding> {
    let Some(text) = tree.text(README) else {
        return vec![Finding::new(README, 0, "is missing", "write it")];
    };
    let length = text.lines().count();
    if length <= README_LENGTH {
        return Vec::new();
    }
    let what = format!("{length} lines, more than {README_LENGTH}");
    vec![Finding::new(
        README,
        0,
        &what,
        "move what is not needed first to docs/guide",
    )]
}

/// Versions that the README names are those of the manifests: `Rust 1.xx` and `tidegate = "x.y"`.
pub(super) fn readme_versions(tree: &Tree, packages: &[Package]) -> Vec<Finding> {
    let text = tree.text(README).unwrap_or_default();
    let Some(engine) = packages.iter().find(|package| package.name == "tidegate") else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for (before, actual) in [
        ("Rust ", &engine.rust_version),
        ("tidegate = \"", &engine.version),
    ] {
        for (at, _) in text.match_indices(before) {
            let rest = &text[at + before.len()..];
            let length = rest
                .find(|c: char| !c.is_ascii_digit() && c != '.')
                .unwrap_or(rest.len());
            let named = rest[..length].trim_end_matches('.');
            if !named.is_empty() && !is_version(named, actual) {
                let what = format!("says `{before}{named}`; Cargo.toml says {actual}");
                let line = line_at(text, at);
                findings.push(Finding::new(
                    README,
                    line,
                    &what,
                    "write Cargo.toml's version",
                ));
            }
        }
    }
    findings
}

/// `0.1` and `0.1.0` are both the version 0.1.0.
fn is_version(named: &str, actual: &str) -> bool {
    actual
        .strip_prefix(named)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
