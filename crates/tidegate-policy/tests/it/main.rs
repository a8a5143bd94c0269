//! The crate as its users see it.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod actions;
mod load;
mod mangled;
mod policies;
mod problems;
mod rates;
mod schema;
mod width;

use std::path::PathBuf;

/// The example policies and the default one, by name.
fn policies() -> Vec<(String, String)> {
    let mut policies = texts("policies", "yaml");
    policies.push(("default".to_owned(), tidegate_policy::DEFAULT.to_owned()));
    policies
}

/// The files of a folder of tests, by name.
fn texts(folder: &str, extension: &str) -> Vec<(String, String)> {
    let mut texts: Vec<_> = std::fs::read_dir(folder_path(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|of_path| of_path == extension))
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect();
    texts.sort();
    assert!(!texts.is_empty());
    texts
}

fn folder_path(folder: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(folder)
}
