//! A limit of a policy: what is counted, by which key, with which exceptions.

use std::sync::Arc;
use std::time::Duration;

use tidegate::{Algorithm, Ask, Limit, OnChange, Sharing};

use crate::access::Lists;
use crate::bandwidth_rule::BandwidthRule;
use crate::key::KeyPart;
use crate::on_limit::OnLimit;
use crate::request::Request;

/// A limit, and by what it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitRule {
    /// Name, algorithm and numbers.
    pub limit: Limit,
    /// Which of its limit's rates this is, from 0: a limit of several becomes as many rules. They
    /// stand in a row, of one key, and a request that meets one of them meets all.
    pub rate_index: usize,
    /// The parts of a request that make its key, in order. Empty: one count for all requests.
    pub key: Vec<KeyPart>,
    /// What becomes of a request that lacks a part of the key.
    pub on_missing: OnMissing,
    /// Whom it does not apply to.
    pub exempt: Arc<Lists>,
    /// Whether the limit is only evaluated and counted, never enforced.
    pub shadow: bool,
    /// Most keys that are remembered at once.
    pub max_keys: usize,
    /// Other numbers for some keys; the first that matches wins.
    pub overrides: Vec<Override>,
    /// The line in which requests wait that are over the limit; `None`: they are refused.
    pub queue: Option<Queue>,
    /// What becomes of requests that it refuses; `None`: 429 and a problem in JSON.
    pub on_limit: Option<Arc<OnLimit>>,
    /// What stays of what keys have used when this takes the place of another limit.
    pub on_change: OnChange,
    /// How nodes share it; `None`: each node has its own.
    pub shared: Option<SharedRule>,
    /// Whether its counts survive a restart of the node. Only of rates that are not shared.
    pub persist: bool,
    /// What it holds bodies to; `None`: it decides on requests.
    pub bandwidth: Option<BandwidthRule>,
}

/// How nodes share a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedRule {
    /// The way.
    pub sharing: Sharing,
    /// What holds while the state cannot be reached.
    pub on_unavailable: OnUnavailable,
}

/// What holds for a shared limit whose state cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnUnavailable {
    /// Each node grants its share, as long as it may believe to know how many there are.
    LocalShare {
        /// Whether everything passes after that; else nothing does.
        then_open: bool,
    },
    /// Everything passes.
    Open,
    /// Nothing passes.
    Closed,
}

/// A line to wait in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Most permits that wait.
    pub length: u64,
    /// Longest wait.
    pub max_wait: Duration,
    /// Who leaves before others; `None`: first come, first served.
    pub first: Option<Arc<Priorities>>,
}

/// Who leaves a line before others: a part of the request says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Priorities {
    /// Which part.
    pub part: KeyPart,
    /// Its values, as [`KeyPart::write_value`] writes them, from those who leave first. All others
    /// leave last, and so do those who lack the part.
    pub values: Vec<Box<[u8]>>,
}

impl Priorities {
    /// Most values.
    pub const MAX_VALUES: usize = 255;

    /// The priority of a request: the higher, the earlier it leaves.
    pub fn of(&self, request: &dyn Request, route: &str, ipv6_prefix: u8) -> u8 {
        let mut value = Vec::new();
        if !(self.part).write_value(request, route, ipv6_prefix, &mut value) {
            return 0;
        }
        let at = self.values.iter().position(|one| **one == *value);
        at.map_or(0, |at| {
            u8::try_from(self.values.len() - at).unwrap_or(u8::MAX)
        })
    }
}

impl LimitRule {
    /// Keys remembered at once, where the policy says nothing.
    pub const DEFAULT_MAX_KEYS: usize = 1_000_000;
    /// Most that a policy may ask for (tens of gigabytes, when they come).
    pub const MAX_MAX_KEYS: usize = 1_000_000_000;
    /// Most parts of one key.
    pub const MAX_KEY_PARTS: usize = 8;
}

impl LimitRule {
    /// `limit`, counted by `key`; all else as where a policy says nothing.
    pub fn new(limit: Limit, key: Vec<KeyPart>) -> Self {
        Self {
            limit,
            rate_index: 0,
            key,
            on_missing: OnMissing::default(),
            exempt: Arc::default(),
            shadow: false,
            max_keys: Self::DEFAULT_MAX_KEYS,
            overrides: Vec::new(),
            queue: None,
            on_limit: None,
            on_change: OnChange::KeepUsed,
            shared: None,
            persist: false,
            bandwidth: None,
        }
    }

    /// Where and how its counts are kept: what is in one of these is not in another.
    pub fn store(&self) -> &'static str {
        match self.shared.map(|shared| shared.sharing) {
            None => "local",
            Some(Sharing::Leased(_)) => "leased",
            Some(Sharing::Auto(_)) => "auto",
            Some(Sharing::NodeShare) => "node_share",
            Some(Sharing::Slots) => "slots",
            Some(Sharing::DoubleWindow) => "double_window",
            Some(_) => "exact",
        }
    }

    /// What a request asks of this limit under these numbers (its own, or an override's), if it
    /// takes so many permits and its caller would wait so long (`None`: as long as the limit
    /// lets it).
    ///
    /// Callers wait where the limit delays by itself, and where it has a queue: there, no longer
    /// than the queue's whole length takes to leave.
    pub fn ask(&self, algorithm: &Algorithm, permits: u64, patience: Option<Duration>) -> Ask {
        let ask = Ask::new(permits);
        let patience = patience.unwrap_or(Duration::MAX);
        match &self.queue {
            None if algorithm.delays() => ask.within(patience),
            None => ask,
            Some(queue) => {
                let length = algorithm.time_for(queue.length);
                ask.within(patience.min(queue.max_wait).min(length))
            }
        }
    }
}

/// What becomes of a request that lacks a part of a limit's key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMissing {
    /// It is refused.
    Deny,
    /// The limit does not apply to it.
    Pass,
    /// The same as if the part were there and empty; and the limit does not apply to a request
    /// all of whose parts are so: nginx's way.
    PassIfEmpty,
    /// All who lack the part share one key.
    #[default]
    Shared,
}

/// Other numbers for the keys that match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// One for each part of the limit's key, as [`KeyPart::write_value`] writes it; `None`
    /// matches anything.
    pub matches: Vec<Option<Box<[u8]>>>,
    /// The limit that holds for such keys; of the same name.
    pub limit: Limit,
}
