//! From text to a tree.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{
    DefaultMessageFormatter, DuplicateKeyPolicy, Error, MessageFormatter, NonFiniteFloatPolicy,
    Spanned, budget, options,
};

use crate::quote::printable;
use crate::report::{Finding, Report};
use crate::source::{Source, Span};

/// Deepest nesting of a policy file; what it can say needs 8.
const MAX_DEPTH: usize = 24;
/// Most lists, maps and scalars. 10,000 routes and 100,000 overrides take about a million.
const MAX_NODES: usize = 2_000_000;
/// Most of them that come through aliases.
const MAX_ALIASED: usize = 500_000;

/// A piece of YAML, where it stands, and what it is.
#[derive(Debug)]
pub(crate) struct Node<'a> {
    pub(crate) span: Span,
    pub(crate) value: Value<'a>,
}

#[derive(Debug)]
pub(crate) enum Value<'a> {
    Null,
    /// `true` or `false`, or a number: what was written is looked up in the source, so that
    /// `007` and `1.50` stay what they are.
    Bool,
    Number,
    Text(Cow<'a, str>),
    List(Vec<Node<'a>>),
    Map(Vec<(Node<'a>, Node<'a>)>),
}

impl Node<'_> {
    pub(crate) fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    /// The text of a scalar that is not null.
    pub(crate) fn text<'n>(&'n self, source: &Source<'n>) -> Option<&'n str> {
        match &self.value {
            Value::Bool | Value::Number => Some(source.slice(self.span)),
            Value::Text(text) => Some(text),
            Value::Null | Value::List(_) | Value::Map(_) => None,
        }
    }
}

/// Makes a tree of the source, or reports why that cannot be.
pub(crate) fn parse<'a>(text: &'a str, report: &Report<'_>) -> Option<Node<'a>> {
    let options = options! {
        budget: budget! {
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_nodes: MAX_NODES,
            max_events: 2 * MAX_NODES,
            max_aliases: MAX_ALIASED,
            // One more than allowed, so that the second is told of as such.
            max_documents: 2,
            max_recorded_anchor_events: MAX_ALIASED,
            enforce_alias_anchor_ratio: false,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_ALIASED,
            max_replay_stack_depth: MAX_DEPTH,
        },
        // The reader tells of them, with both places.
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        reject_unsupported_tags: true,
        strict_booleans: true,
        with_snippet: false,
    };
    match serde_saphyr::from_str_with_options::<Spanned<Value<'a>>>(text, options) {
        Ok(root) => Some(Node::from(root)),
        Err(error) => {
            report.push(finding(&error, report.source()));
            None
        }
    }
}

impl<'a> From<Spanned<Value<'a>>> for Node<'a> {
    fn from(spanned: Spanned<Value<'a>>) -> Self {
        // Where a value was written, not where an alias stands for it: that is what has to be
        // changed when it is wrong.
        let span = spanned.defined.span();
        let offset = |at: Option<u64>| at.and_then(|at| usize::try_from(at).ok()).unwrap_or(0);
        let (start, len) = (offset(span.byte_offset()), offset(span.byte_len()));
        Self {
            span: Span::new(start..start + len),
            value: spanned.value,
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Value<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a scalar, a list or a map")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Value::Bool)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Value::Number)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Value::Number)
    }

    fn visit_i128<E>(self, _: i128) -> Result<Self::Value, E> {
        Ok(Value::Number)
    }

    fn visit_u128<E>(self, _: u128) -> Result<Self::Value, E> {
        Ok(Value::Number)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Value::Number)
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Value::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Value::Text(Cow::Borrowed(text)))
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        Ok(Value::Text(Cow::Owned(
            String::from_utf8_lossy(bytes).into_owned(),
        )))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element::<Spanned<Value<'de>>>()? {
            list.push(Node::from(item));
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        type Entry<'a> = (Spanned<Value<'a>>, Spanned<Value<'a>>);
        let mut map = Vec::new();
        while let Some((key, value)) = entries.next_entry()? {
            let (key, value): Entry<'de> = (key, value);
            map.push((Node::from(key), Node::from(value)));
        }
        Ok(Value::Map(map))
    }
}

/// What the YAML parser found, in our words where we have better ones.
fn finding(error: &Error, source: &Source<'_>) -> Finding {
    let error = error.without_snippet();
    let span = error.location().map_or_else(Span::default, |location| {
        source.span_at(location.line(), location.column())
    });
    let told = match error {
        Error::AliasError { error, .. } => error,
        other => other,
    };
    let said = DefaultMessageFormatter.format_message(told);
    let (message, help) = in_our_words(told, &said);
    let finding = Finding::error(span, message);
    match help {
        Some(help) => finding.help(help),
        None => finding,
    }
}

fn in_our_words(error: &Error, said: &str) -> (String, Option<&'static str>) {
    match error {
        Error::MultipleDocuments { .. } => {
            let message = "a policy file is one YAML document; here begins another";
            return (message.to_owned(), Some("write one file for each policy"));
        }
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. } => {
            return (too_much(), None);
        }
        Error::UnsupportedTag { .. } => {
            let message = format!("this is not for a policy: {}", printable(said));
            return (
                message,
                Some("leave the tag out, or put the text in quotes"),
            );
        }
        _ if said.contains("recursion limit") || said.contains("nest") => {
            return (too_much(), None);
        }
        _ => {}
    }
    let help = HINTS
        .iter()
        .find(|(part, _)| said.contains(part))
        .map(|&(_, help)| help);
    (format!("this is not YAML: {}", printable(said)), help)
}

fn too_much() -> String {
    format!(
        "this file is too deep, or too large once its aliases are written out: \
         {MAX_DEPTH} levels, {MAX_NODES} values and {MAX_ALIASED} through aliases are the most"
    )
}

/// What to do about what the parser says.
const HINTS: &[(&str, &str)] = &[
    ("tabs disallowed", "indent with spaces"),
    (
        "mapping values are not allowed",
        "put a text that has `: ` in it in quotes; else look at the indentation",
    ),
    (
        "did not find expected key",
        "let the keys of one map begin in one column",
    ),
    (
        "did not find expected ',' or",
        "put a text that has `{`, `}`, `[`, `]` or `,` in it in quotes",
    ),
    ("unclosed bracket", "close it with `]` or `}`"),
    ("unclosed quote", "close the quote"),
    ("unexpected character", "put the text in quotes"),
    (
        "unknown anchor",
        "name an anchor that stands further up: `&name` there, `*name` here",
    ),
    ("simple key expected ':'", "write `key: value`"),
];
