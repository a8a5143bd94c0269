//! `cargo xtask status`: writes `docs/status.md`, which requirement is shown by which test.
//!
//! A test names what it shows in a comment line directly above it: `// shows: A1, B1` where the
//! thing is seen to work, `// proves: B5` where an exact model or a property over all schedules
//! holds it. A test that shows a part of a row says which: `// shows: A8 (reject)`.

mod cases;
mod markers;
mod requirements;

use std::fmt::Write as _;
use std::fs;

use crate::shell::{Failure, root};
use crate::tidy::Finding;
use crate::tree::Tree;
use cases::Case;
use markers::Marker;
use requirements::{CASES, REQUIREMENTS};

pub(crate) const PATH: &str = "docs/status.md";

const HEAD: &str = "\
# Status

What tidegate must do, and which tests show it. Written by `cargo xtask status`; do not edit.

*works*: a test sees it work. *proven*: a property or an exact model holds it for all schedules that
were tried. *in part*: only what is named in parentheses. *absent*: no test names it.
";

/// Tests named per row; the rest are counted.
const MOST_NAMES: usize = 6;

pub(crate) fn write() -> Result<(), Failure> {
    let tree = Tree::read()?;
    if let Some(finding) = check_markers(&tree).first() {
        return Err(Failure::Failed(finding.to_string()));
    }
    fs::write(root().join(PATH), page(&tree))
        .map_err(|error| Failure::Failed(format!("cannot write {PATH}: {error}")))?;
    println!("wrote {PATH}");
    Ok(())
}

/// The page is what the tests say now.
pub(crate) fn check_fresh(tree: &Tree) -> Vec<Finding> {
    if tree.text(PATH) == Some(page(tree).as_str()) {
        return Vec::new();
    }
    vec![Finding::new(
        PATH,
        0,
        "is not what the tests say",
        "run `cargo xtask status`",
    )]
}

/// Each marker names known ids and stands above a test.
pub(crate) fn check_markers(tree: &Tree) -> Vec<Finding> {
    markers::scan(tree).1
}

fn page(tree: &Tree) -> String {
    let markers = markers::scan(tree).0;
    let mut page = HEAD.to_owned();
    let mut section = "";
    for (id, title) in REQUIREMENTS {
        if !id.starts_with(section) || section.is_empty() {
            section = &id[..1];
            let name = requirements::section(section);
            write_line(&mut page, &format!("\n## {section}. {name}\n"));
            write_line(
                &mut page,
                "| id | requirement | state | tests |\n|---|---|---|---|",
            );
        }
        let (state, tests) = shown_by(&markers, id);
        write_line(
            &mut page,
            &format!("| {id} | {title} | {state} | {tests} |"),
        );
    }
    let cases = cases::conformance_cases(tree);
    if !cases.is_empty() {
        write_cases(&mut page, &cases);
    }
    page
}

fn shown_by(markers: &[Marker], id: &str) -> (&'static str, String) {
    let (mut state, mut rank) = ("absent", 0);
    let mut names = Vec::new();
    for marker in markers {
        for claim in marker.claims.iter().filter(|claim| claim.id == id) {
            let (claimed, its_rank) = match (&claim.part, marker.proves) {
                (Some(_), _) => ("in part", 1),
                (None, false) => ("works", 2),
                (None, true) => ("proven", 3),
            };
            if its_rank > rank {
                (state, rank) = (claimed, its_rank);
            }
            let part = claim.part.as_ref().map(|part| format!(" ({part})"));
            let part = part.unwrap_or_default();
            names.push(format!("{} `{}`{part}", marker.package, marker.test));
        }
    }
    names.sort();
    names.dedup();
    let more = names.len().saturating_sub(MOST_NAMES);
    names.truncate(MOST_NAMES);
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    (state, names.join(", "))
}

fn write_cases(page: &mut String, cases: &[Case]) {
    write_line(
        page,
        "\n## Cases\n\nEach runs through all doors that are named.\n",
    );
    write_line(
        page,
        "| case | must give | state | doors |\n|---|---|---|---|",
    );
    for (number, title) in CASES {
        let of_case: Vec<&Case> = cases.iter().filter(|case| case.number == *number).collect();
        let state = if of_case.is_empty() {
            "absent"
        } else {
            "works"
        };
        let mut doors: Vec<&str> = of_case
            .iter()
            .flat_map(|case| case.doors.iter().map(String::as_str))
            .collect();
        doors.sort_unstable();
        doors.dedup();
        write_line(
            page,
            &format!("| {number} | {title} | {state} | {} |", doors.join(", ")),
        );
    }
}

fn write_line(page: &mut String, line: &str) {
    writeln!(page, "{line}").expect("a String takes all that is written");
}

#[cfg(test)]
mod tests;
