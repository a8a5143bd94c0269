//! Tells Redis how this node defines what it shares, and has it counted as the newest definition
//! says. See [`definition`](crate::definition).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidegate::SharedLimit;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::kept::{Limiters, validate};
use crate::backoff::random;
use crate::call::{Scripts, Unavailable};
use crate::definition::{Answered, Claim, Definition, Holds, How, MAX_CLAIMS, call, read};

/// How often it is looked whether any definition has changed.
const EVERY: Duration = Duration::from_secs(2);
/// How often all are told anew.
const TOLD_EVERY: Duration = Duration::from_secs(10);
/// How long a definition lasts that nobody tells any more.
const LASTS_MS: u64 = 30_000;
const BUDGET: Duration = Duration::from_millis(500);

/// Whose numbers a limit has that are not this node's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DefinedBy {
    /// A node with a newer version of it.
    Newer,
    /// A node with the same version, whose numbers are stricter.
    Stricter,
    /// Nobody: a node has a newer version of it that this software does not know, so that this
    /// node goes on with its own.
    Unknown,
}

/// The limits that a node shares, told and followed until this is dropped.
#[derive(Debug)]
pub(super) struct Defined {
    told: Arc<Told>,
    tells: AbortHandle,
}

#[derive(Debug)]
struct Told {
    limits: Mutex<Arc<[Arc<SharedLimit>]>>,
    /// There are others.
    changed: Notify,
}

impl Drop for Defined {
    fn drop(&mut self) {
        self.tells.abort();
    }
}

impl Defined {
    pub(super) fn new(
        scripts: Arc<dyn Scripts>,
        limiters: Arc<Limiters>,
        runtime: &Handle,
    ) -> Self {
        let told = Arc::new(Told {
            limits: Mutex::new(Arc::default()),
            changed: Notify::new(),
        });
        let teller = Teller {
            told: Arc::clone(&told),
            scripts,
            limiters,
            holder: random(),
            seen: None,
            told_at: None,
        };
        let tells = runtime.spawn(teller.run()).abort_handle();
        Self { told, tells }
    }

    /// These from now on, and no others.
    pub(super) fn set(&self, limits: Vec<Arc<SharedLimit>>) {
        *self.told.lock() = limits.into();
        self.told.changed.notify_one();
    }
}

impl Told {
    fn lock(&self) -> std::sync::MutexGuard<'_, Arc<[Arc<SharedLimit>]>> {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Teller {
    told: Arc<Told>,
    scripts: Arc<dyn Scripts>,
    limiters: Arc<Limiters>,
    holder: u64,
    /// How often definitions had changed when they were last told: not known where something
    /// failed.
    seen: Option<i64>,
    told_at: Option<Instant>,
}

impl Teller {
    async fn run(mut self) {
        let mut due = interval(EVERY);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = due.tick() => {}
                () = self.told.changed.notified() => self.seen = None,
            }
            if let Err(error) = self.turn().await {
                // Limits are counted as they were.
                tracing::debug!(%error, "not told how limits are defined");
                self.seen = None;
            }
        }
    }

    async fn turn(&mut self) -> Result<(), Unavailable> {
        let limits = Arc::clone(&self.told.lock());
        if limits.is_empty() {
            return Ok(());
        }
        let is_due = self.told_at.is_none_or(|at| at.elapsed() >= TOLD_EVERY);
        if !is_due && self.seen.is_some() {
            let answered = self.tell(&[]).await?;
            if self.seen == Some(answered.changes.0) {
                return Ok(());
            }
        }
        // What others have changed between two calls may be of the first: then all once more.
        let mut changes: Option<(i64, i64)> = None;
        for some in limits.chunks(MAX_CLAIMS) {
            let claims: Vec<(&Arc<SharedLimit>, Claim)> = some
                .iter()
                .filter_map(|limit| Some((limit, claim_of(limit)?)))
                .collect();
            let (limits, claims): (Vec<_>, Vec<_>) = claims.into_iter().unzip();
            let answered = self.tell(&claims).await?;
            let written = answered.changes.1 - answered.changes.0;
            let (before, after) = changes.unwrap_or((answered.changes.0, answered.changes.0));
            changes = Some((before, after + written));
            for (limit, holds) in limits.into_iter().zip(answered.holds) {
                self.hold(limit, holds);
            }
        }
        self.seen = changes.map(|(_, after)| after);
        self.told_at = Some(Instant::now());
        Ok(())
    }

    async fn tell(&self, claims: &[Claim]) -> Result<Answered, Unavailable> {
        let call = call(self.holder, LASTS_MS, claims);
        read(&self.scripts.call(call, BUDGET).await?, claims.len())
    }

    /// Has a limit counted by what holds.
    fn hold(&self, limit: &Arc<SharedLimit>, holds: Holds) {
        let own = Definition::of(limit);
        let elsewhere = match holds {
            Holds::Definition(of) if of.counts_like(&own) => None,
            Holds::Definition(of) => Some(elsewhere(limit, &of)),
            Holds::Unknown(version) => Some((DefinedBy::Unknown, version, None)),
        };
        let by = elsewhere.as_ref().map(|(by, ..)| *by);
        let version = elsewhere.as_ref().map_or(own.version, |one| one.1);
        let counted = elsewhere.and_then(|(by, _, counted)| Some((by, counted?)));
        if self.limiters.count_as(limit, by, counted.map(|(_, of)| of)) {
            say(limit, by, version);
        }
    }
}

fn claim_of(limit: &SharedLimit) -> Option<Claim> {
    let definition = Definition::of(limit);
    Claim::new(&limit.name, &limit.keys, How::Hold, definition)
}

/// Whose numbers these are, of which version, and the limit with them if there can be one here.
fn elsewhere(limit: &SharedLimit, of: &Definition) -> (DefinedBy, u64, Option<SharedLimit>) {
    let counted = SharedLimit {
        algorithm: of.algorithm,
        sharing: of.sharing,
        ..limit.clone()
    };
    let is_gate = |limit: &SharedLimit| limit.algorithm.is_gate();
    // A request holds places to its end, and of a rate nothing: its door knows which of both.
    if is_gate(&counted) != is_gate(limit) || validate(&counted).is_err() {
        return (DefinedBy::Unknown, of.version, None);
    }
    let by = if of.version > limit.version {
        DefinedBy::Newer
    } else {
        DefinedBy::Stricter
    };
    (by, of.version, Some(counted))
}

fn say(limit: &SharedLimit, by: Option<DefinedBy>, holds: u64) {
    let (limit, version) = (limit.name.as_str(), limit.version);
    match by {
        None => tracing::info!(
            limit,
            version,
            "the shared limit counts as this node defines it"
        ),
        Some(DefinedBy::Newer) => tracing::info!(
            limit,
            version,
            holds,
            "the shared limit counts as a newer version of it says, which another node has"
        ),
        Some(DefinedBy::Stricter) => tracing::warn!(
            limit,
            version,
            "nodes define the shared limit differently in one version: the stricter one holds"
        ),
        Some(DefinedBy::Unknown) => tracing::warn!(
            limit,
            version,
            holds,
            "another node defines the shared limit in a way that this one does not know"
        ),
    }
}
