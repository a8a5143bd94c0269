//! Values that know their place, and collections of them.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::source::Span;
use crate::yaml::{FIELD_MARKER, LIST_MARKER, SHORT_MARKER};

/// A value of a policy file: absent, or there and wrong (which has been reported), or there.
#[derive(Debug)]
pub(crate) struct Field<T> {
    value: Option<T>,
    place: Option<Span>,
}

impl<T> Field<T> {
    /// The value, where it is there and right.
    pub(crate) fn get(&self) -> Option<&T> {
        self.value.as_ref()
    }

    /// The value, and where it stands.
    pub(crate) fn placed(&self) -> Option<(&T, Span)> {
        self.value.as_ref().zip(self.place)
    }

    /// Where it stands, right or wrong.
    pub(crate) fn place(&self) -> Option<Span> {
        self.place
    }

    /// Whether it is there, right or wrong.
    pub(crate) fn is_written(&self) -> bool {
        self.place.is_some()
    }

    /// Whether it is there and wrong.
    pub(crate) fn is_wrong(&self) -> bool {
        self.place.is_some() && self.value.is_none()
    }
}

impl<T> Default for Field<T> {
    fn default() -> Self {
        Self {
            value: None,
            place: None,
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Field<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(FIELD_MARKER, FieldVisitor(PhantomData))
    }
}

struct FieldVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for FieldVisitor<T> {
    type Value = Field<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value with its place")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Field<T>, A::Error> {
        let missing = || A::Error::custom("a field is a start, an end and a value");
        let start = parts.next_element()?.ok_or_else(missing)?;
        let end = parts.next_element()?.ok_or_else(missing)?;
        // An error has been reported by the reader.
        let value = parts.next_element().ok().flatten();
        Ok(Field {
            value,
            place: Some(Span { start, end }),
        })
    }
}

impl<T: JsonSchema> JsonSchema for Field<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// Named values, in the order of the file.
#[derive(Debug)]
pub(crate) struct Map<T>(Vec<(Field<String>, Field<T>)>);

impl<T> Map<T> {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Name, place of the name, value.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, Span, &Field<T>)> {
        self.0.iter().filter_map(|(name, value)| {
            name.placed()
                .map(|(name, place)| (name.as_str(), place, value))
        })
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Map<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MapVisitor(PhantomData))
    }
}

struct MapVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for MapVisitor<T> {
    type Value = Map<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Map<T>, A::Error> {
        let mut map = Vec::with_capacity(entries.size_hint().unwrap_or(0));
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Map(map))
    }
}

impl<T: JsonSchema> JsonSchema for Map<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Map_of_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let values = generator.subschema_for::<T>();
        json_schema!({ "type": "object", "additionalProperties": values })
    }
}

/// A list, or one value in place of a list of one.
#[derive(Debug)]
pub(crate) struct OneOrMany<T>(Vec<Field<T>>);

/// What a list, or one value in its place, can be made of.
pub(crate) trait ListItem {
    /// What is expected, for people.
    const EXPECTED: &'static str = "a text or a list of them";
}

impl ListItem for String {}

impl ListItem for u64 {
    const EXPECTED: &'static str = "a whole number or a list of them";
}

impl<T> Field<OneOrMany<T>> {
    /// How many values there are, right or wrong; `None` where there is no list at all.
    pub(crate) fn count(&self) -> Option<usize> {
        self.get().map(|OneOrMany(items)| items.len())
    }

    /// Each value that is right, and where it stands.
    pub(crate) fn items(&self) -> impl Iterator<Item = (&T, Span)> {
        self.placed()
            .into_iter()
            .flat_map(|(OneOrMany(items), outer)| {
                items.iter().filter_map(move |item| {
                    item.get()
                        .map(|value| (value, item.place().unwrap_or(outer)))
                })
            })
    }

    /// Whether all of it is right; also where it is absent.
    pub(crate) fn is_all_right(&self) -> bool {
        !self.is_wrong()
            && self
                .get()
                .is_none_or(|OneOrMany(items)| items.iter().all(|item| item.get().is_some()))
    }
}

impl<'de, T: ListItem + Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(LIST_MARKER, OneOrManyVisitor(PhantomData))
    }
}

struct OneOrManyVisitor<T>(PhantomData<T>);

impl<'de, T: ListItem + Deserialize<'de>> Visitor<'de> for OneOrManyVisitor<T> {
    type Value = OneOrMany<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, one: D) -> Result<Self::Value, D::Error> {
        Ok(OneOrMany(vec![Field {
            value: Some(T::deserialize(one)?),
            place: None,
        }]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<OneOrMany<T>, A::Error> {
        let mut list = Vec::with_capacity(items.size_hint().unwrap_or(0));
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(OneOrMany(list))
    }
}

impl<T: JsonSchema> JsonSchema for OneOrMany<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("One_or_many_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [one, { "type": "array", "items": one }] })
    }
}

/// A map, or a text that says the most important of it.
#[derive(Debug)]
pub(crate) enum MapOrText<T> {
    Map(T),
    Text(String),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for MapOrText<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(SHORT_MARKER, MapOrTextVisitor(PhantomData))
    }
}

struct MapOrTextVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for MapOrTextVisitor<T> {
    type Value = MapOrText<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a map")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, map: D) -> Result<Self::Value, D::Error> {
        T::deserialize(map).map(MapOrText::Map)
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(MapOrText::Text(text.to_owned()))
    }
}

impl<T: JsonSchema> JsonSchema for MapOrText<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Text_or_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let map = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [{ "type": "string" }, map] })
    }
}
