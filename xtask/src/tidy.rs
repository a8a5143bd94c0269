//! `cargo xtask tidy`: what the source tree as a whole must hold and no compiler checks.
//!
//! Each rule is one small function from the tree (or from what cargo knows) to findings; its
//! exceptions stand in `allow.rs`, each with a reason. `tidy/tests.rs` shows each rule failing on
//! a made-up tree.

mod allow;
mod graph;
mod lines;
mod names;
mod purity;
mod reach;
mod release;

use std::fmt;

use crate::metadata::{self, Package};
use crate::shell::{self, Failure, cargo};
use crate::status;
use crate::tree::Tree;

/// Something that must be mended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    path: String,
    /// Counted from 1; 0 for the file as a whole.
    line: usize,
    what: String,
    /// What to do about it.
    fix: String,
}

impl Finding {
    pub(crate) fn new(path: &str, line: usize, what: &str, fix: &str) -> Self {
        let owned = str::to_owned;
        Self {
            path: owned(path),
            line,
            what: owned(what),
            fix: owned(fix),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": {}\n    {}", self.what, self.fix)
    }
}

type TextRule = fn(&Tree) -> Vec<Finding>;
type PackageRule = fn(&Tree, &[Package]) -> Vec<Finding>;

/// Rules that need only the text of the tree.
const TEXT_RULES: &[TextRule] = &[
    lines::line_length,
    lines::file_length,
    lines::no_mod_rs,
    lines::to_do_names_an_issue,
    lines::machine_paths,
    lines::lint_exceptions_say_why,
    names::banned_words,
    purity::pure_modules,
    purity::one_rounding,
    purity::doors_hold_no_limit,
    release::lock_is_committed,
    release::readme_length,
    status::check_markers,
    status::check_fresh,
];

/// Rules about the workspace's packages.
const PACKAGE_RULES: &[PackageRule] = &[
    graph::crate_graph,
    graph::folder_is_name,
    graph::file_formats,
    graph::lints_are_inherited,
    reach::dead_files,
    release::readme_versions,
];

pub(crate) fn run() -> Result<(), Failure> {
    let tree = Tree::read()?;
    let packages = metadata::packages()?;
    let mut findings: Vec<Finding> = TEXT_RULES.iter().flat_map(|rule| rule(&tree)).collect();
    findings.extend(PACKAGE_RULES.iter().flat_map(|rule| rule(&tree, &packages)));
    let engine = shell::output(&mut cargo(graph::ENGINE_TREE))?;
    findings.extend(graph::engine_budget(&engine));

    findings.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    for finding in &findings {
        println!("{finding}");
    }
    let files = tree.files.len();
    let rules = TEXT_RULES.len() + PACKAGE_RULES.len() + 1;
    println!(
        "tidy: {rules} rules, {files} files, {} findings",
        findings.len()
    );
    if findings.is_empty() {
        return Ok(());
    }
    Err(Failure::Failed(format!(
        "tidy has {} findings",
        findings.len()
    )))
}

#[cfg(test)]
mod tests;
