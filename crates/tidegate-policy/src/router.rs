//! The routes of a policy, found without looking at each.
//!
//! Routes are filed by host, and below it in a tree by the plain text segments that their path
//! begins with. A request looks only at the lists along its own path, for its own host, the
//! hosts above it that have a wildcard, and for routes without a host: what it costs depends on
//! how many routes could match it, not on how many there are. Order is kept: of all that match,
//! the lowest index wins.

use std::collections::HashMap;
use std::ops::Deref;

use crate::host_pattern::HostPattern;
use crate::key::without_root_dot;
use crate::path_pattern::{PathPattern, split_segment};
use crate::request::Request;
use crate::route::Route;

/// Routes in their order, with an index to find the first that matches.
///
/// It is a slice of [`Route`] to read; to change it, make another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes {
    in_order: Vec<Route>,
    /// Roots by host: in lower case, of a wildcard from its first dot on.
    hosts: HashMap<Box<[u8]>, usize>,
    has_wildcards: bool,
    /// The root for routes without a host.
    any_host: Option<usize>,
    nodes: Vec<Node>,
}

/// A place in the tree: routes whose plain beginning ends here, and what may follow it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Node {
    /// In ascending order.
    routes: Vec<usize>,
    children: HashMap<Box<str>, usize>,
}

impl Routes {
    /// Files `routes`, in this order.
    pub fn new(routes: Vec<Route>) -> Self {
        let mut filed = Self::default();
        for (index, route) in routes.iter().enumerate() {
            let mut at = filed.root_of(route.matcher.host.as_ref());
            for segment in route
                .matcher
                .path
                .iter()
                .flat_map(PathPattern::literal_prefix)
            {
                at = filed.child_of(at, segment);
            }
            filed.nodes[at].routes.push(index);
        }
        filed.in_order = routes;
        filed
    }

    /// The first route that matches. Allocates nothing.
    pub fn find(&self, request: &dyn Request) -> Option<&Route> {
        let mut best = self.in_order.len();
        let path = request.path();
        let mut look = |root: usize| {
            let mut rest = path.strip_prefix('/');
            let mut at = Some(root);
            while let Some(node) = at.map(|at| &self.nodes[at]) {
                let earlier = node.routes.iter().take_while(|&&index| index < best);
                let mut matching =
                    earlier.filter(|&&index| self.in_order[index].matcher.matches(request));
                if let Some(&index) = matching.next() {
                    best = index;
                }
                let Some(text) = rest else { break };
                let (head, tail) = split_segment(text);
                at = node.children.get(head).copied();
                rest = tail;
            }
        };
        if !self.hosts.is_empty()
            && let Some(host) = request.host()
        {
            self.each_host_root(host, &mut look);
        }
        if let Some(root) = self.any_host {
            look(root);
        }
        self.in_order.get(best)
    }

    /// Calls `look` with the roots of `host` and of the wildcards that it is of.
    fn each_host_root(&self, host: &str, look: &mut dyn FnMut(usize)) {
        let host = without_root_dot(host).as_bytes();
        let mut buffer = [0; HostPattern::MAX_BYTES];
        let Some(lower) = buffer.get_mut(..host.len()) else {
            return;
        };
        lower.copy_from_slice(host);
        lower.make_ascii_lowercase();
        let lower = &*lower;
        if let Some(&root) = self.hosts.get(lower) {
            look(root);
        }
        if self.has_wildcards {
            for (at, _) in lower
                .iter()
                .enumerate()
                .skip(1)
                .filter(|(_, byte)| **byte == b'.')
            {
                if let Some(&root) = self.hosts.get(&lower[at..]) {
                    look(root);
                }
            }
        }
    }

    /// For each route that an earlier one surely hides, both their indices, the hidden one
    /// first. Gives up looking after [`Self::MAX_HIDDEN_CHECKS`] comparisons.
    pub(crate) fn hidden(&self) -> Vec<(usize, usize)> {
        let mut checks = 0;
        let mut found = Vec::new();
        for (index, route) in self.in_order.iter().enumerate() {
            let mut cover = None;
            self.each_node_above(route, &mut |node| {
                for &earlier in node.routes.iter().take_while(|&&earlier| earlier < index) {
                    checks += 1;
                    if checks > Self::MAX_HIDDEN_CHECKS {
                        return;
                    }
                    if self.in_order[earlier].matcher.covers(&route.matcher) {
                        cover = Some(cover.map_or(earlier, |first: usize| first.min(earlier)));
                        return;
                    }
                }
            });
            found.extend(cover.map(|earlier| (index, earlier)));
            if checks > Self::MAX_HIDDEN_CHECKS {
                break;
            }
        }
        found
    }

    /// Comparisons that a search for hidden routes may take: some tens of milliseconds.
    const MAX_HIDDEN_CHECKS: usize = 1_000_000;

    /// Calls `look` with every node that may hold a route which covers `route`: a pattern
    /// covers another only if its plain beginning is a beginning of the other's.
    fn each_node_above(&self, route: &Route, look: &mut dyn FnMut(&Node)) {
        let mut below = |root: usize| {
            let mut at = root;
            look(&self.nodes[at]);
            for segment in route
                .matcher
                .path
                .iter()
                .flat_map(PathPattern::literal_prefix)
            {
                let Some(&child) = self.nodes[at].children.get(segment) else {
                    break;
                };
                at = child;
                look(&self.nodes[at]);
            }
        };
        if let Some(host) = &route.matcher.host {
            let text = host.index_text();
            if let Some(&root) = self.hosts.get(text.as_bytes()) {
                below(root);
            }
            for (at, _) in text.match_indices('.').filter(|&(at, _)| at > 0) {
                if let Some(&root) = self.hosts.get(&text.as_bytes()[at..]) {
                    below(root);
                }
            }
        }
        if let Some(root) = self.any_host {
            below(root);
        }
    }

    fn root_of(&mut self, host: Option<&HostPattern>) -> usize {
        let fresh = self.nodes.len();
        let root = match host {
            None => *self.any_host.get_or_insert(fresh),
            Some(host) => {
                self.has_wildcards |= host.is_wildcard();
                *self
                    .hosts
                    .entry(Box::from(host.index_text().as_bytes()))
                    .or_insert(fresh)
            }
        };
        self.push_node_at(root);
        root
    }

    fn child_of(&mut self, parent: usize, segment: &str) -> usize {
        let fresh = self.nodes.len();
        let child = *self.nodes[parent]
            .children
            .entry(Box::from(segment))
            .or_insert(fresh);
        self.push_node_at(child);
        child
    }

    fn push_node_at(&mut self, index: usize) {
        if index == self.nodes.len() {
            self.nodes.push(Node::default());
        }
    }
}

impl From<Vec<Route>> for Routes {
    fn from(routes: Vec<Route>) -> Self {
        Self::new(routes)
    }
}

impl FromIterator<Route> for Routes {
    fn from_iter<I: IntoIterator<Item = Route>>(routes: I) -> Self {
        Self::new(routes.into_iter().collect())
    }
}

impl Deref for Routes {
    type Target = [Route];

    fn deref(&self) -> &[Route] {
        &self.in_order
    }
}

impl<'a> IntoIterator for &'a Routes {
    type Item = &'a Route;
    type IntoIter = std::slice::Iter<'a, Route>;

    fn into_iter(self) -> Self::IntoIter {
        self.in_order.iter()
    }
}

#[cfg(test)]
mod tests;
