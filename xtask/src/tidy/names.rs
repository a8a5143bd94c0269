//! Rules about names: a word that fits everything names nothing.

use super::Finding;
use super::allow::{BANNED_EXCEPTIONS, BANNED_WORDS};
use crate::rust_text::in_word;
use crate::tree::{Tree, line_at};

/// What follows one of these is a name that is given here.
const KEYWORDS: &[&str] = &[
    "fn",
    "struct",
    "enum",
    "union",
    "trait",
    "mod",
    "type",
    "const",
    "static",
    "let",
    "mut",
    "macro_rules",
];

/// No file, and no item, field, argument or variable that is defined here, has a banned word in it.
pub(super) fn banned_words(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut found = |path: &str, line, name: &str, word: &str| {
        let what = format!("`{name}` has the empty word `{word}` in it");
        findings.push(Finding::new(path, line, &what, "name what it is or does"));
    };
    for path in tree.files.keys() {
        for part in path.split('/') {
            if let Some(word) = banned_in(part.split('.').next().unwrap_or(part)) {
                found(path, 0, part, word);
            }
        }
    }
    for (path, _, rust) in tree.rust() {
        for (at, name) in given_names(&rust.code) {
            if BANNED_EXCEPTIONS.iter().any(|(theirs, _)| *theirs == name) {
                continue;
            }
            if let Some(word) = banned_in(name) {
                found(path, line_at(&rust.code, at), name, word);
            }
        }
    }
    findings
}

fn banned_in(name: &str) -> Option<&'static str> {
    let words = words(name);
    let first = words.first()?;
    // "do" is empty as the first word of several (`do_work`), not anywhere.
    let banned = |word: &&&str| match **word {
        "do" => words.len() > 1 && first == "do",
        word => words
            .iter()
            .any(|part| part == word || part.strip_suffix('s') == Some(word)),
    };
    BANNED_WORDS.iter().find(banned).copied()
}

/// The words of `snake_case`, `kebab-case` and `CamelCase`, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before_lower = false;
    for c in name.chars() {
        let starts = c.is_uppercase() && before_lower;
        if !c.is_alphanumeric() || starts {
            words.push(String::new());
        }
        if c.is_alphanumeric() {
            words
                .last_mut()
                .expect("never empty")
                .extend(c.to_lowercase());
        }
        before_lower = c.is_lowercase() || c.is_numeric();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Identifiers behind a keyword, or before a single colon (fields and arguments).
fn given_names(code: &str) -> Vec<(usize, &str)> {
    let mut names = Vec::new();
    let mut before = "";
    let mut at = 0;
    while let Some(start) = code[at..].find(in_word).map(|start| at + start) {
        let length = code[start..]
            .find(|c| !in_word(c))
            .unwrap_or(code.len() - start);
        let (word, rest) = (
            &code[start..start + length],
            code[start + length..].trim_start(),
        );
        let before_colon = rest.starts_with(':') && !rest.starts_with("::");
        let is_path = code[..start].trim_end().ends_with("::");
        if !KEYWORDS.contains(&word) && (KEYWORDS.contains(&before) || before_colon && !is_path) {
            names.push((start, word));
        }
        before = if rest.starts_with('!') && word != "macro_rules" {
            ""
        } else {
            word
        };
        at = start + length;
    }
    names
}
