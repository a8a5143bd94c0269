//! A limiter whose numbers are those of the definition that holds.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tidegate::Limit;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval};

use super::{Definition, Definitions, How};
use crate::exact::{Exact, ExactLimiter, NotShared};

const EVERY: Duration = Duration::from_secs(2);

/// A limit of exact mode that counts as its definition says: see [`Definitions::follow`]. Clones
/// are the same.
#[derive(Clone, Debug)]
pub struct FollowedLimiter {
    current: Arc<Current>,
    _follows: Arc<Follows>,
}

#[derive(Debug)]
struct Current {
    name: String,
    exact: Exact,
    held: RwLock<(Definition, ExactLimiter)>,
}

#[derive(Debug)]
struct Follows(AbortHandle);

impl Drop for Follows {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl FollowedLimiter {
    pub(super) fn new(
        definitions: Definitions,
        name: &str,
        held: Definition,
        exact: Exact,
        runtime: &Handle,
    ) -> Result<Self, NotShared> {
        let limiter = limiter(name, &held, &exact)?;
        let current = Arc::new(Current {
            name: name.to_owned(),
            exact,
            held: RwLock::new((held, limiter)),
        });
        let task = {
            let current = Arc::clone(&current);
            async move {
                let mut due = interval(EVERY);
                due.set_missed_tick_behavior(MissedTickBehavior::Delay);
                loop {
                    due.tick().await;
                    current.ask(&definitions).await;
                }
            }
        };
        Ok(Self {
            current,
            _follows: Arc::new(Follows(runtime.spawn(task).abort_handle())),
        })
    }

    /// The limiter of what holds now: for one check, not to be kept.
    pub fn current(&self) -> ExactLimiter {
        self.current.read().1
    }

    /// What holds now.
    pub fn definition(&self) -> Definition {
        self.current.read().0
    }
}

impl Current {
    fn read(&self) -> (Definition, ExactLimiter) {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        held.clone()
    }

    async fn ask(&self, definitions: &Definitions) {
        let (held, _) = self.read();
        let (name, algorithm) = (self.name.as_str(), held.algorithm);
        let told = definitions.tell(name, How::Once, held.version, algorithm);
        let made = match told.await {
            Ok(holds) if holds == held => return,
            Ok(holds) => limiter(name, &holds, &self.exact).map(|limiter| (holds, limiter)),
            // What was told last goes on holding.
            Err(error) => {
                return tracing::debug!(limit = name, %error, "not told how it is defined");
            }
        };
        match made {
            Ok(made) => {
                let (from, to) = (held.version, made.0.version);
                tracing::info!(limit = name, from, to, "the limit is defined anew");
                *self.held.write().unwrap_or_else(PoisonError::into_inner) = made;
            }
            Err(error) => {
                tracing::warn!(limit = name, %error, "the limit's new definition is none here");
            }
        }
    }
}

fn limiter(name: &str, held: &Definition, exact: &Exact) -> Result<ExactLimiter, NotShared> {
    let limit = Limit::new(name, held.algorithm).map_err(NotShared::Quota)?;
    exact.limiter(&limit)
}
