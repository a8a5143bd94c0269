//! Dead files: Rust source that no target compiles.

use std::collections::BTreeSet;

use super::Finding;
use crate::metadata::Package;
use crate::rust_text::in_word;
use crate::tree::{Source, Tree};

/// Each `.rs` file of a package is a target or is named by a `mod` of one that is reached.
pub(super) fn dead_files(tree: &Tree, packages: &[Package]) -> Vec<Finding> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<(String, bool)> = packages
        .iter()
        .flat_map(|package| package.targets.iter().map(|path| (path.clone(), true)))
        .collect();
    while let Some((path, is_root)) = open.pop() {
        let Some(source) = tree.files.get(&path) else {
            continue;
        };
        if reached.insert(path.clone()) {
            let modules = modules(source);
            open.extend(
                modules
                    .iter()
                    .map(|module| (module.file(&path, is_root), false)),
            );
        }
    }
    let ours = |path: &&str| {
        packages
            .iter()
            .any(|package| path.starts_with(&format!("{}/", package.folder)))
    };
    tree.rust()
        .map(|(path, ..)| path)
        .filter(ours)
        .filter(|path| !reached.contains(*path))
        .map(|path| {
            Finding::new(
                path,
                0,
                "is compiled by no target",
                "name it in a `mod`, or delete it",
            )
        })
        .collect()
}

/// `mod name;`, with the path of a `#[path]` before it.
struct Module<'a> {
    name: &'a str,
    path: Option<&'a str>,
}

impl Module<'_> {
    /// Where the module's file is (nowhere else: there is no `mod.rs`).
    fn file(&self, parent: &str, is_root: bool) -> String {
        let (folder, file) = parent.rsplit_once('/').unwrap_or(("", parent));
        if let Some(path) = self.path {
            return resolve(folder, path);
        }
        let stem = file.trim_end_matches(".rs");
        let name = self.name;
        if is_root {
            format!("{folder}/{name}.rs")
        } else {
            format!("{folder}/{stem}/{name}.rs")
        }
    }
}

/// Joins, with `..` resolved.
fn resolve(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').collect();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn modules(source: &Source) -> Vec<Module<'_>> {
    let Some(rust) = &source.rust else {
        return Vec::new();
    };
    let code = rust.code.as_str();
    let mut modules = Vec::new();
    for (at, _) in code.match_indices("mod ") {
        let rest = code[at + "mod ".len()..].trim_start();
        let length = rest.find(|c| !in_word(c)).unwrap_or(rest.len());
        if code[..at].ends_with(in_word) || !rest[length..].trim_start().starts_with(';') {
            continue;
        }
        // Attributes reach back to the end of what stands before.
        let start = code[..at].rfind([';', '{', '}']).map_or(0, |end| end + 1);
        let attributes = &source.text[start..at];
        let path = attributes
            .split_once("#[path = \"")
            .and_then(|(_, path)| path.split_once('"'))
            .map(|(path, _)| path);
        modules.push(Module {
            name: &rest[..length],
            path,
        });
    }
    modules
}
