//! Scalars that are kept as they were written, with what a schema can say of them.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::field::ListItem;

macro_rules! text {
    ($(#[$doc:meta])* $name:ident: $schema:tt) => {
        $(#[$doc])*
        #[derive(Debug, Deserialize)]
        #[serde(transparent)]
        pub(crate) struct $name(String);

        impl $name {
            pub(crate) fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

text! {
    /// `100/min`.
    RateText: {
        "type": "string",
        "pattern": "^\\s*[0-9][0-9_]*(\\.[0-9]+)?\\s*(/|per)\\s*([0-9a-zµμ. ]+)$",
        "examples": ["100/min", "10/s", "3 per 5s", "0.5/s", "1/month"],
    }
}

text! {
    /// `1m30s`.
    DurationText: {
        "type": "string",
        "pattern": "^\\s*([0-9][0-9_]*(\\.[0-9]+)?\\s*[a-zµμ]+\\s*)+$",
        "examples": ["200ms", "5s", "1m30s", "1h", "2d"],
    }
}

/// What a size looks like.
pub(super) const SIZE_PATTERN: &str = "^\\s*[0-9][0-9_]*(\\.[0-9]+)?\\s*([KkMmGg]?[Ii]?[Bb])?$";

text! {
    /// `100KB/s`.
    BandwidthText: {
        "type": "string",
        "pattern": "^\\s*[0-9][0-9_]*(\\.[0-9]+)?\\s*[KkMmGg]?i?B\\s*(/|per)\\s*([0-9a-zµμ. ]+)$",
        "examples": ["100KB/s", "1.5MiB/s", "1GB/h"],
    }
}

text! {
    /// `32KiB`.
    SizeText: {
        "type": ["integer", "string"],
        "pattern": SIZE_PATTERN,
        "examples": [32768, "32KiB", "64KB"],
    }
}

text! {
    /// `240B/s`.
    SizePerSecondText: {
        "type": ["integer", "string"],
        "pattern": "^\\s*[0-9][0-9_]*(\\.[0-9]+)?\\s*([KkMm]?[Ii]?[Bb])?(\\s*/\\s*s)?\\s*$",
        "examples": ["240B/s", "1KiB/s", 0],
    }
}

text! {
    /// Any scalar; `007` stays `007`.
    Scalar: { "type": ["string", "number", "boolean"] }
}

impl ListItem for RateText {}
impl ListItem for Scalar {}
