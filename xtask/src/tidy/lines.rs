//! Rules about lines and files: length, marks, paths, exceptions from lints.

use super::Finding;
use super::allow::{CODE_LENGTH, FILE_LENGTH, LINE_LENGTH, LONG_FILES};
use crate::rust_text::{RustText, block_length, in_word};
use crate::tree::{Tree, has_ending, is_test, line_at};

/// Code has at most `LINE_LENGTH` columns. Prose and manifests wrap as they can, and what tests
/// feed in is as it is.
pub(super) fn line_length(tree: &Tree) -> Vec<Finding> {
    let is_code = |path: &str| {
        let written = ["yaml", "yml", "sh"]
            .iter()
            .any(|ending| has_ending(path, ending));
        has_ending(path, "rs") || path == ".ci/run" || (written && !is_test(path))
    };
    let cannot_wrap = |line: &str| {
        let comment = line.trim_start().trim_start_matches(['/', '!']);
        line.contains("://") || (line.len() > comment.len() && comment.starts_with(" |"))
    };
    let mut findings = Vec::new();
    for (path, source) in tree.files.iter().filter(|(path, _)| is_code(path)) {
        for (at, line) in source.text.lines().enumerate() {
            let length = line.chars().count();
            if length > LINE_LENGTH && !cannot_wrap(line) {
                let what = format!("{length} columns, more than {LINE_LENGTH}");
                findings.push(Finding::new(path, at + 1, &what, "wrap the line"));
            }
        }
    }
    findings
}

/// A Rust file has at most `FILE_LENGTH` lines, and at most `CODE_LENGTH` beside its tests.
pub(super) fn file_length(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source, rust) in tree.rust() {
        let all = source.text.lines().count();
        if all > FILE_LENGTH {
            let what = format!("{all} lines, more than {FILE_LENGTH}");
            findings.push(Finding::new(path, 0, &what, "split it by concept"));
        } else if !is_test(path) && !LONG_FILES.iter().any(|(long, _)| *long == path) {
            let code = all - lines_of_tests(rust);
            if code > CODE_LENGTH {
                let what = format!("{code} lines without tests, more than {CODE_LENGTH}");
                let fix = "split it by concept, or give a reason in xtask/src/tidy/allow.rs";
                findings.push(Finding::new(path, 0, &what, fix));
            }
        }
    }
    findings
}

fn lines_of_tests(rust: &RustText) -> usize {
    let kept = rust.code_without_tests();
    let pairs = rust.code.lines().zip(kept.lines());
    pairs
        .filter(|(all, kept)| kept.trim().is_empty() && !all.trim().is_empty())
        .count()
}

/// `foo.rs` beside `foo/`: the open tabs of an editor must not all be called `mod.rs`.
pub(super) fn no_mod_rs(tree: &Tree) -> Vec<Finding> {
    let named = |path: &&str| path.ends_with("/mod.rs");
    let fix = "move it to `<folder>.rs` beside the folder";
    tree.rust()
        .map(|(path, ..)| path)
        .filter(named)
        .map(|path| Finding::new(path, 0, "is a mod.rs", fix))
        .collect()
}

/// What is left for later is an issue, or is forgotten.
pub(super) fn to_do_names_an_issue(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source) in &tree.files {
        let text = match &source.rust {
            Some(rust) => &rust.comments,
            None if ["toml", "yaml", "sh"]
                .iter()
                .any(|ending| has_ending(path, ending)) =>
            {
                &source.text
            }
            None => continue,
        };
        for mark in ["TODO", "FIXME", "XXX"] {
            for (at, _) in text
                .match_indices(mark)
                .filter(|(at, _)| is_word(text, *at, mark))
            {
                let after = text[at + mark.len()..].strip_prefix("(#");
                if !after.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
                    let what = format!("{mark} without an issue");
                    let fix = format!("file one and write {mark}(#123), or do it now");
                    findings.push(Finding::new(path, line_at(text, at), &what, &fix));
                }
            }
        }
    }
    findings
}

fn is_word(text: &str, at: usize, word: &str) -> bool {
    !text[..at].ends_with(in_word) && !text[at + word.len()..].starts_with(in_word)
}

/// No file names a place of the machine that it was written on.
pub(super) fn machine_paths(tree: &Tree) -> Vec<Finding> {
    // In two halves, or this file would be its own finding.
    let places = [
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("/ho", "me/"),
        concat!("sha", "red/"),
    ];
    let in_path = |c: char| in_word(c) || ['/', '.', '-'].contains(&c);
    let mut findings = Vec::new();
    for (path, source) in &tree.files {
        for place in places {
            for (at, _) in source.text.match_indices(place) {
                if !source.text[..at].ends_with(in_path) {
                    let what = format!("names `{place}`, which only one machine has");
                    let fix = "name what is in the repository, by a relative path";
                    findings.push(Finding::new(path, line_at(&source.text, at), &what, fix));
                }
            }
        }
    }
    findings
}

/// A lint is switched off by `#[expect(..., reason = "...")]`: it says why, and goes when moot.
pub(super) fn lint_exceptions_say_why(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, _, rust) in tree.rust() {
        for (at, _) in rust.code.match_indices("[allow(") {
            let fix = "write #[expect(lint, reason = \"...\")]";
            findings.push(Finding::new(
                path,
                line_at(&rust.code, at),
                "an #[allow]",
                fix,
            ));
        }
        for (at, _) in rust.code.match_indices("[expect(") {
            let attribute = &rust.code[at..at + block_length(&rust.code[at..]).unwrap_or(0)];
            if !attribute.contains("reason") {
                let fix = "add reason = \"...\"";
                let line = line_at(&rust.code, at);
                findings.push(Finding::new(
                    path,
                    line,
                    "an #[expect] without a reason",
                    fix,
                ));
            }
        }
    }
    findings
}
