//! A whole policy.

use crate::admin::Admin;
use crate::gateway::Gateway;
use crate::limit_rule::LimitRule;
use crate::request::Request;
use crate::route::Route;
use crate::upstream::Upstream;

/// What a policy file says, with every name resolved to an index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Limits, in the order of the file.
    pub limits: Vec<LimitRule>,
    /// Upstreams, in the order of the file.
    pub upstreams: Vec<Upstream>,
    /// The reverse proxy, if there is to be one.
    pub gateway: Option<Gateway>,
    /// The admin port, if there is to be one.
    pub admin: Option<Admin>,
}

impl Policy {
    /// The route that `request` takes: the first that matches. Allocates nothing.
    pub fn route(&self, request: &dyn Request) -> Option<&Route> {
        self.gateway.as_ref()?.routes.find(request)
    }

    /// How much of an IPv6 address is "the client".
    pub fn ipv6_prefix(&self) -> u8 {
        self.gateway
            .as_ref()
            .map_or(Gateway::DEFAULT_IPV6_PREFIX, |gateway| gateway.ipv6_prefix)
    }
}
