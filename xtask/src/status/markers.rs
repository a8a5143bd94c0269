//! `// shows:` and `// proves:` above tests.

use super::requirements::REQUIREMENTS;
use crate::rust_text::{RustText, in_word};
use crate::tidy::Finding;
use crate::tree::{Tree, line_at};

/// A requirement, or the part of it that is named in parentheses.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) id: String,
    pub(crate) part: Option<String>,
}

/// One test that says what it shows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Marker {
    pub(crate) claims: Vec<Claim>,
    pub(crate) proves: bool,
    pub(crate) package: String,
    pub(crate) test: String,
}

/// All markers, and what is wrong with some.
pub(crate) fn scan(tree: &Tree) -> (Vec<Marker>, Vec<Finding>) {
    let (mut markers, mut findings) = (Vec::new(), Vec::new());
    for (path, _, rust) in tree.rust() {
        let mut offset = 0;
        for line in rust.comments.split_inclusive('\n') {
            let comment = line.trim();
            let of_kind = |kind| comment.strip_prefix(kind);
            let found = of_kind("// shows:").map(|ids| (ids, false));
            if let Some((ids, proves)) =
                found.or_else(|| of_kind("// proves:").map(|ids| (ids, true)))
            {
                match marker(path, rust, offset, ids, proves) {
                    Ok(marker) => markers.push(marker),
                    Err((what, fix)) => {
                        let line = line_at(&rust.comments, offset);
                        findings.push(Finding::new(path, line, &what, fix));
                    }
                }
            }
            offset += line.len();
        }
    }
    (markers, findings)
}

fn marker(
    path: &str,
    rust: &RustText,
    offset: usize,
    ids: &str,
    proves: bool,
) -> Result<Marker, (String, &'static str)> {
    let claims: Vec<Claim> = ids.split(',').map(claim).collect();
    let known = |id: &str| REQUIREMENTS.iter().any(|(known, _)| *known == id);
    if let Some(Claim { id, .. }) = claims.iter().find(|claim| !known(&claim.id)) {
        let fix = "ids stand in xtask/src/status/requirements.rs";
        return Err((format!("names `{id}`, which is no requirement"), fix));
    }
    let test = test_below(&rust.code[offset..]).ok_or((
        "stands above no test".to_owned(),
        "put it directly above the `#[test]` that shows this",
    ))?;
    Ok(Marker {
        claims,
        proves,
        package: package(path),
        test,
    })
}

/// `A8`, or `A8 (reject)`.
fn claim(text: &str) -> Claim {
    let (id, part) = match text.trim().split_once('(') {
        Some((id, part)) => (id.trim(), Some(part.trim_end_matches(')').to_owned())),
        None => (text.trim(), None),
    };
    Claim {
        id: id.to_owned(),
        part,
    }
}

/// The name of the test that the code begins with, attributes aside.
fn test_below(code: &str) -> Option<String> {
    let code = code.trim_start();
    let (attributes, signature) = code.split_at(code.find("fn ")?);
    let is_test = attributes.contains("test]") || attributes.contains("test(");
    if !code.starts_with("#[") || !is_test || attributes.contains(['{', ';']) {
        return None;
    }
    Some(
        signature["fn ".len()..]
            .chars()
            .take_while(|c| in_word(*c))
            .collect(),
    )
}

fn package(path: &str) -> String {
    let mut folders = path.split('/');
    match (folders.next(), folders.next()) {
        (Some("crates"), Some(package)) => package.to_owned(),
        (first, _) => first.unwrap_or_default().to_owned(),
    }
}
