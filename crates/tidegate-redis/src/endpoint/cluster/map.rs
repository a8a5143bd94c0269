//! Which server has which slots.

use std::sync::Arc;

use redis::Value;
use tidegate::Timestamp;

use super::super::server::Server;
use super::super::slot::SLOTS;
use crate::Address;

/// Most spans of slots: no more than there are slots.
const MAX_SPANS: usize = SLOTS as usize;

/// Slots in a row that one server has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span<S> {
    pub(super) first: u16,
    pub(super) last: u16,
    pub(super) server: S,
}

/// All spans, in order. Without any: not known yet.
#[derive(Debug, Default)]
pub(super) struct Map {
    spans: Vec<Span<Arc<Server>>>,
    since: Timestamp,
}

impl Map {
    pub(super) fn new(mut spans: Vec<Span<Arc<Server>>>, now: Timestamp) -> Self {
        spans.sort_by_key(|span| span.first);
        Self { spans, since: now }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Who has a slot.
    pub(super) fn server(&self, slot: u16) -> Option<Arc<Server>> {
        let after = self.spans.partition_point(|span| span.first <= slot);
        let span = self.spans.get(after.checked_sub(1)?)?;
        (slot <= span.last).then(|| Arc::clone(&span.server))
    }

    /// Each server that has slots, once.
    pub(super) fn servers(&self) -> impl Iterator<Item = &Arc<Server>> {
        let mut servers: Vec<_> = self.spans.iter().map(|span| &span.server).collect();
        servers.sort_by_key(|server| server.address());
        servers.dedup_by_key(|server| server.address());
        servers.into_iter()
    }

    /// The first slot that nobody has, in words, and since when that is known.
    pub(super) fn gap(&self) -> Option<(Timestamp, String)> {
        let mut next = 0;
        for span in &self.spans {
            if span.first > next {
                break;
            }
            next = next.max(span.last + 1);
        }
        let why = || format!("slot {next} of the cluster has no server");
        (next < SLOTS).then(|| (self.since, why()))
    }
}

/// Reads the answer to `CLUSTER SLOTS`: `[[first, last, [host, port, ..], replica ..] ..]`. A
/// server that does not know its own name says none: it is called as `oracle` was.
pub(super) fn parse(answer: &Value, oracle: &Address) -> Option<Vec<Span<Address>>> {
    let Value::Array(spans) = answer else {
        return None;
    };
    if spans.len() > MAX_SPANS {
        return None;
    }
    spans.iter().map(|span| parse_span(span, oracle)).collect()
}

fn parse_span(span: &Value, oracle: &Address) -> Option<Span<Address>> {
    let Value::Array(parts) = span else {
        return None;
    };
    let [
        Value::Int(first),
        Value::Int(last),
        Value::Array(primary),
        ..,
    ] = parts.as_slice()
    else {
        return None;
    };
    let [host, Value::Int(port), ..] = primary.as_slice() else {
        return None;
    };
    let host = match host {
        Value::BulkString(host) => String::from_utf8(host.clone()).ok()?,
        Value::Nil => String::new(),
        _ => return None,
    };
    let server = Address::new(host, u16::try_from(*port).ok()?).or_host_of(oracle);
    let (first, last) = (u16::try_from(*first).ok()?, u16::try_from(*last).ok()?);
    (first <= last && last < SLOTS).then_some(Span {
        first,
        last,
        server,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    fn span(first: i64, last: i64, host: Value, port: i64) -> Value {
        let primary = Value::Array(vec![host, Value::Int(port), text("id")]);
        let replica = Value::Array(vec![text("replica"), Value::Int(1), text("id")]);
        Value::Array(vec![Value::Int(first), Value::Int(last), primary, replica])
    }

    #[test]
    fn a_span_is_its_primary_s() {
        let oracle = Address::new("oracle", 1);
        let answer = Value::Array(vec![
            span(0, 9, text("a"), 7),
            span(10, 16_383, Value::Nil, 8),
            span(5, 5, text("?"), 9),
        ]);
        let server = |first, last, host: &str, port| Span {
            first,
            last,
            server: Address::new(host, port),
        };
        let expected = [
            server(0, 9, "a", 7),
            server(10, 16_383, "oracle", 8),
            server(5, 5, "oracle", 9),
        ];
        assert_eq!(parse(&answer, &oracle).as_deref(), Some(&expected[..]));
        assert_eq!(parse(&Value::Array(Vec::new()), &oracle), Some(Vec::new()));
    }

    #[test]
    fn anything_else_is_no_map() {
        let oracle = Address::new("oracle", 1);
        for wrong in [
            span(0, 16_384, text("a"), 7),
            span(-1, 1, text("a"), 7),
            span(2, 1, text("a"), 7),
            span(0, 1, text("a"), 70_000),
            span(0, 1, Value::Okay, 7),
            Value::Array(vec![Value::Int(0), Value::Int(1)]),
            Value::Nil,
        ] {
            assert_eq!(parse(&Value::Array(vec![wrong]), &oracle), None);
        }
        assert_eq!(parse(&Value::Okay, &oracle), None);
    }
}
