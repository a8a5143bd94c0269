//! What cargo knows about the workspace's own packages.

use serde_json::Value;

use crate::shell::{self, Failure, cargo, root};

/// One package of the workspace.
#[derive(Debug, Default, Clone)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Path of its folder from the root.
    pub(crate) folder: String,
    pub(crate) version: String,
    pub(crate) rust_version: String,
    pub(crate) features: Vec<String>,
    /// Normal and build dependencies, whatever platform or feature they are for.
    pub(crate) dependencies: Vec<String>,
    /// Paths from the root of what is compiled: `src/lib.rs`, `tests/it.rs`, ...
    pub(crate) targets: Vec<String>,
}

pub(crate) fn packages() -> Result<Vec<Package>, Failure> {
    let text = shell::output(&mut cargo("metadata --no-deps --format-version=1 --locked"))?;
    let root = format!("{}/", root().display());
    parse(&text, &root)
        .ok_or_else(|| Failure::Failed("`cargo metadata` answered something unknown".to_owned()))
}

fn parse(text: &str, root: &str) -> Option<Vec<Package>> {
    let metadata: Value = serde_json::from_str(text).ok()?;
    metadata["packages"]
        .as_array()?
        .iter()
        .map(|package| package_from(package, root))
        .collect()
}

fn package_from(package: &Value, root: &str) -> Option<Package> {
    let path = |value: &Value| {
        let text = value.as_str()?;
        Some(text.strip_prefix(root).unwrap_or(text).to_owned())
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut found = Package {
        name: text(&package["name"]),
        folder: path(&package["manifest_path"])?
            .trim_end_matches("/Cargo.toml")
            .to_owned(),
        version: text(&package["version"]),
        rust_version: text(&package["rust_version"]),
        features: package["features"].as_object()?.keys().cloned().collect(),
        ..Package::default()
    };
    for dependency in package["dependencies"].as_array()? {
        if dependency["kind"].as_str() != Some("dev") {
            found.dependencies.push(text(&dependency["name"]));
        }
    }
    for target in package["targets"].as_array()? {
        found.targets.push(path(&target["src_path"])?);
    }
    Some(found)
}
