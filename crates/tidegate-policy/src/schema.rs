//! The JSON Schema of policy files.

use schemars::generate::SchemaSettings;

use crate::file::PolicyFile;

/// The JSON Schema (draft 2020-12) of a policy file, out of the same types that read it. It
/// knows keys, shapes and how values look; not what names refer to.
pub fn schema() -> serde_json::Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    generator.into_root_schema_for::<PolicyFile>().to_value()
}
