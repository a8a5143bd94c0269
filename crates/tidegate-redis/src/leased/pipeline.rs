//! The way of refreshes to one endpoint, which all leased limiters of a node share.

mod pace;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate::Timestamp;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

pub(super) use self::pace::Turn;
use self::pace::{Ended, Pace, Pass};
use super::node::LEASE_BUDGET;
use crate::backoff::random;
use crate::call::{Scripts, Unavailable};
use crate::{Answer, ScriptCall};

/// Carries the refreshes of leased limiters to one endpoint: at most 64 at once, all limiters
/// together that share it, and one back-off for all of them.
///
/// Where three calls have had no answer (those under way together are one), and none has come in
/// between, no key asks any more but one at a time after a wait of random length, of up to 25 ms
/// at first and 500 ms at most. Once that is answered one call may be under way, and for each
/// answer one more. Clones are the same.
#[derive(Clone)]
pub struct LeasePipeline(Arc<Inner>);

struct Inner {
    scripts: Arc<dyn Scripts>,
    pace: Mutex<Pace>,
    /// A call has ended: who found no room may look again.
    freed: Notify,
}

impl fmt::Debug for LeasePipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeasePipeline")
            .field("scripts", &self.0.scripts)
            .finish_non_exhaustive()
    }
}

impl LeasePipeline {
    /// To whoever carries these calls.
    pub fn new(scripts: Arc<dyn Scripts>) -> Self {
        Self(Arc::new(Inner {
            scripts,
            pace: Mutex::default(),
            freed: Notify::new(),
        }))
    }

    pub(super) fn scripts(&self) -> &Arc<dyn Scripts> {
        &self.0.scripts
    }

    /// Whether a call may be made now. If so, [`Place::call`] has to make it.
    pub(super) fn turn(&self, now: Timestamp) -> Result<Place, Turn> {
        match self.pace().turn(now) {
            Turn::Goes(pass) => Ok(Place {
                pipeline: self.clone(),
                pass,
                ended: None,
            }),
            turn => Err(turn),
        }
    }

    /// Whether nothing answers at the moment.
    pub(super) fn is_down(&self) -> bool {
        self.pace().is_down()
    }

    /// Whether another call could be under way.
    pub(super) fn has_room(&self) -> bool {
        self.pace().has_room()
    }

    /// Until a call ends.
    pub(super) fn freed(&self) -> Notified<'_> {
        self.0.freed.notified()
    }

    fn pace(&self) -> MutexGuard<'_, Pace> {
        // Changed in one step each.
        self.0.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Room for one call.
#[derive(Debug)]
pub(super) struct Place {
    pipeline: LeasePipeline,
    pass: Pass,
    /// How and when it ended.
    ended: Option<(Ended, Timestamp)>,
}

impl Place {
    /// Makes the call; its time counts from here. `now` is asked when it has ended.
    pub(super) async fn call(
        mut self,
        call: ScriptCall,
        now: impl Fn() -> Timestamp + Send,
    ) -> Result<Vec<i64>, Unavailable> {
        let scripts = Arc::clone(&self.pipeline.0.scripts);
        let answer: Answer<'_> = scripts.call(call, LEASE_BUDGET);
        let answer = answer.await;
        let ended = match &answer {
            Ok(_) | Err(Unavailable::BadAnswer(_)) => Ended::Answered,
            Err(Unavailable::Open) => Ended::NotSent,
            Err(_) => Ended::Missed,
        };
        self.ended = Some((ended, now()));
        answer
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A call that was given up says nothing of Redis.
        let (ended, now) = self.ended.unwrap_or((Ended::GivenUp, Timestamp::EPOCH));
        let how = (self.pass, ended);
        let change = self.pipeline.pace().ended(now, how, random());
        self.pipeline.0.freed.notify_waiters();
        match change {
            Some(pace::Change::Down) => {
                tracing::info!("leases are not refreshed: Redis does not answer");
            }
            Some(pace::Change::Up { after }) => {
                tracing::info!(?after, "leases are refreshed again");
            }
            None => {}
        }
    }
}

/// How long a key that has stood by is not looked at unless somebody asks: until a probe is over.
pub(super) const STAND_BY: Duration = LEASE_BUDGET;
