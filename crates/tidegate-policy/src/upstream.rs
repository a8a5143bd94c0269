//! Where requests go when they may go ahead.

/// A named destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// What routes call it.
    pub name: String,
    /// Servers, or something built in.
    pub kind: UpstreamKind,
    /// How requests are spread over its servers.
    pub balance: Balance,
}

/// What answers for an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamKind {
    /// Built in: answers with what it was asked, as JSON. For trying a policy out.
    Echo,
    /// HTTP servers, each `host:port`; never empty.
    Servers(Vec<String>),
}

/// How requests are spread over the servers of an upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balance {
    /// One after the other.
    #[default]
    RoundRobin,
}
