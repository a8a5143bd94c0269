//! From a tree to types, reporting on the way.

use std::collections::HashMap;
use std::fmt;

use serde::de::value::{BorrowedStrDeserializer, U32Deserializer};
use serde::de::{
    self, Deserialize, DeserializeSeed, EnumAccess, Expected, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::node::{Node, Value};
use crate::later;
use crate::quote::{one_of, quote};
use crate::report::{Finding, Report};
use crate::suggest::closest;

/// The name by which a [`Field`](crate::file::Field) asks for its place.
pub(crate) const FIELD_MARKER: &str = "tidegate policy field";
/// The name by which a [`OneOrMany`](crate::file::OneOrMany) asks for a list, or the one value in
/// place of it.
pub(crate) const LIST_MARKER: &str = "tidegate policy list";
/// The name by which a [`MapOrText`](crate::file::MapOrText) asks for a text, or else a map.
pub(crate) const SHORT_MARKER: &str = "tidegate policy short form";

/// Reads a `T` from `node`; what does not fit is in the report.
pub(crate) fn read<'a, T: Deserialize<'a>>(
    node: &'a Node<'a>,
    report: &'a Report<'a>,
) -> Option<T> {
    let reader = Reader {
        node,
        key: None,
        report,
    };
    T::deserialize(reader)
        .map_err(|error| reader.tell(error))
        .ok()
}

/// A node, about to become something.
#[derive(Clone, Copy)]
struct Reader<'a> {
    node: &'a Node<'a>,
    /// The key that it is the value of.
    key: Option<&'a str>,
    report: &'a Report<'a>,
}

/// Why a value is none.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// The report has it.
    Told,
    /// It is to be told, at the place of the value.
    Untold(String),
}

impl<'a> Reader<'a> {
    fn tell(self, error: ReadError) {
        if let ReadError::Untold(message) = error {
            self.report.push(Finding::error(self.node.span, message));
        }
    }

    /// Reports that the value is not what is expected here.
    fn mismatch(self, expected: &dyn Expected) -> ReadError {
        let subject = self.key.map_or_else(|| "a policy file".to_owned(), quote);
        let finding = match &self.node.value {
            Value::Null => Finding::error(self.node.span, format!("{subject} has no value"))
                .help(format!("write {expected}, or leave it out")),
            found => {
                let found = match found {
                    Value::List(_) => "a list".to_owned(),
                    Value::Map(_) => "a map".to_owned(),
                    _ => quote(self.text().unwrap_or_default()),
                };
                let message = format!("{subject} takes {expected}, not {found}");
                let finding = Finding::error(self.node.span, message);
                match self.joined_by_colon() {
                    Some(text) => finding.help(format!("write `{text}`, without the space")),
                    None => finding,
                }
            }
        };
        self.report.push(finding);
        ReadError::Told
    }

    /// `header: user-id` is a map to YAML where `header:user-id` was meant.
    fn joined_by_colon(self) -> Option<String> {
        let Value::Map(entries) = &self.node.value else {
            return None;
        };
        let [(key, value)] = entries.as_slice() else {
            return None;
        };
        let source = self.report.source();
        let (key, value) = (key.text(source)?, value.text(source)?);
        matches!(key, "header" | "cookie" | "query").then(|| format!("{key}:{value}"))
    }

    fn text(self) -> Option<&'a str> {
        self.node.text(self.report.source())
    }

    /// The entries of a map, without those whose key is none, or was there before.
    fn entries(self, expected: &dyn Expected) -> Result<Vec<Entry<'a>>, ReadError> {
        let Value::Map(map) = &self.node.value else {
            return Err(self.mismatch(expected));
        };
        let mut seen = HashMap::with_capacity(map.len());
        let mut entries = Vec::with_capacity(map.len());
        for (key, value) in map {
            let Some(name) = key.text(self.report.source()) else {
                self.report
                    .push(Finding::error(key.span, "a key is a text"));
                continue;
            };
            match seen.insert(name, key.span) {
                Some(first) => {
                    let message = format!("{} is here twice", quote(name));
                    let finding = Finding::error(key.span, message).related(first, "first here");
                    self.report.push(finding.help("keep one of them"));
                    seen.insert(name, first);
                }
                None => entries.push(Entry { name, key, value }),
            }
        }
        Ok(entries)
    }

    /// Reports a key that `container` does not have.
    fn unknown_key(self, entry: &Entry<'_>, container: &'static str, fields: &[&'static str]) {
        let name = quote(entry.name);
        let finding = if later::is_later_key(container, entry.name) {
            Finding::error(entry.key.span, format!("{name} is not in this version yet"))
                .help("leave it out")
        } else {
            let message = format!("unknown key {name}");
            let finding = Finding::error(entry.key.span, message);
            match closest(entry.name, fields.iter().copied()) {
                Some(meant) => finding.help(format!("did you mean `{meant}`?")),
                None => finding.help(format!("{container} has the keys {}", fields.join(", "))),
            }
        };
        self.report.push(finding);
        self.report.note_unknown_key(self.node.span);
    }
}

impl<'de> de::Deserializer<'de> for Reader<'de> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match &self.node.value {
            Value::Null | Value::Map(_) => Err(self.mismatch(&visitor)),
            Value::List(_) => self.deserialize_seq(visitor),
            Value::Bool | Value::Number | Value::Text(_) => self.deserialize_str(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.text() {
            Some("true") => visitor.visit_bool(true),
            Some("false") => visitor.visit_bool(false),
            _ => Err(self.mismatch(&"true or false")),
        }
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let digits = self
            .text()
            .filter(|text| text.starts_with(|c: char| c.is_ascii_digit()));
        match digits.and_then(|digits| digits.replace('_', "").parse().ok()) {
            Some(number) => visitor.visit_u64(number),
            None => Err(self.mismatch(&"a whole number")),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.text() {
            Some(text) => visitor.visit_borrowed_str(text),
            None => Err(self.mismatch(&visitor)),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.text() {
            Some(text) => visitor.visit_borrowed_str(text),
            None => Err(self.mismatch(&"a text")),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match &self.node.value {
            Value::List(items) => visitor.visit_seq(Items {
                rest: items.iter(),
                key: self.key,
                report: self.report,
            }),
            _ => Err(self.mismatch(&"a list")),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let entries = self.entries(&visitor)?;
        visitor.visit_map(Entries {
            rest: entries.into_iter(),
            value: None,
            report: self.report,
        })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let mut entries = self.entries(&visitor)?;
        entries.retain(|entry| {
            let is_known = fields.contains(&entry.name);
            if !is_known {
                self.unknown_key(entry, name, fields);
            }
            is_known
        });
        visitor.visit_map(Entries {
            rest: entries.into_iter(),
            value: None,
            report: self.report,
        })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let Some(text) = self.text() else {
            return Err(self.mismatch(&visitor));
        };
        if variants.contains(&text) {
            return visitor.visit_enum(Variant(text));
        }
        let finding = if later::is_later_value(name, text) {
            let message = format!("{} is not in this version yet", quote(text));
            Finding::error(self.node.span, message)
        } else {
            let message = format!("{} is no value for `{name}`", quote(text));
            Finding::error(self.node.span, message)
        };
        self.report
            .push(match closest(text, variants.iter().copied()) {
                Some(meant) => finding.help(format!("did you mean `{meant}`?")),
                None => finding.help(format!("write {}", one_of(variants))),
            });
        Err(ReadError::Told)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match (name, &self.node.value) {
            (FIELD_MARKER, _) => visitor.visit_seq(Placed {
                reader: self,
                next: 0,
            }),
            (LIST_MARKER, Value::List(_)) => self.deserialize_seq(visitor),
            (LIST_MARKER, Value::Null | Value::Map(_)) => Err(self.mismatch(&visitor)),
            (SHORT_MARKER, Value::Bool | Value::Number | Value::Text(_)) => {
                self.deserialize_str(visitor)
            }
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_some(self)
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u128 f32 f64 char bytes byte_buf unit unit_struct tuple
        tuple_struct identifier ignored_any
    }
}

struct Entry<'a> {
    name: &'a str,
    key: &'a Node<'a>,
    value: &'a Node<'a>,
}

struct Entries<'a> {
    rest: std::vec::IntoIter<Entry<'a>>,
    value: Option<Reader<'a>>,
    report: &'a Report<'a>,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ReadError> {
        let Some(Entry { name, key, value }) = self.rest.next() else {
            return Ok(None);
        };
        self.value = Some(Reader {
            node: value,
            key: Some(name),
            report: self.report,
        });
        seed.deserialize(Reader {
            node: key,
            key: None,
            report: self.report,
        })
        .map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        let reader = self.value.take().ok_or(ReadError::Told)?;
        seed.deserialize(reader)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

struct Items<'a> {
    rest: std::slice::Iter<'a, Node<'a>>,
    key: Option<&'a str>,
    report: &'a Report<'a>,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ReadError> {
        let Some(node) = self.rest.next() else {
            return Ok(None);
        };
        seed.deserialize(Reader {
            node,
            key: self.key,
            report: self.report,
        })
        .map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// What a field is made of: where it starts, where it ends, and the value. That the value is
/// wrong is told here, so that the field may go on without it.
struct Placed<'a> {
    reader: Reader<'a>,
    next: u8,
}

impl<'de> SeqAccess<'de> for Placed<'de> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ReadError> {
        let span = self.reader.node.span;
        self.next += 1;
        let at = |at: u32| -> U32Deserializer<ReadError> { at.into_deserializer() };
        match self.next {
            1 => seed.deserialize(at(span.start)).map(Some),
            2 => seed.deserialize(at(span.end)).map(Some),
            3 => match seed.deserialize(self.reader) {
                Ok(value) => Ok(Some(value)),
                Err(error) => {
                    self.reader.tell(error);
                    Err(ReadError::Told)
                }
            },
            _ => Ok(None),
        }
    }
}

/// An enum's variant by its name.
struct Variant<'a>(&'a str);

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = ReadError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), ReadError> {
        seed.deserialize(BorrowedStrDeserializer::new(self.0))
            .map(|value| (value, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = ReadError;

    fn unit_variant(self) -> Result<(), ReadError> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, ReadError> {
        Err(de::Error::invalid_type(
            Unexpected::UnitVariant,
            &"a name alone",
        ))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, ReadError> {
        Err(de::Error::invalid_type(
            Unexpected::UnitVariant,
            &"a name alone",
        ))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, ReadError> {
        Err(de::Error::invalid_type(
            Unexpected::UnitVariant,
            &"a name alone",
        ))
    }
}

impl de::Error for ReadError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::Untold(message.to_string())
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Told => f.write_str("already reported"),
            Self::Untold(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for ReadError {}
