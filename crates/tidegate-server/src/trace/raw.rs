//! A line as its JSON has it.

use std::fmt;
use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::{TraceLine, TraceRequest, head};

/// Every field that any kind of line has; which of them go together is seen afterwards.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    at_ns: u64,
    client_ip: Option<IpAddr>,
    method: Option<String>,
    host: Option<String>,
    path: Option<String>,
    headers: Option<Headers>,
    permits: Option<u64>,
    limits: Option<Vec<String>>,
    timeout_ns: Option<u64>,
    peek: Option<bool>,
    policy: Option<String>,
    release: Option<usize>,
}

impl Line {
    pub(super) fn into_line(self) -> Result<TraceLine, String> {
        let at_ns = self.at_ns;
        let of_request = self.client_ip.is_some()
            || self.method.is_some()
            || self.host.is_some()
            || self.path.is_some()
            || self.headers.is_some()
            || self.permits.is_some()
            || self.limits.is_some()
            || self.timeout_ns.is_some()
            || self.peek.is_some();
        match (self.policy, self.release) {
            (Some(_), Some(_)) => Err("`policy` and `release` are two lines".to_owned()),
            (Some(_), None) if of_request => {
                Err("a line with `policy` has nothing else but `at_ns`".to_owned())
            }
            (None, Some(_)) if of_request => {
                Err("a line with `release` has nothing else but `at_ns`".to_owned())
            }
            (Some(policy), None) => Ok(TraceLine::Reload { at_ns, policy }),
            (None, Some(line)) => Ok(TraceLine::Release { at_ns, line }),
            (None, None) => {
                let parts = head(
                    self.method.as_deref().unwrap_or("GET"),
                    self.host.as_deref(),
                    self.path.as_deref().unwrap_or("/"),
                    self.headers.map_or_else(Vec::new, |headers| headers.0),
                )?;
                Ok(TraceLine::Request(Box::new(TraceRequest {
                    at_ns,
                    client_ip: self.client_ip,
                    parts,
                    permits: self.permits.unwrap_or(1),
                    limits: self.limits,
                    timeout_ns: self.timeout_ns,
                    peek: self.peek.unwrap_or(false),
                })))
            }
        }
    }
}

/// Headers in their order: a map (in which a name may come twice), or a list of pairs.
#[derive(Debug)]
struct Headers(Vec<(String, Vec<u8>)>);

impl<'de> Deserialize<'de> for Headers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(HeadersVisitor)
    }
}

struct HeadersVisitor;

impl<'de> Visitor<'de> for HeadersVisitor {
    type Value = Headers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of headers, or a list of [name, value]")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Headers, A::Error> {
        let mut headers = Vec::new();
        while let Some((name, value)) = map.next_entry::<String, HeaderBytes>()? {
            headers.push((name, value.0));
        }
        Ok(Headers(headers))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Headers, A::Error> {
        let mut headers = Vec::new();
        while let Some((name, value)) = list.next_element::<(String, HeaderBytes)>()? {
            headers.push((name, value.0));
        }
        Ok(Headers(headers))
    }
}

/// A value: text, or `{"base64": "..."}`.
#[derive(Debug)]
struct HeaderBytes(Vec<u8>);

#[derive(Deserialize)]
#[serde(untagged, expecting = "a value is a string, or {\"base64\": \"...\"}")]
enum TextOrBase64 {
    Text(String),
    Base64(Base64),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Base64 {
    base64: String,
}

impl<'de> Deserialize<'de> for HeaderBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match TextOrBase64::deserialize(deserializer)? {
            TextOrBase64::Text(text) => Ok(Self(text.into_bytes())),
            TextOrBase64::Base64(Base64 { base64 }) => STANDARD
                .decode(&base64)
                .map(Self)
                .map_err(|error| D::Error::custom(format!("`{base64}` is no base64: {error}"))),
        }
    }
}
