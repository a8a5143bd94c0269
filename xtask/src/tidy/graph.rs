//! Rules about packages: who may use whom, and what the engine may cost.

use std::collections::BTreeSet;

use super::Finding;
use super::allow::{
    CRATE_GRAPH, ENGINE_ALL, ENGINE_DIRECT, FORMAT_OWNER, FORMATS, NEEDS_C, USE_ANY,
};
use crate::metadata::Package;
use crate::tree::Tree;

/// What `engine_budget` reads: the engine's dependencies by its default features.
pub(super) const ENGINE_TREE: &str =
    "tree --package=tidegate --locked --edges=no-dev --prefix=depth --format={p}";

/// Dependencies between our packages point only up the table of `allow.rs`.
pub(super) fn crate_graph(_: &Tree, packages: &[Package]) -> Vec<Finding> {
    let ours: BTreeSet<&str> = packages
        .iter()
        .map(|package| package.name.as_str())
        .collect();
    let mut findings = Vec::new();
    for package in packages
        .iter()
        .filter(|package| !USE_ANY.contains(&package.name.as_str()))
    {
        let manifest = manifest(package);
        let Some((_, may_use)) = CRATE_GRAPH.iter().find(|(name, _)| *name == package.name) else {
            let what = format!("`{}` is not in the crate graph", package.name);
            let fix = "a new package needs a reason in ARCHITECTURE.md and a row in \
                       xtask/src/tidy/allow.rs";
            findings.push(Finding::new(&manifest, 0, &what, fix));
            continue;
        };
        let used = package
            .dependencies
            .iter()
            .filter(|name| ours.contains(name.as_str()));
        for name in used.filter(|name| !may_use.contains(&name.as_str())) {
            let what = format!("`{}` may not use `{name}`", package.name);
            let fix = "move the code down, or pass it in; the graph is in xtask/src/tidy/allow.rs";
            findings.push(Finding::new(&manifest, 0, &what, fix));
        }
    }
    findings
}

/// A package in `crates/` has its folder's name.
pub(super) fn folder_is_name(_: &Tree, packages: &[Package]) -> Vec<Finding> {
    packages
        .iter()
        .filter_map(|package| Some((package, package.folder.strip_prefix("crates/")?)))
        .filter(|(package, folder)| package.name != *folder)
        .map(|(package, folder)| {
            let what = format!("package `{}` in folder `{folder}`", package.name);
            Finding::new(&manifest(package), 0, &what, "give both the same name")
        })
        .collect()
}

/// Only one package knows a file format.
pub(super) fn file_formats(_: &Tree, packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages
        .iter()
        .filter(|package| package.name != FORMAT_OWNER)
    {
        for format in package
            .dependencies
            .iter()
            .filter(|name| FORMATS.contains(&name.as_str()))
        {
            let what = format!("`{}` uses `{format}`", package.name);
            let fix = format!("file formats are known to {FORMAT_OWNER} only");
            findings.push(Finding::new(&manifest(package), 0, &what, &fix));
        }
    }
    findings
}

/// Each package takes the workspace's lints.
pub(super) fn lints_are_inherited(tree: &Tree, packages: &[Package]) -> Vec<Finding> {
    let inherits = |manifest: &str| {
        let text = tree.text(manifest).unwrap_or_default();
        text.contains("[lints]\nworkspace = true")
    };
    packages
        .iter()
        .map(manifest)
        .filter(|manifest| !inherits(manifest))
        .map(|manifest| {
            let fix = "add [lints] and workspace = true";
            Finding::new(&manifest, 0, "does not take the workspace's lints", fix)
        })
        .collect()
}

/// The engine stays small: few dependencies, no procedural macro, no C compiler.
pub(super) fn engine_budget(cargo_tree: &str) -> Vec<Finding> {
    let mut direct = BTreeSet::new();
    let mut all = BTreeSet::new();
    let mut heavy = BTreeSet::new();
    for line in cargo_tree.lines() {
        let package = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let depth = &line[..line.len() - package.len()];
        let name = package.split(' ').next().unwrap_or_default();
        if depth == "0" || name.is_empty() {
            continue;
        }
        let version = package.split(' ').nth(1).unwrap_or_default();
        all.insert((name, version));
        if depth == "1" {
            direct.insert(name);
        }
        if package.contains("(proc-macro)") || NEEDS_C.contains(&name) || name.ends_with("-sys") {
            heavy.insert(name);
        }
    }
    let mut findings = Vec::new();
    let mut found = |what: String| {
        let fix = "library users pay for each: do without, or put it behind a feature";
        findings.push(Finding::new("crates/tidegate/Cargo.toml", 0, &what, fix));
    };
    if direct.len() > ENGINE_DIRECT {
        found(format!(
            "{} direct dependencies, more than {ENGINE_DIRECT}",
            direct.len()
        ));
    }
    if all.len() > ENGINE_ALL {
        found(format!(
            "{} dependencies in all, more than {ENGINE_ALL}",
            all.len()
        ));
    }
    for name in heavy {
        found(format!(
            "`{name}` is a procedural macro or needs a C compiler"
        ));
    }
    findings
}

fn manifest(package: &Package) -> String {
    format!("{}/Cargo.toml", package.folder)
}
