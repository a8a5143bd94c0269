//! Requests in virtual time: a trace, decided by the node that `serve` runs.

mod decision_line;
mod plot;
mod summary;
mod ticks;
mod timeline;
mod top_keys;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate::{Clock, KeyHasher, MAX_LIMITS_PER_CHECK, ManualClock, QuotaError, Timestamp};
use tidegate_gateway::RequestView;
use tidegate_node::{Admission, Call, Hold, Node, Snapshot};
use tidegate_policy::Policy;

pub use self::decision_line::{DecisionLine, OutcomeWord, RetryWord};
pub use self::plot::svg;
pub use self::summary::{LimitSummary, Summary};
pub use self::timeline::{Piece, Timeline, Track};
pub use self::top_keys::TopKeys;

use crate::trace::{TraceLine, TraceRequest};

/// The hash key of simulations: the same run gives the same answers.
const HASH_KEY: (u64, u64) = (0x7469_6465, 0x6761_7465);

/// A policy, a clock that the trace moves, and the requests that are in flight.
#[derive(Debug)]
pub struct Simulation {
    node: Arc<Node>,
    clock: ManualClock,
    /// What requests hold that have not ended, by their line.
    in_flight: HashMap<usize, Hold>,
    summary: Summary,
    /// What came and went when, where somebody wants to see it.
    timeline: Option<Timeline>,
}

/// Why a line of a trace cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SimulationError {
    /// It names a limit that the policy does not have.
    UnknownLimit(String),
    /// It names more limits than one check takes.
    TooManyLimits(usize),
    /// It ends a request that is not in flight: that never came, was refused, or has ended.
    NotInFlight(usize),
    /// Its policy has a limit that is none.
    Quota(QuotaError),
}

impl fmt::Display for SimulationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownLimit(name) => write!(f, "the policy has no limit `{name}`"),
            Self::TooManyLimits(n) => {
                write!(
                    f,
                    "{n} limits on one request: at most {MAX_LIMITS_PER_CHECK}"
                )
            }
            Self::NotInFlight(line) => {
                write!(f, "the request of line {line} is not in flight")
            }
            Self::Quota(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for SimulationError {}

impl Simulation {
    /// A simulation of `policy`, from time 0.
    ///
    /// # Errors
    /// [`SimulationError::Quota`] where a limit of the policy is none.
    pub fn new(policy: Policy) -> Result<Self, SimulationError> {
        let clock = ManualClock::new(Timestamp::EPOCH);
        let hasher = KeyHasher::with_keys(HASH_KEY.0, HASH_KEY.1);
        let node = Node::with_hasher(policy, Arc::new(clock.clone()), hasher);
        Ok(Self {
            node: node.map_err(SimulationError::Quota)?,
            clock,
            in_flight: HashMap::new(),
            summary: Summary::default(),
            timeline: None,
        })
    }

    /// What has been decided so far.
    pub const fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Keeps a timeline from here on.
    pub fn keep_timeline(&mut self) {
        self.timeline.get_or_insert_default();
    }

    /// What came and went when, if it is kept.
    pub const fn timeline(&self) -> Option<&Timeline> {
        self.timeline.as_ref()
    }

    /// Puts another policy in force at `at_ns`.
    ///
    /// # Errors
    /// [`SimulationError::Quota`] where a limit of the policy is none; the old one stays.
    pub fn reload(&mut self, at_ns: u64, policy: Policy) -> Result<(), SimulationError> {
        self.clock.set(Timestamp::from_nanos(at_ns));
        self.node
            .reload(policy)
            .map(drop)
            .map_err(SimulationError::Quota)
    }

    /// Ends the request of an earlier line at `at_ns`. One that was allowed and held nothing may
    /// end too.
    ///
    /// # Errors
    /// [`SimulationError::NotInFlight`] where it is not in flight.
    pub fn release(&mut self, at_ns: u64, line: usize) -> Result<(), SimulationError> {
        self.clock.set(Timestamp::from_nanos(at_ns));
        self.in_flight
            .remove(&line)
            .map(drop)
            .ok_or(SimulationError::NotInFlight(line))
    }

    /// Decides on the request of this line. It stays in flight until it is released.
    ///
    /// # Errors
    /// [`SimulationError`] where it names limits that there are not.
    pub fn request(
        &mut self,
        line: usize,
        request: &TraceRequest,
    ) -> Result<DecisionLine, SimulationError> {
        // A step back counts as no time passed.
        self.clock.set(Timestamp::from_nanos(request.at_ns));
        let snapshot = self.node.snapshot();
        let view = RequestView::new(&request.parts, request.client_ip);
        let (route, limits) = limits_of(&snapshot, &view, request.limits.as_deref())?;
        let call = Call {
            request: &view,
            route,
            limits: &limits,
            permits: request.permits,
            max_wait: request.timeout_ns.map(Duration::from_nanos),
            peek: request.peek,
            now: self.clock.now(),
        };
        let admission = snapshot.decide(&call);
        let decision = DecisionLine::of(request.at_ns, &admission);
        self.summary.count(&call, &admission);
        if let (Some(timeline), false) = (&mut self.timeline, request.peek) {
            timeline.add(call.now, &admission);
        }
        self.keep(line, admission, request.peek);
        Ok(decision)
    }

    /// Any line but a reload, whose policy the caller has to find.
    ///
    /// # Errors
    /// As [`request`](Self::request) and [`release`](Self::release).
    pub fn step(
        &mut self,
        line: usize,
        event: &TraceLine,
    ) -> Result<Option<DecisionLine>, SimulationError> {
        match event {
            TraceLine::Request(request) => self.request(line, request).map(Some),
            TraceLine::Release { at_ns, line } => self.release(*at_ns, *line).map(|()| None),
            TraceLine::Reload { at_ns, .. } => {
                self.clock.set(Timestamp::from_nanos(*at_ns));
                Ok(None)
            }
        }
    }

    fn keep(&mut self, line: usize, admission: Admission<'_>, peek: bool) {
        let allowed = admission.is_allowed();
        let mut hold = admission.into_hold();
        if allowed && !peek {
            // Its caller waits as it was told, and goes on.
            hold.go_ahead();
            self.in_flight.insert(line, hold);
        }
    }
}

/// The route of a request, and the limits that it meets: those it names; else those of its
/// route; else, in a policy without routes, all.
fn limits_of<'a>(
    snapshot: &'a Snapshot,
    view: &RequestView<'_>,
    named: Option<&[String]>,
) -> Result<(&'a str, Vec<usize>), SimulationError> {
    let policy = snapshot.policy();
    let route = policy.route(view);
    let id = route.map_or("", |route| route.id.as_str());
    let limits: Vec<usize> = match (named, route) {
        (Some(names), _) => {
            let index_of = |name: &String| {
                let found = policy
                    .limits
                    .iter()
                    .position(|rule| rule.limit.name() == name);
                found.ok_or_else(|| SimulationError::UnknownLimit(name.clone()))
            };
            names.iter().map(index_of).collect::<Result<_, _>>()?
        }
        (None, Some(route)) => route.limits.clone(),
        (None, None) if policy.gateway.is_none() => (0..policy.limits.len()).collect(),
        (None, None) => Vec::new(),
    };
    if limits.len() > MAX_LIMITS_PER_CHECK {
        return Err(SimulationError::TooManyLimits(limits.len()));
    }
    Ok((id, limits))
}
