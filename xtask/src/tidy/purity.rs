//! Rules that keep deciding apart from clocks, sockets and wire formats.

use super::Finding;
use super::allow::{DOORS, EDGES, OWN_LIMIT, OWN_LIMIT_FILES, PURE, SECONDS, WIRE};
use crate::rust_text::{RustText, in_word};
use crate::tree::{Tree, is_test, line_at};

const BAN: &str = "clippy::disallowed_methods";

/// Pure crates deny clippy's ban list as a whole, await nothing, and make exceptions only in the
/// files that are listed as their edge.
pub(super) fn pure_modules(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for folder in PURE {
        let library = format!("{folder}/src/lib.rs");
        let denies = |rust: &RustText| rust.code.contains(&format!("#![deny({BAN})]"));
        let source = tree
            .files
            .get(&library)
            .and_then(|source| source.rust.as_ref());
        if source.is_some_and(|rust| !denies(rust)) {
            let what = "does not deny clippy's list of impure calls";
            findings.push(Finding::new(
                &library,
                0,
                what,
                &format!("add #![deny({BAN})]"),
            ));
        }
    }
    let pure = |path: &str| {
        PURE.iter()
            .any(|folder| path.starts_with(&format!("{folder}/src/")))
            && !is_test(path)
            && !EDGES.iter().any(|(edge, _)| *edge == path)
    };
    for (path, _, rust) in tree.rust().filter(|(path, ..)| pure(path)) {
        let code = rust.code_without_tests();
        for impure in ["async", "await", BAN] {
            for (at, _) in code.match_indices(impure) {
                let whole = !code[at + impure.len()..].starts_with(in_word)
                    && !code[..at].ends_with(in_word);
                let is_deny = code[..at].ends_with("deny(");
                if whole && !is_deny {
                    let what = format!("`{impure}` in a pure module");
                    let fix = "take time as an argument and answer with a delay; \
                               the edge is listed in xtask/src/tidy/allow.rs";
                    findings.push(Finding::new(path, line_at(&code, at), &what, fix));
                }
            }
        }
    }
    findings
}

/// Seconds on the wire come from one function, `whole_seconds_up`, and from nowhere else.
pub(super) fn one_rounding(tree: &Tree) -> Vec<Finding> {
    let defines = "fn whole_seconds_up";
    let homes: Vec<&str> = tree
        .rust()
        .filter(|(path, _, rust)| !is_test(path) && rust.code.contains(defines))
        .map(|(path, ..)| path)
        .collect();
    let mut findings = Vec::new();
    if homes.len() != 1 {
        let what = format!("`{defines}` is defined {} times", homes.len());
        let fix = "seconds on the wire are rounded in one function";
        findings.push(Finding::new(
            homes.last().unwrap_or(&"crates/tidegate-http"),
            0,
            &what,
            fix,
        ));
    }
    let theirs = |path: &str| {
        WIRE.iter().any(|folder| path.starts_with(folder))
            && !is_test(path)
            && !homes.contains(&path)
            && !SECONDS.iter().any(|(file, _)| *file == path)
    };
    for (path, _, rust) in tree.rust().filter(|(path, ..)| theirs(path)) {
        let code = rust.code_without_tests();
        for rounding in [".as_secs", "::as_secs", "/ 1_000_000_000", "subsec_"] {
            for (at, _) in code.match_indices(rounding) {
                let what = format!("`{rounding}` where seconds may reach a wire");
                let fix = "call whole_seconds_up, or give a reason in xtask/src/tidy/allow.rs";
                findings.push(Finding::new(path, line_at(&code, at), &what, fix));
            }
        }
    }
    findings
}

/// A door translates: it makes no limit of its own.
pub(super) fn doors_hold_no_limit(tree: &Tree) -> Vec<Finding> {
    let door = |path: &str| {
        DOORS.iter().any(|folder| path.starts_with(folder))
            && !is_test(path)
            && !OWN_LIMIT_FILES.iter().any(|(file, _)| *file == path)
    };
    let mut findings = Vec::new();
    for (path, _, rust) in tree.rust().filter(|(path, ..)| door(path)) {
        let code = rust.code_without_tests();
        for own in OWN_LIMIT {
            for (at, _) in code.match_indices(own) {
                if code[..at].ends_with(in_word) {
                    continue;
                }
                let what = format!("`{own}` in a door");
                let fix = "ask the node: limits come from the policy";
                findings.push(Finding::new(path, line_at(&code, at), &what, fix));
            }
        }
    }
    findings
}
