//! Who may come in: lists of addresses, and of values of any part of a request.

use std::collections::HashSet;

use ipnet::IpNet;
use prefix_trie::joint::JointPrefixSet;
use smallvec::SmallVec;

use crate::key::KeyPart;
use crate::request::Request;

/// Who may come in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Where this is not empty, only who is in it.
    pub allow: Lists,
    /// Nobody who is in it.
    pub deny: Lists,
}

/// Why a request may not come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial<'a> {
    /// This part of it is on the list of those who may not.
    Denied(&'a KeyPart),
    /// It is on none of the lists of those who may.
    NotAllowed,
}

impl Access {
    /// Why `request` may not come in; `None`: it may.
    pub fn denial(&self, request: &dyn Request, route: &str) -> Option<Denial<'_>> {
        if let Some(part) = self.deny.find(request, route) {
            return Some(Denial::Denied(part));
        }
        let is_allowed = self.allow.is_empty() || self.allow.find(request, route).is_some();
        (!is_allowed).then_some(Denial::NotAllowed)
    }
}

/// Values of parts of a request. A request is on them if any part of it is. What a look-up costs
/// does not depend on how many values there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lists(Vec<List>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct List {
    part: KeyPart,
    values: Values,
}

#[derive(Clone, Debug)]
enum Values {
    Networks(Box<JointPrefixSet<IpNet>>),
    /// As [`KeyPart::write_value`] writes them.
    Texts(HashSet<Box<[u8]>>),
}

impl PartialEq for Values {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Networks(ours), Self::Networks(theirs)) => ours.iter().eq(theirs.iter()),
            (Self::Texts(ours), Self::Texts(theirs)) => ours == theirs,
            _ => false,
        }
    }
}

impl Eq for Values {}

impl Lists {
    /// Most values of all lists of one place in a policy.
    pub const MAX_VALUES: usize = 100_000;

    /// Whether nobody is on them.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds networks of client addresses; no matter how many leading bits of an IPv6 address are
    /// "the client" elsewhere.
    pub fn add_networks(&mut self, networks: impl IntoIterator<Item = IpNet>) {
        let networks = networks.into_iter().map(|network| network.trunc());
        self.0.push(List {
            part: KeyPart::ClientIp,
            values: Values::Networks(Box::new(networks.collect())),
        });
    }

    /// Adds values of `part`, as [`KeyPart::parse_value`] makes them.
    pub fn add_values(&mut self, part: KeyPart, values: impl IntoIterator<Item = Box<[u8]>>) {
        let values = Values::Texts(values.into_iter().collect());
        self.0.push(List { part, values });
    }

    /// The first part of `request` that is on them.
    pub fn find(&self, request: &dyn Request, route: &str) -> Option<&KeyPart> {
        let mut lists = self.0.iter();
        lists
            .find(|list| list.has(request, route))
            .map(|list| &list.part)
    }
}

impl List {
    fn has(&self, request: &dyn Request, route: &str) -> bool {
        match &self.values {
            Values::Networks(networks) => request
                .client_ip()
                .map(|ip| IpNet::from(ip.to_canonical()))
                .is_some_and(|ip| networks.get_lpm(&ip).is_some()),
            Values::Texts(texts) => {
                let mut value = SmallVec::<[u8; 64]>::new();
                self.part.write_value(request, route, 128, &mut value)
                    && texts.contains(value.as_slice())
            }
        }
    }
}
