//! What a door asks of a node.

use std::time::Duration;

use tidegate::Timestamp;
use tidegate_policy::Request;

/// A request, and the limits that it is to meet.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The request.
    pub request: &'a dyn Request,
    /// The id of the route it takes; empty if none.
    pub route: &'a str,
    /// Limits, by their index in the policy.
    pub limits: &'a [usize],
    /// How many permits it takes of each.
    pub permits: u64,
    /// How long the caller would wait; `None` for as long as the limits themselves allow.
    pub max_wait: Option<Duration>,
    /// Whether nothing is to be taken.
    pub peek: bool,
    /// What time it is.
    pub now: Timestamp,
}

impl std::fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the request: what it carries may be secret.
        f.debug_struct("Call")
            .field("route", &self.route)
            .field("limits", &self.limits)
            .field("permits", &self.permits)
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}
