//! What the gateway listens on, trusts, bounds and routes.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::time::Duration;

use ipnet::IpNet;

use crate::access::Access;
use crate::key::masked;
use crate::observe::{AccessLog, DebugHeader, LimitHeaders};
use crate::router::Routes;

/// The reverse proxy's part of a policy. [`Default`] is what a policy file gets that says
/// nothing, except that it has no route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// Addresses it listens on; loopback unless the policy says otherwise.
    pub listen: Vec<SocketAddr>,
    /// Peers whose `X-Forwarded-For` is believed; nobody's by default.
    pub trusted_proxies: Vec<IpNet>,
    /// How many leading bits of an IPv6 address are "the client".
    pub ipv6_prefix: u8,
    /// Who may come in.
    pub access: Access,
    /// Routes; the first that matches wins.
    pub routes: Routes,
    /// What answers tell clients of limits.
    pub headers: LimitHeaders,
    /// Where a line for each request goes.
    pub access_log: Option<AccessLog>,
    /// The header that has a request's id, in lower case; `None` where requests have none.
    pub request_id: Option<String>,
    /// Who may ask what each limit answered; nobody by default.
    pub debug_header: Option<DebugHeader>,
    /// Longest time from a request's first byte to the end of its header.
    pub header_timeout: Duration,
    /// Longest time a client connection rests between two requests.
    pub idle_timeout: Duration,
    /// Longest time to connect to an upstream server.
    pub connect_timeout: Duration,
    /// Longest time until an upstream server begins its answer.
    pub response_timeout: Duration,
    /// Slowest rate at which a client sends a request's body, in bytes per second; 0 for any.
    pub min_body_rate: u64,
    /// Slowest rate at which a client takes a response, in bytes per second; 0 for any.
    pub min_response_rate: u64,
    /// How long a client may be slower than that.
    pub min_rate_grace: Duration,
    /// Largest request header, in bytes.
    pub max_header_bytes: usize,
    /// Largest trailer section of a request, in bytes.
    pub max_trailer_bytes: usize,
    /// Most header fields of a request, and most trailer fields.
    pub max_headers: usize,
    /// Longest time that a client connection is kept for further requests.
    pub max_connection_age: Duration,
    /// Most requests of a client connection.
    pub max_requests_per_connection: u64,
    /// Most client connections at once.
    pub max_connections: usize,
    /// What becomes of the next one.
    pub when_full: WhenFull,
    /// Most connections at once of one client that is no trusted proxy; `None`: no bound.
    pub max_connections_per_client: Option<NonZeroU32>,
    /// Most connections that the kernel holds for one listening socket until they are accepted.
    pub accept_queue: u32,
    /// Longest time that requests in flight are given when the gateway stops.
    pub shutdown_timeout: Duration,
}

/// What becomes of connections above `max_connections`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// They wait in the kernel until there is a place.
    #[default]
    Wait,
    /// They are closed, with a short answer.
    Refuse,
}

impl Gateway {
    /// How much of an IPv6 address counts by default: what one customer line is given.
    pub const DEFAULT_IPV6_PREFIX: u8 = 64;

    /// The client that `address` counts as: of IPv6, its `ipv6_prefix`.
    pub fn client_of(&self, address: IpAddr) -> IpAddr {
        masked(address, self.ipv6_prefix)
    }
}

impl Default for Gateway {
    fn default() -> Self {
        Self {
            listen: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 8080))],
            trusted_proxies: Vec::new(),
            ipv6_prefix: Self::DEFAULT_IPV6_PREFIX,
            access: Access::default(),
            routes: Routes::default(),
            headers: LimitHeaders::default(),
            access_log: None,
            request_id: None,
            debug_header: None,
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_mins(1),
            connect_timeout: Duration::from_secs(2),
            response_timeout: Duration::from_mins(1),
            min_body_rate: 240,
            min_response_rate: 240,
            min_rate_grace: Duration::from_secs(10),
            max_header_bytes: 32 * 1024,
            max_trailer_bytes: 8 * 1024,
            max_headers: 100,
            max_connection_age: Duration::from_hours(1),
            max_requests_per_connection: 10_000,
            max_connections: 10_000,
            when_full: WhenFull::Wait,
            max_connections_per_client: None,
            accept_queue: 4096,
            shutdown_timeout: Duration::from_secs(30),
        }
    }
}
