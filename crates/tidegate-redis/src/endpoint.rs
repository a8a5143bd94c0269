//! Carries script calls to Redis: one server, the primary that Sentinels name, or a cluster.
//!
//! What this adds to the client library, which only encodes, decodes and multiplexes here:
//! connections that come back by themselves in the background, a breaker for each server, a
//! budget for each call, and no call that is sent twice where it may have run.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate::{Clock, SystemClock, Timestamp};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

use self::cluster::Cluster;
use self::sentinel::Sentinels;
use self::server::{Server, Source};
use self::text::Texts;
use crate::config::Topology;
use crate::fault::Fault;
use crate::health::{Counting, Health};
use crate::{Answer, ConfigError, EndpointConfig, Script, ScriptCall, Scripts, Tls};

mod cluster;
mod connect;
mod line;
mod metered;
mod sentinel;
mod server;
mod slot;
mod text;
pub(crate) mod tls;

/// Most bytes of keys and arguments in one call.
const MAX_CALL: usize = 1 << 20;

/// What a longer budget is taken for.
const LONGEST_BUDGET: Duration = Duration::from_hours(1);

/// Carries script calls to Redis.
///
/// It starts without Redis, and comes back by itself: connections are opened in the background,
/// after waits of up to 25 ms at first and 500 ms at most, each of a random length. Meanwhile
/// calls are told at once that there is no answer. The same holds after 5 calls in a row without
/// an answer in time, or more than 10 of the last 20: so no request waits for a server that is
/// slow. Whether a server is asked, and why not, is in [`Endpoint::health`], and each change of it
/// is an event of `tracing`.
///
/// # Cancel safety
///
/// A call whose future is dropped may have run, or may yet run. Its answer is dropped when it
/// comes, and never taken for another call's.
pub struct Endpoint {
    route: Route,
    shared: Arc<Shared>,
}

/// Who has a call's keys.
#[derive(Debug)]
enum Route {
    One(Server),
    Cluster(Cluster),
}

/// What all servers of an endpoint share.
struct Shared {
    config: EndpointConfig,
    tls: Option<TlsConnector>,
    sentinel_tls: Option<TlsConnector>,
    /// A server is asked no more, or says that another has what it had.
    changed: Notify,
    texts: Texts,
    counts: Counting,
    clock: SystemClock,
    runtime: Handle,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl Shared {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

impl Endpoint {
    /// Starts, and does not wait for a server. Must be called within a Tokio runtime with time
    /// and I/O, where its connections then live. Calls may come from any runtime with time.
    ///
    /// `scripts` are loaded on each new connection. Others can be called, too: the first time,
    /// their text is sent along.
    ///
    /// # Errors
    ///
    /// What is wrong with the configuration; or that there is no runtime.
    pub fn start(config: EndpointConfig, scripts: &[&'static Script]) -> Result<Self, ConfigError> {
        config.validate()?;
        let runtime = Handle::try_current()
            .map_err(|_| ConfigError::new("connections to Redis need a Tokio runtime"))?;
        let sentinels_use_tls = matches!(config.topology, Topology::Sentinel { tls: true, .. });
        let default = Tls::default();
        let sentinel_tls = sentinels_use_tls.then(|| config.tls.as_ref().unwrap_or(&default));
        let shared = Arc::new(Shared {
            tls: config.tls.as_ref().map(tls::connector).transpose()?,
            sentinel_tls: sentinel_tls.map(tls::connector).transpose()?,
            changed: Notify::new(),
            texts: Texts::new(scripts),
            counts: Counting::default(),
            clock: SystemClock::new(),
            runtime,
            config,
        });
        let one = |source| Route::One(Server::start(source, Arc::clone(&shared)));
        let route = match &shared.config.topology {
            Topology::Single(address) => one(Source::Fixed(address.clone())),
            Topology::Sentinel {
                primary,
                sentinels,
                login,
                ..
            } => one(Source::Sentinels(Sentinels::new(primary, sentinels, login))),
            Topology::Cluster { seeds } => {
                Route::Cluster(Cluster::start(seeds, Arc::clone(&shared)))
            }
        };
        Ok(Self { route, shared })
    }

    /// How it is now.
    pub fn health(&self) -> Health {
        let (state, servers) = match &self.route {
            Route::One(server) => {
                let server = server.health();
                (server.state.clone(), vec![server])
            }
            Route::Cluster(cluster) => cluster.health(),
        };
        let counts = self.shared.counts.read();
        Health {
            state,
            servers,
            counts,
        }
    }

    async fn carry(&self, call: &ScriptCall, budget: Duration) -> Result<Vec<i64>, Fault> {
        if budget.is_zero() {
            // Nothing is sent: a call that was would be one whose outcome nobody knows.
            return Err(Fault::TimedOut(budget));
        }
        let size = call
            .keys
            .iter()
            .chain(&call.args)
            .map(Vec::len)
            .sum::<usize>();
        if size > MAX_CALL {
            return Err(Fault::Bad(format!(
                "a call of {size} bytes, more than {MAX_CALL}"
            )));
        }
        let deadline = Deadline {
            at: Instant::now() + budget.min(LONGEST_BUDGET),
            budget,
        };
        match &self.route {
            Route::One(server) => server.call(call, false, deadline).await,
            Route::Cluster(cluster) => cluster.call(call, deadline).await,
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("config", &self.shared.config)
            .finish_non_exhaustive()
    }
}

/// When a call's time is over, and how much it had.
#[derive(Clone, Copy, Debug)]
struct Deadline {
    at: Instant,
    budget: Duration,
}

impl Scripts for Endpoint {
    fn call(&self, call: ScriptCall, budget: Duration) -> Answer<'_> {
        Box::pin(async move {
            let counts = &self.shared.counts;
            counts.calls.add();
            let result = self.carry(&call, budget).await;
            match &result {
                Ok(_) => counts.answered.add(),
                Err(Fault::Open | Fault::Full(_)) => counts.not_sent.add(),
                Err(Fault::TimedOut(_)) => counts.timed_out.add(),
                Err(Fault::Lost(_)) => counts.lost.add(),
                Err(Fault::Bad(_) | Fault::NoScript) => counts.bad_answers.add(),
                Err(_) => counts.refused.add(),
            }
            Ok(result?)
        })
    }
}
