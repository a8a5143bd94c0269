//! A whole policy.

use std::ops::Range;

use crate::admin::Admin;
use crate::gateway::Gateway;
use crate::limit_rule::LimitRule;
use crate::redis::RedisSettings;
use crate::request::Request;
use crate::route::Route;
use crate::state::StateSettings;
use crate::upstream::Upstream;

/// What a policy file says, with every name resolved to an index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Which edition it is, counting up; 0 where that is not said. While nodes have different
    /// ones, the newest says how what they share is counted.
    pub version: u64,
    /// Limits, in the order of the file; one of several rates is as many of these in a row.
    pub limits: Vec<LimitRule>,
    /// Upstreams, in the order of the file.
    pub upstreams: Vec<Upstream>,
    /// The reverse proxy, if there is to be one.
    pub gateway: Option<Gateway>,
    /// What nodes share their limits through, if they do.
    pub redis: Option<RedisSettings>,
    /// Where the counts of limits are kept that survive a restart, if there are to be any.
    pub state: Option<StateSettings>,
    /// The admin port, if there is to be one.
    pub admin: Option<Admin>,
}

impl Policy {
    /// The highest version: what text formats read as whole numbers without loss.
    pub const MAX_VERSION: u64 = (1 << 53) - 1;

    /// The route that `request` takes: the first that matches. Allocates nothing.
    pub fn route(&self, request: &dyn Request) -> Option<&Route> {
        self.gateway.as_ref()?.routes.find(request)
    }

    /// Where the rules of the limit `name` stand among the [`limits`](Self::limits): one for each
    /// of its rates. What a rate but the first is called is no limit's name.
    pub fn limit_named(&self, name: &str) -> Option<Range<usize>> {
        let is_it = |rule: &LimitRule| rule.rate_index == 0 && rule.limit.name() == name;
        let start = self.limits.iter().position(is_it)?;
        let rest = self.limits.get(start + 1..).unwrap_or_default();
        let more = rest.iter().take_while(|rule| rule.rate_index > 0).count();
        Some(start..start + 1 + more)
    }

    /// How much of an IPv6 address is "the client".
    pub fn ipv6_prefix(&self) -> u8 {
        self.gateway
            .as_ref()
            .map_or(Gateway::DEFAULT_IPV6_PREFIX, |gateway| gateway.ipv6_prefix)
    }
}
