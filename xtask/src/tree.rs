//! The repository's files as git sees them: committed, and new ones that are not ignored.

use std::collections::BTreeMap;
use std::fs;

use crate::rust_text::RustText;
use crate::shell::{self, Failure, command, root};

/// One text file.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) text: String,
    /// For `.rs` files.
    pub(crate) rust: Option<RustText>,
}

/// Path from the root, with `/`, to text. Files that are not text are there with an empty one.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) files: BTreeMap<String, Source>,
}

impl Tree {
    pub(crate) fn read() -> Result<Self, Failure> {
        let list = [
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "-z",
        ];
        let listed = shell::output(&mut command("git", &list))?;
        let root = root();
        let files = listed
            .split('\0')
            .filter(|path| !path.is_empty())
            .filter_map(|path| {
                // A file that was deleted and not yet committed as such is listed, too.
                let bytes = fs::read(root.join(path)).ok()?;
                Some((
                    path.to_owned(),
                    String::from_utf8(bytes).unwrap_or_default(),
                ))
            });
        Ok(Self::from_texts(files))
    }

    pub(crate) fn from_texts(files: impl IntoIterator<Item = (String, String)>) -> Self {
        let files = files.into_iter().map(|(path, text)| {
            let rust = has_ending(&path, "rs").then(|| RustText::new(&text));
            (path, Source { text, rust })
        });
        Self {
            files: files.collect(),
        }
    }

    /// Path, source, and its code and comments, of each Rust file.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&str, &Source, &RustText)> {
        self.files
            .iter()
            .filter_map(|(path, source)| Some((path.as_str(), source, source.rust.as_ref()?)))
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(|source| source.text.as_str())
    }
}

/// Whether the file holds nothing but tests, benchmarks or examples.
pub(crate) fn is_test(path: &str) -> bool {
    path.split('/')
        .any(|folder| ["tests", "benches", "bench", "examples", "fuzz"].contains(&folder))
        || path.ends_with("tests.rs")
        || path
            .rsplit('/')
            .next()
            .is_some_and(|name| name.starts_with("loom_") || name.starts_with("shuttle_"))
}

/// The line, counted from 1, of a byte offset.
pub(crate) fn line_at(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

/// Whether the file's name ends so; lower case, as all names in this repository.
pub(crate) fn has_ending(path: &str, ending: &str) -> bool {
    path.rsplit_once('.')
        .is_some_and(|(_, last)| last == ending)
}
