//! Routes: which requests go where, under which limits.

use crate::access::Access;
use crate::host_pattern::HostPattern;
use crate::path_pattern::PathPattern;
use crate::request::Request;

/// Requests that match go to one upstream, under some limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// What it is called; no two of a policy are called the same.
    pub id: String,
    /// Which requests take it.
    pub matcher: RouteMatch,
    /// Where they go: an index into [`Policy::upstreams`](crate::Policy::upstreams).
    pub upstream: usize,
    /// What they are held to: indices into [`Policy::limits`](crate::Policy::limits).
    pub limits: Vec<usize>,
    /// Who may take it.
    pub access: Access,
}

/// Which requests take a route: those of which everything here holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteMatch {
    /// The path is of this pattern.
    pub path: Option<PathPattern>,
    /// The host is of this pattern.
    pub host: Option<HostPattern>,
    /// The method is one of these; any, if empty.
    pub methods: Vec<String>,
    /// Each of these headers (named in lower case) has exactly this value.
    pub headers: Vec<(String, Box<[u8]>)>,
}

impl RouteMatch {
    /// Whether `request` takes the route.
    pub fn matches(&self, request: &dyn Request) -> bool {
        let method = || {
            let method = request.method();
            self.methods.is_empty() || self.methods.iter().any(|of_route| of_route == method)
        };
        let path = || {
            self.path
                .as_ref()
                .is_none_or(|path| path.matches(request.path()))
        };
        let host = || match &self.host {
            None => true,
            Some(pattern) => request.host().is_some_and(|host| pattern.matches(host)),
        };
        let headers = || {
            self.headers.iter().all(|(name, value)| {
                request
                    .header(name)
                    .is_some_and(|sent| sent.as_ref() == value.as_ref())
            })
        };
        method() && path() && host() && headers()
    }

    /// Whether every request that `other` matches is surely matched by this too. False may
    /// mean that nobody has found out.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let methods = self.methods.is_empty()
            || (!other.methods.is_empty()
                && other
                    .methods
                    .iter()
                    .all(|method| self.methods.contains(method)));
        let headers = self
            .headers
            .iter()
            .all(|header| other.headers.contains(header));
        let host = match (&self.host, &other.host) {
            (None, _) => true,
            (Some(ours), Some(theirs)) => ours.covers(theirs),
            (Some(_), None) => false,
        };
        let path = || match (&self.path, &other.path) {
            (None, _) => true,
            (Some(ours), Some(theirs)) => ours.covers(theirs),
            (Some(_), None) => false,
        };
        methods && headers && host && path()
    }
}
