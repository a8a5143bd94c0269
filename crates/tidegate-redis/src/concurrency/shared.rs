//! What users of a shared concurrency limit hold.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use tidegate::Decision;
use tokio::runtime::Handle;

use super::key::{Key, Reply, no_runtime};
use super::key_task::{Calls, drive};
use super::table::{Found, Table};
use super::{
    ConcurrencyOptions, DoubleWindow, NodeShare, OptionsError, Places, Scheme, SharedPermit, Slots,
};
use crate::{Scripts, Unavailable};

/// At most so many permits out at a time for each key, on all nodes together that use the same
/// Redis, the same name and the same options.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use tidegate_redis::{Scripts, concurrency::{ConcurrencyOptions, SharedConcurrency}};
/// # async fn example(scripts: Arc<dyn Scripts>) -> Result<(), Box<dyn std::error::Error>> {
/// let runtime = tokio::runtime::Handle::try_current()?;
/// let options = ConcurrencyOptions::new(50);
/// let limit = SharedConcurrency::new("exports", options, scripts, runtime)?;
/// let (decision, permit) = limit.try_acquire(b"tenant-7", 1).await?;
/// if let Some(permit) = permit {
///     tokio::select! {
///         () = async { /* the work */ } => {}
///         () = permit.lost() => { /* stop it: the place may be somebody else's */ }
///     }
/// }
/// # Ok(())
/// # }
/// ```
///
/// Clones are the same limit; with the last of them goes what it kept for requests to come. A
/// process that has been started again is another node: what it held before becomes free when it
/// expires, within [`ConcurrencyOptions::ttl`] (or two windows).
#[derive(Clone, Debug)]
pub struct SharedConcurrency {
    name: Arc<str>,
    options: ConcurrencyOptions,
    table: Arc<Table>,
    pub(super) calls: Arc<Calls>,
    _open: Arc<Open>,
}

/// There while a limit is.
#[derive(Debug)]
struct Open(Arc<Table>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl SharedConcurrency {
    /// A limit under this name. Calls are made by tasks of `runtime`: one for each key that is in
    /// use.
    ///
    /// # Errors
    /// Where such a limit cannot be.
    pub fn new(
        name: &str,
        options: ConcurrencyOptions,
        scripts: Arc<dyn Scripts>,
        runtime: Handle,
    ) -> Result<Self, OptionsError> {
        options.validate()?;
        let calls = Calls {
            scripts,
            budget: options.budget,
            runtime,
        };
        let table = Arc::new(Table::new(options.max_keys));
        Ok(Self {
            name: name.into(),
            _open: Arc::new(Open(Arc::clone(&table))),
            table,
            calls: Arc::new(calls),
            options,
        })
    }

    /// Takes the permits of this key if they are free, with a guard that gives them back. Waits
    /// for Redis where it has to be asked, never for a place: a refused caller may come again when
    /// somebody has left. With [`Scheme::NodeShare`] a refusal may also mean that places are free
    /// in the shares of other nodes. What these have above their fair part they give up within a
    /// third of the ttl; the rest as their own requests become fewer.
    ///
    /// Cancel safe: dropped half way, it gives back what it has got, or gets.
    ///
    /// # Errors
    /// Where Redis did not answer within the budget, or has not for some time; and where this node
    /// has places of as many keys as it may. Then nothing is held, but for what a call that was
    /// lost on its way back may have taken: it becomes free when it expires.
    pub async fn try_acquire(
        &self,
        key: &[u8],
        permits: u64,
    ) -> Result<(Decision, Option<SharedPermit>), Unavailable> {
        loop {
            let (key, is_new) = match self.table.find(key, || self.make(key)) {
                None => {
                    let why = "this node has places of as many keys as it may";
                    return Err(Unavailable::Server(why.to_owned()));
                }
                Some(Found::Known(key)) => (key, false),
                Some(Found::Made(key)) => (key, true),
            };
            let reply = key.ask(permits);
            if is_new {
                // Not before: another thread would find nothing to do, and let it go.
                drive(Arc::clone(&key), Arc::clone(&self.table), &self.calls);
            }
            match reply {
                Reply::Now(outcome) => return outcome,
                Reply::Soon(waiter) => return waiter.wait().await,
                Reply::Gone => self.table.remove(&key),
            }
            if is_new {
                return Err(no_runtime());
            }
        }
    }

    /// Gives back what this node only keeps for requests to come, and waits until it has nothing
    /// more: until the last of its guards is gone and Redis knows, or has been told in vain. So it
    /// should be given a deadline.
    ///
    /// # Cancel safety
    /// Dropped before, it is given back all the same.
    pub async fn leave(&self) {
        self.table.leave();
        self.table.until_empty().await;
    }

    /// How many keys this node has places of.
    pub fn keys(&self) -> usize {
        self.table.len()
    }

    /// The key in Redis. What is in braces decides which slot of a cluster it is in: keys of one
    /// subject are together, those of several are spread.
    pub(super) fn in_redis(&self, key: &[u8]) -> Vec<u8> {
        let scheme = match self.options.scheme {
            Scheme::NodeShare => "share",
            Scheme::Slots => "slots",
            Scheme::DoubleWindow => "windows",
        };
        let mut name = b"tg:{".to_vec();
        name.extend_from_slice(key);
        name.extend_from_slice(format!("}}:{}:{scheme}", self.name).as_bytes());
        name
    }

    fn make(&self, key: &[u8]) -> Key {
        let (options, incarnation) = (&self.options, random_number());
        let places: Box<dyn Places> = match options.scheme {
            Scheme::NodeShare => Box::new(NodeShare::new(options, incarnation)),
            Scheme::Slots => Box::new(Slots::new(options, incarnation)),
            Scheme::DoubleWindow => Box::new(DoubleWindow::new(options, incarnation)),
        };
        let numbers = (options.limit, options.on_lease_lost);
        Key::new(key, self.in_redis(key), numbers, places)
    }
}

/// 64 random bits: the hash of nothing under random keys, which the standard library gets from the
/// operating system for each thread, and changes for each hasher.
fn random_number() -> u64 {
    RandomState::new().build_hasher().finish()
}
