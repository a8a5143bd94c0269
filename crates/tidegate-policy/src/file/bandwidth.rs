//! What a limit of `bandwidth` has of its own.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};

use super::field::ListItem;
use crate::quote::quote;

/// Which bodies a limit of bandwidth holds back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(
    rename = "direction",
    rename_all = "snake_case",
    expecting = "responses, requests or both"
)]
#[schemars(rename = "Direction")]
pub(crate) enum DirectionName {
    /// What is sent to clients.
    #[default]
    Responses,
    /// What clients send.
    Requests,
    /// Either, in one count.
    Both,
}

/// The burst of a rate in permits, or that of a bandwidth as a size.
#[derive(Debug)]
pub(crate) enum BurstText {
    /// `20`.
    Number(u64),
    /// `64KB`.
    Size(String),
}

impl<'de> Deserialize<'de> for BurstText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(BurstVisitor)
    }
}

struct BurstVisitor;

impl Visitor<'_> for BurstVisitor {
    type Value = BurstText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(BurstText::EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<BurstText, E> {
        let text = text.trim();
        if !text.starts_with(|c: char| c.is_ascii_digit()) {
            let message = format!(
                "`burst` takes a whole number or a size, not {}",
                quote(text)
            );
            return Err(E::custom(message));
        }
        Ok(match text.replace('_', "").parse() {
            Ok(number) => BurstText::Number(number),
            Err(_) => BurstText::Size(text.to_owned()),
        })
    }
}

impl ListItem for BurstText {
    const EXPECTED: &'static str = "a whole number, a size, or a list of numbers";
}

impl JsonSchema for BurstText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "BurstText".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["integer", "string"],
            "minimum": 0,
            "pattern": super::text::SIZE_PATTERN,
            "examples": [20, "64KB"],
        })
    }
}
