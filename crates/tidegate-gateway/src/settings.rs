//! One version of the policy, as one core uses it.

use std::rc::Rc;
use std::time::Duration;

use http::HeaderName;
use tidegate_http::TrustedProxies;
use tidegate_policy::{DebugHeader, Gateway, LimitHeaders, Policy};

use crate::access_log;
use crate::patience::MinRate;
use crate::phrases::Phrases;
use crate::refusal::Refusals;
use crate::upstream::{Server, Upstream};

/// What requests and connections look up; rebuilt when the policy has been reloaded.
///
/// Addresses to listen on, the bounds of a request's header and the number of connections are
/// those of the policy that the gateway was started with.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) revision: u64,
    pub(crate) trusted: TrustedProxies,
    pub(crate) upstreams: Box<[Rc<Upstream>]>,
    pub(crate) headers: LimitHeaders,
    pub(crate) phrases: Phrases,
    pub(crate) refusals: Refusals,
    pub(crate) access_log: Option<access_log::Rules>,
    /// Who may ask what each limit said.
    pub(crate) debug_header: Option<DebugHeader>,
    /// The header that ids of requests are in.
    pub(crate) request_id: Option<HeaderName>,
    pub(crate) timeouts: Timeouts,
}

/// How long a connection may wait for what, and how long it may last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    pub(crate) header: Duration,
    pub(crate) idle: Duration,
    pub(crate) connect: Duration,
    pub(crate) response: Duration,
    /// Of a request's body.
    pub(crate) body_rate: MinRate,
    /// Of what the client is sent.
    pub(crate) response_rate: MinRate,
    pub(crate) max_connection_age: Duration,
    pub(crate) max_requests_per_connection: u64,
    /// No longer than the shortest of the above, but for a lower bound that keeps connections
    /// from looking at the clock all the time. And no longer than it takes to notice that a
    /// connection rests.
    pub(crate) tick: Duration,
}

impl Settings {
    pub(crate) fn new(
        revision: u64,
        policy: &Policy,
        mut server: impl FnMut(&str) -> Rc<Server>,
    ) -> Self {
        let default = Gateway::default();
        let gateway = policy.gateway.as_ref().unwrap_or(&default);
        let upstreams = policy.upstreams.iter();
        Self {
            revision,
            trusted: TrustedProxies::new(gateway.trusted_proxies.iter().copied()),
            upstreams: upstreams
                .map(|one| Rc::new(Upstream::new(one, &mut server)))
                .collect(),
            headers: gateway.headers,
            phrases: Phrases::default(),
            refusals: Refusals::new(policy),
            access_log: gateway.access_log.as_ref().map(access_log::Rules::new),
            debug_header: gateway.debug_header.clone(),
            request_id: (gateway.request_id.as_ref())
                .and_then(|name| HeaderName::from_bytes(name.as_bytes()).ok()),
            timeouts: Timeouts::of(gateway),
        }
    }
}

impl Timeouts {
    /// Shorter timeouts than this are kept less exactly than the others.
    const MIN_TICK: Duration = Duration::from_millis(10);
    const MAX_TICK: Duration = Duration::from_secs(4);

    fn of(gateway: &Gateway) -> Self {
        let header = gateway.header_timeout;
        let idle = gateway.idle_timeout;
        let response = gateway.response_timeout;
        let tick = header.min(idle).min(response).min(Self::MAX_TICK);
        let tick = tick.max(Self::MIN_TICK);
        let min_rate = |bytes_per_second| MinRate {
            bytes_per_second,
            grace: gateway.min_rate_grace,
            most: response,
        };
        Self {
            header,
            idle,
            connect: gateway.connect_timeout,
            response,
            body_rate: min_rate(gateway.min_body_rate),
            response_rate: min_rate(gateway.min_response_rate),
            max_connection_age: gateway.max_connection_age,
            max_requests_per_connection: gateway.max_requests_per_connection,
            tick,
        }
    }
}
