//! `gateway:` and `admin:`

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::{
    AccessLogFile, DebugHeaderFile, DurationText, Field, HeadersFile, Map, MapOrText, OneOrMany,
    Scalar, SizePerSecondText, SizeText,
};

/// The reverse proxy.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename = "the gateway", expecting = "a map with routes")]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Gateway")]
pub(crate) struct GatewayFile {
    /// Addresses to listen on, each `IP:PORT`. Default: `127.0.0.1:8080`.
    pub(crate) listen: Field<OneOrMany<String>>,
    /// Addresses or networks whose `X-Forwarded-For` is believed. Default: none.
    pub(crate) trusted_proxies: Field<OneOrMany<String>>,
    /// How many leading bits of an IPv6 address are "the client". Default: 64.
    pub(crate) ipv6_prefix: Field<u64>,
    /// Who may come in. Default: everybody.
    pub(crate) access: Field<AccessFile>,
    /// Routes; the first that matches wins.
    pub(crate) routes: Field<Vec<Field<RouteFile>>>,
    /// What answers tell clients of limits.
    pub(crate) headers: Field<HeadersFile>,
    /// The same as `headers.rate_limit`.
    pub(crate) rate_limit_headers: Field<bool>,
    /// The same as `headers.x_rate_limit`.
    pub(crate) x_rate_limit_headers: Field<bool>,
    /// A line for each request: a file, `stdout`, or a map. Default: none.
    pub(crate) access_log: Field<MapOrText<AccessLogFile>>,
    /// Whether requests have an id: `true` for `X-Request-Id`, or the name of a header.
    /// Default: false.
    pub(crate) request_id: Field<Scalar>,
    /// Who may ask with `X-Tidegate-Debug` what each limit answered. Default: nobody.
    pub(crate) debug_header: Field<DebugHeaderFile>,
    /// Longest time to receive a request's header. Default: 10s.
    pub(crate) header_timeout: Field<DurationText>,
    /// Longest time a client connection rests. Default: 60s.
    pub(crate) idle_timeout: Field<DurationText>,
    /// Longest time to connect to an upstream server. Default: 2s.
    pub(crate) connect_timeout: Field<DurationText>,
    /// Longest time until an upstream server begins its answer. Default: 60s.
    pub(crate) response_timeout: Field<DurationText>,
    /// Slowest rate at which a client sends a body; 0 for any. Default: 240B/s.
    pub(crate) min_body_rate: Field<SizePerSecondText>,
    /// Slowest rate at which a client takes an answer; 0 for any. Default: 240B/s.
    pub(crate) min_response_rate: Field<SizePerSecondText>,
    /// How long a client may be slower than that. Default: 10s.
    pub(crate) min_rate_grace: Field<DurationText>,
    /// Largest request header. Default: 32KiB.
    pub(crate) max_header_bytes: Field<SizeText>,
    /// Largest trailer section of a request. Default: 8KiB.
    pub(crate) max_trailer_bytes: Field<SizeText>,
    /// Most header fields of a request, and most trailer fields. Default: 100.
    pub(crate) max_headers: Field<u64>,
    /// Longest time that a client connection is kept for further requests. Default: 1h.
    pub(crate) max_connection_age: Field<DurationText>,
    /// Most requests of a client connection. Default: 10000.
    pub(crate) max_requests_per_connection: Field<u64>,
    /// Most client connections at once. Default: 10000.
    pub(crate) max_connections: Field<u64>,
    /// What becomes of connections above that. Default: wait.
    pub(crate) when_full: Field<WhenFullName>,
    /// Most connections at once of one client: an IPv4 address, or the `ipv6_prefix` of an IPv6
    /// address. Trusted proxies are not counted. Default: no bound.
    pub(crate) max_connections_per_client: Field<u64>,
    /// Most connections that the kernel holds for each listening socket until they are accepted.
    /// Default: 4096.
    pub(crate) accept_queue: Field<u64>,
    /// Longest time that requests in flight are given when the gateway stops. Default: 30s.
    pub(crate) shutdown_timeout: Field<DurationText>,
}

/// What becomes of connections above `max_connections`.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(
    rename = "when_full",
    rename_all = "snake_case",
    expecting = "wait or refuse"
)]
#[schemars(rename = "WhenFull")]
pub(crate) enum WhenFullName {
    /// They wait in the kernel until there is a place.
    Wait,
    /// They are closed, with a short answer (503).
    Refuse,
}

/// Requests that match go to one upstream, under some limits.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(
    rename = "a route",
    expecting = "a route such as { id: shop, match: { path: \"/**\" }, upstream: shop }"
)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Route", extend("required" = ["id", "upstream"]))]
pub(crate) struct RouteFile {
    /// What it is called; unique.
    pub(crate) id: Field<String>,
    /// Which requests take it. Default: all.
    #[serde(rename = "match")]
    pub(crate) matcher: Field<MatchFile>,
    /// Where they go.
    pub(crate) upstream: Field<String>,
    /// What they are held to: names of limits.
    pub(crate) limits: Field<OneOrMany<String>>,
    /// Who may take it, of those who may come in. Default: everybody.
    pub(crate) access: Field<AccessFile>,
}

/// Who may come in: parts of requests, as in keys, and values that they may or may not have.
/// Addresses may be networks.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(
    rename = "access",
    expecting = "lists such as { deny: { client_ip: [192.0.2.0/24] } }"
)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Access", extend("minProperties" = 1))]
pub(crate) struct AccessFile {
    /// Only requests of which one part has one of these values.
    pub(crate) allow: Field<Map<OneOrMany<Scalar>>>,
    /// No request of which one part has one of these values.
    pub(crate) deny: Field<Map<OneOrMany<Scalar>>>,
}

/// Which requests take a route: those of which everything here holds.
#[derive(Debug, Deserialize)]
pub(crate) struct MatchFile(Map<OneOrMany<Scalar>>);

impl MatchFile {
    /// The keys that need no name.
    pub(crate) const KEYS: [&str; 3] = ["path", "host", "method"];

    pub(crate) fn conditions(&self) -> &Map<OneOrMany<Scalar>> {
        &self.0
    }
}

impl JsonSchema for MatchFile {
    fn schema_name() -> Cow<'static, str> {
        "Match".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<Scalar>();
        json_schema!({
            "type": "object",
            "description": "Which requests take a route: those of which everything here holds.",
            "properties": {
                "path": {
                    "type": "string",
                    "pattern": "^/",
                    "description": "`*` within a segment, `**` across, `{name}` one segment.",
                    "examples": ["/api/**", "/users/{id}"],
                },
                "host": {
                    "type": "string",
                    "description": "A host, or `*.example.com` for all names below one.",
                },
                "method": {
                    "anyOf": [
                        { "type": "string" },
                        { "type": "array", "items": { "type": "string" } },
                    ],
                    "description": "One method or a list of them.",
                },
            },
            "patternProperties": { "^header:": value },
            "additionalProperties": false,
        })
    }
}

/// The admin port.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(
    rename = "admin",
    expecting = "a map such as { listen: 127.0.0.1:8090 }"
)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Admin")]
pub(crate) struct AdminFile {
    /// The address to listen on, `IP:PORT`. Default: `127.0.0.1:8090`.
    pub(crate) listen: Field<String>,
}
