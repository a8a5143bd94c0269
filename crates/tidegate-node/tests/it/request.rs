//! Requests and policies, made by hand.

use std::borrow::Cow;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use tidegate::{Algorithm, Limit, ManualClock, Quota, Timestamp};
use tidegate_node::{Admission, Call, Node, Pending, Snapshot, Timer, Turn};
use tidegate_policy::{KeyPart, LimitRule, Policy, Request};

/// A request of an address, with headers.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) ip: Option<IpAddr>,
    pub(crate) headers: Vec<(&'static str, &'static str)>,
}

impl Sent {
    pub(crate) fn by(user: &'static str) -> Self {
        Self {
            ip: "192.0.2.1".parse().ok(),
            headers: vec![("user", user)],
        }
    }

    pub(crate) fn from(ip: &str) -> Self {
        Self {
            ip: ip.parse().ok(),
            headers: Vec::new(),
        }
    }
}

impl Request for Sent {
    fn client_ip(&self) -> Option<IpAddr> {
        self.ip
    }
    fn method(&self) -> &'static str {
        "GET"
    }
    fn host(&self) -> Option<&str> {
        None
    }
    fn path(&self) -> &'static str {
        "/"
    }
    fn header(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        let (_, value) = self.headers.iter().find(|(header, _)| *header == name)?;
        Some(value.as_bytes().into())
    }
    fn cookie(&self, _name: &str) -> Option<Cow<'_, [u8]>> {
        None
    }
    fn query(&self, _name: &str) -> Option<Cow<'_, [u8]>> {
        None
    }
}

pub(crate) fn user() -> Vec<KeyPart> {
    vec![KeyPart::Header("user".to_owned())]
}

pub(crate) fn rule(name: &str, algorithm: Algorithm, key: Vec<KeyPart>) -> LimitRule {
    LimitRule {
        max_keys: 1_000,
        ..LimitRule::new(Limit::new(name, algorithm).unwrap(), key)
    }
}

pub(crate) fn bucket(quota: Quota) -> Algorithm {
    Algorithm::TokenBucket(quota)
}

pub(crate) fn policy(limits: Vec<LimitRule>) -> Policy {
    Policy {
        limits,
        ..Policy::default()
    }
}

pub(crate) fn node(limits: Vec<LimitRule>) -> (Arc<Node>, ManualClock) {
    let clock = ManualClock::new(Timestamp::from_secs(1_000));
    let node = Node::new(policy(limits), Arc::new(clock.clone())).unwrap();
    (node, clock)
}

/// Decides on one permit under all limits of the policy.
pub(crate) fn decide<'a>(node: &Node, at: &'a Snapshot, request: &Sent) -> Admission<'a> {
    let limits: Vec<usize> = (0..at.limits().len()).collect();
    at.decide(&Call {
        request,
        route: "",
        limits: &limits,
        permits: 1,
        max_wait: None,
        peek: false,
        now: node.clock().now(),
    })
}

/// How many of `n` requests pass at once.
pub(crate) fn passed(node: &Node, request: &Sent, n: usize) -> usize {
    let snapshot = node.snapshot();
    (0..n)
        .filter(|_| decide(node, &snapshot, request).is_allowed())
        .count()
}

/// Nobody is ever told that it took too long.
#[derive(Debug)]
pub(crate) struct Patient;

impl Timer for Patient {
    fn sleep_until(&self, _at: Timestamp) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::pending())
    }
}

/// Asks about a request that came at the start.
pub(crate) fn ask<'a>(node: &Node, at: &'a Snapshot, turn: Turn) -> Result<Admission<'a>, Pending> {
    let request = Sent::by("a");
    let limits: Vec<usize> = (0..at.limits().len()).collect();
    let call = Call {
        request: &request,
        route: "",
        limits: &limits,
        permits: 1,
        max_wait: None,
        peek: false,
        now: node.clock().now(),
    };
    at.decide_or_wait(&call, Timestamp::from_secs(1_000), turn)
}
