//! The task that makes one key's calls, one at a time, for as long as there is something to do.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use super::key::{Key, Step};
use super::table::Table;
use crate::{ScriptCall, Scripts};

/// What the tasks of all keys share.
#[derive(Debug)]
pub(super) struct Calls {
    pub(super) scripts: Arc<dyn Scripts>,
    pub(super) budget: Duration,
    pub(super) runtime: Handle,
}

/// Tells those who wait where the task ends early: its runtime has been shut down.
struct Driving(Arc<Key>);

impl Drop for Driving {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

pub(super) fn drive(key: Arc<Key>, table: Arc<Table>, calls: &Arc<Calls>) {
    let driving = Driving(key);
    let ours = Arc::clone(calls);
    let task = async move {
        let key = &driving.0;
        loop {
            match key.step() {
                Step::Wait(at) => key.until(at).await,
                Step::Leave if table.forget(key) => return,
                Step::Leave => {}
                Step::Call(request) => {
                    let call = ScriptCall {
                        script: request.script,
                        keys: vec![key.in_redis.clone()],
                        args: request.args,
                    };
                    let mut answer = pin!(ours.scripts.call(call, ours.budget));
                    let answer = loop {
                        // A lease may end meanwhile: whoever holds places hears of it in time.
                        tokio::select! {
                            answer = &mut answer => break answer,
                            () = key.until(key.next()) => key.lapse(),
                        }
                    };
                    key.answered(answer);
                }
            }
        }
    };
    calls.runtime.spawn(task);
}
