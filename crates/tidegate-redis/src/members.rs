//! Which nodes there are: each says so every few seconds, and counts until it has not for a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval};

use crate::call::{Script, ScriptCall, Scripts};

/// The script.
pub static MEMBERS: Script = Script {
    name: "members",
    text: include_str!("members.lua"),
};

/// How often a node says that it is there.
const EVERY: Duration = Duration::from_secs(2);
/// How long it counts after that.
const LASTS: Duration = Duration::from_secs(6);
const BUDGET: Duration = Duration::from_millis(500);
const KEY: &[u8] = b"tg:{nodes}";

/// The nodes that share one Redis, this one among them. It leaves when this is dropped.
#[derive(Debug)]
pub(crate) struct Members {
    count: Arc<AtomicU64>,
    says_so: AbortHandle,
    scripts: Arc<dyn Scripts>,
    id: u64,
    runtime: Handle,
}

impl Members {
    /// Joins as `id`, which no other node may have, nor this one before a restart. Until Redis has
    /// answered there are believed to be `expected` nodes.
    pub(crate) fn join(
        scripts: Arc<dyn Scripts>,
        id: u64,
        expected: u64,
        runtime: &Handle,
    ) -> Self {
        let count = Arc::new(AtomicU64::new(expected.max(1)));
        let task = {
            let (scripts, count) = (Arc::clone(&scripts), Arc::clone(&count));
            async move {
                let mut due = interval(EVERY);
                due.set_missed_tick_behavior(MissedTickBehavior::Delay);
                loop {
                    due.tick().await;
                    // Whoever is not reached is still believed to be as many as they were.
                    if let Ok(answer) = scripts.call(call(id, LASTS), BUDGET).await
                        && let Some(nodes) = answer.first()
                    {
                        let nodes = u64::try_from(*nodes).unwrap_or(1).max(1);
                        count.store(nodes, Ordering::Relaxed);
                    }
                }
            }
        };
        Self {
            count,
            says_so: runtime.spawn(task).abort_handle(),
            scripts,
            id,
            runtime: runtime.clone(),
        }
    }

    /// Says goodbye, and waits until that is heard: for whoever ends the runtime then.
    pub(crate) async fn leave(&self) {
        self.says_so.abort();
        // If this is lost, the others count it for some seconds more.
        let _ = self
            .scripts
            .call(call(self.id, Duration::ZERO), BUDGET)
            .await;
    }

    /// How many there were when Redis last answered: this one at least. Before it has, as many as
    /// were expected.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        self.says_so.abort();
        let (scripts, id) = (Arc::clone(&self.scripts), self.id);
        // If this is lost, the others count it for some seconds more.
        self.runtime.spawn(async move {
            let _ = scripts.call(call(id, Duration::ZERO), BUDGET).await;
        });
    }
}

fn call(id: u64, lasts: Duration) -> ScriptCall {
    ScriptCall {
        script: &MEMBERS,
        keys: vec![KEY.to_vec()],
        args: vec![
            format!("{id:016x}").into_bytes(),
            lasts.as_micros().to_string().into_bytes(),
        ],
    }
}
