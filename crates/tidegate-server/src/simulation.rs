//! Requests in virtual time: a trace, decided by the node that `serve` runs.

mod decision_line;
mod in_line;
mod plot;
mod summary;
mod ticks;
mod timeline;
mod top_keys;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate::{Clock, KeyHasher, MAX_LIMITS_PER_CHECK, ManualClock, Timestamp};
use tidegate_gateway::RequestView;
use tidegate_node::{Call, Hold, Node, PolicyError, Snapshot, Turn};
use tidegate_policy::Policy;

pub use self::decision_line::{DecisionLine, OutcomeWord, RetryWord};
use self::in_line::{Asked, Told, Waiting};
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
    in_flight: HashMap<usize, Option<Box<Hold>>>,
    /// Those who wait in line for a place.
    waiting: Waiting,
    told: Told,
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
    Policy(PolicyError),
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
            Self::Policy(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for SimulationError {}

impl Simulation {
    /// A simulation of `policy`, from time 0.
    ///
    /// # Errors
    /// [`SimulationError::Policy`] where the policy cannot be put in force.
    pub fn new(policy: Policy) -> Result<Self, SimulationError> {
        let clock = ManualClock::new(Timestamp::EPOCH);
        let hasher = KeyHasher::with_keys(HASH_KEY.0, HASH_KEY.1);
        let node = Node::with_hasher(policy, Arc::new(clock.clone()), hasher);
        Ok(Self {
            node: node.map_err(SimulationError::Policy)?,
            clock,
            in_flight: HashMap::new(),
            waiting: Waiting::default(),
            told: Told::default(),
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
    /// [`SimulationError::Policy`] where the policy cannot be put in force; the old one stays.
    pub fn reload(&mut self, at_ns: u64, policy: Policy) -> Result<(), SimulationError> {
        self.advance(at_ns)?;
        self.node.reload(policy).map_err(SimulationError::Policy)?;
        self.let_in()
    }

    /// Ends the request of an earlier line at `at_ns`. One that was allowed and held nothing may
    /// end too; one that waits in line gives up, which is a refusal.
    ///
    /// # Errors
    /// [`SimulationError::NotInFlight`] where it is not in flight.
    pub fn release(&mut self, at_ns: u64, line: usize) -> Result<(), SimulationError> {
        self.advance(at_ns)?;
        if let Some(hold) = self.in_flight.remove(&line) {
            drop(hold);
        } else {
            let asked = self.waiting.give_up(line);
            self.decide(asked.ok_or(SimulationError::NotInFlight(line))?, Turn::Last)?;
        }
        self.let_in()
    }

    /// Decides on the request of this line, now or, where it waits in line for a place, later. If
    /// it is allowed, it is in flight until it is released.
    ///
    /// # Errors
    /// [`SimulationError`] where it names limits that there are not.
    pub fn request(
        &mut self,
        line: usize,
        request: Box<TraceRequest>,
    ) -> Result<(), SimulationError> {
        self.advance(request.at_ns)?;
        let asked = Asked {
            line,
            number: self.told.next_number(),
            request,
            came: self.clock.now(),
        };
        self.decide(asked, Turn::First)?;
        self.let_in()
    }

    /// Any line but a reload, whose policy the caller has to find.
    ///
    /// # Errors
    /// As [`request`](Self::request) and [`release`](Self::release).
    pub fn step(&mut self, line: usize, event: TraceLine) -> Result<(), SimulationError> {
        match event {
            TraceLine::Request(request) => self.request(line, request),
            TraceLine::Release { at_ns, line } => self.release(at_ns, line),
            TraceLine::Reload { at_ns, .. } => self.advance(at_ns),
        }
    }

    /// Lets the time go on until nobody waits any more: at the end of a trace.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub fn finish(&mut self) -> Result<(), SimulationError> {
        self.tell_late(None)
    }

    /// The next decision, in the order of the trace, if it has been made.
    pub fn next_decision(&mut self) -> Option<DecisionLine> {
        self.told.fetch()
    }

    /// Lets the time go on to `at_ns`. Who cannot wait until then is told so on the way; a step
    /// back counts as no time passed.
    fn advance(&mut self, at_ns: u64) -> Result<(), SimulationError> {
        let to = Timestamp::from_nanos(at_ns);
        // At the very time a place may still come.
        self.tell_late(Some(to))?;
        self.clock.set(to);
        Ok(())
    }

    fn tell_late(&mut self, to: Option<Timestamp>) -> Result<(), SimulationError> {
        while let Some((asked, until)) = self.waiting.next_late(to) {
            self.clock.set(until);
            self.decide(asked, Turn::Last)?;
            self.let_in()?;
        }
        Ok(())
    }

    /// Goes on with those who have got what they waited for.
    fn let_in(&mut self) -> Result<(), SimulationError> {
        while let Some((asked, turn)) = self.waiting.next() {
            self.decide(asked, turn)?;
        }
        Ok(())
    }

    fn decide(&mut self, asked: Asked, turn: Turn) -> Result<(), SimulationError> {
        let request = &*asked.request;
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
        let admission = if request.peek {
            snapshot.decide(&call)
        } else {
            match snapshot.decide_or_wait(&call, asked.came, turn) {
                Ok(admission) => admission,
                Err(pending) => {
                    self.waiting.join(asked, pending);
                    return Ok(());
                }
            }
        };
        let decision = DecisionLine::of(request.at_ns, &admission);
        self.summary.count(&call, &admission);
        if let (Some(timeline), false) = (&mut self.timeline, request.peek) {
            timeline.add(asked.came, &admission);
        }
        let allowed = admission.is_allowed();
        let mut hold = admission.into_hold();
        if allowed && !request.peek {
            // Its caller waits as it was told, and goes on.
            hold.go_ahead();
            let hold = (!hold.is_empty()).then(|| Box::new(hold));
            self.in_flight.insert(asked.line, hold);
        }
        self.told.tell(asked.number, decision);
        Ok(())
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
            let mut limits = Vec::new();
            for name in names {
                let rules = policy.limit_named(name);
                limits.extend(rules.ok_or_else(|| SimulationError::UnknownLimit(name.clone()))?);
            }
            limits
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

#[cfg(test)]
mod tests;
