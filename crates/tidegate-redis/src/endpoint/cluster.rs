//! A cluster: which server has a key, and what to do when another has it.
//!
//! The client library has a cluster client, too. It sends a call again after a lost connection
//! (which would take twice), and all calls wait while it looks for servers: so it is not used.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use redis::cmd;
use tidegate::Timestamp;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use self::map::{Map, Span};
use super::server::{Server, Source};
use super::slot::slot;
use super::{Deadline, Shared, connect};
use crate::backoff::{Backoff, LONGEST, random};
use crate::fault::Fault;
use crate::health::{ServerHealth, State};
use crate::{Address, ScriptCall};

mod map;

/// How often a call is sent on.
const MAX_REDIRECTS: usize = 3;

/// Most servers of a cluster (Redis itself recommends no more).
const MAX_SERVERS: usize = 1_000;

/// How many servers that are up are asked for the map before those of the configuration.
const ASK_KNOWN: usize = 3;

/// The map is asked for anew after so long, whatever happens.
const REFRESH: Duration = Duration::from_mins(1);

/// Shortest time from one question for the map to the next.
const GAP: Duration = Duration::from_millis(100);

/// A server without slots is let go after so long: slots may be on their way to it.
const LINGER: Duration = Duration::from_mins(1);

/// A cluster. Who drops it lets all of its servers go.
#[derive(Debug)]
pub(super) struct Cluster {
    inner: Arc<Inner>,
    keeper: AbortHandle,
}

#[derive(Debug)]
struct Inner {
    seeds: Vec<Address>,
    shared: Arc<Shared>,
    map: RwLock<Arc<Map>>,
    servers: Mutex<BTreeMap<Address, Known>>,
    /// Why the map could not be had, and since when.
    lost: Mutex<Option<(Timestamp, String)>>,
}

/// A server, and when it was last named.
#[derive(Debug)]
struct Known {
    server: Arc<Server>,
    named: Timestamp,
}

impl Cluster {
    pub(super) fn start(seeds: &[Address], shared: Arc<Shared>) -> Self {
        let inner = Arc::new(Inner {
            seeds: seeds.to_vec(),
            map: RwLock::default(),
            servers: Mutex::default(),
            lost: Mutex::new(Some((shared.now(), "not found yet".to_owned()))),
            shared,
        });
        let keeper = inner
            .shared
            .runtime
            .spawn(keep(Arc::clone(&inner)))
            .abort_handle();
        Self { inner, keeper }
    }

    /// Calls a script on the server that has its keys.
    pub(super) async fn call(
        &self,
        call: &ScriptCall,
        deadline: Deadline,
    ) -> Result<Vec<i64>, Fault> {
        let slot = call.keys.first().map_or(0, |key| slot(key));
        let mut server = self.inner.map().server(slot).ok_or(Fault::Open)?;
        let mut asking = false;
        for _ in 0..MAX_REDIRECTS {
            // Whoever sends a call on has not run it.
            let to = match server.call(call, asking, deadline).await {
                Err(Fault::Moved(to)) => {
                    self.inner.shared.changed.notify_one();
                    asking = false;
                    to
                }
                Err(Fault::Ask(to)) => {
                    asking = true;
                    to
                }
                answer => return answer,
            };
            self.inner.shared.counts.redirects.add();
            let to = server
                .address()
                .map_or(to.clone(), |from| to.or_host_of(from));
            server = self.inner.server(&to)?;
        }
        server.call(call, asking, deadline).await
    }

    /// Of the whole, and of each server that has slots.
    pub(super) fn health(&self) -> (State, Vec<ServerHealth>) {
        let map = self.inner.map();
        let servers: Vec<_> = map.servers().map(|server| server.health()).collect();
        let lost = match &*lock(&self.inner.lost) {
            // Without a map nobody can be asked; with an old one, servers speak for themselves.
            Some((since, why)) if map.is_empty() => Some((*since, why.clone())),
            _ => map.gap(),
        };
        let down = lost.into_iter().chain(servers.iter().filter_map(|server| {
            let State::Down { since, why } = &server.state else {
                return None;
            };
            Some((*since, format!("{}: {why}", server.server)))
        }));
        let longest = down.min_by_key(|(since, _)| *since);
        let state = longest.map_or(State::Up, |(since, why)| State::Down { since, why });
        (state, servers)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

impl Inner {
    fn map(&self) -> Arc<Map> {
        Arc::clone(&self.map.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The server at an address, which may be new.
    fn server(&self, address: &Address) -> Result<Arc<Server>, Fault> {
        let now = self.shared.now();
        let mut servers = lock(&self.servers);
        if let Some(known) = servers.get_mut(address) {
            known.named = now;
            return Ok(Arc::clone(&known.server));
        }
        if servers.len() == MAX_SERVERS {
            let why = format!("a cluster of more than {MAX_SERVERS} servers");
            return Err(Fault::Unwell(why));
        }
        let source = Source::Fixed(address.clone());
        let server = Arc::new(Server::start(source, Arc::clone(&self.shared)));
        let known = Known {
            server: Arc::clone(&server),
            named: now,
        };
        servers.insert(address.clone(), known);
        Ok(server)
    }

    /// Whom to ask for the map: servers that are up, from anywhere among them, then the seeds.
    fn oracles(&self) -> Vec<Address> {
        let servers = lock(&self.servers);
        let up: Vec<_> = servers
            .iter()
            .filter(|(_, known)| known.server.health().state == State::Up)
            .map(|(address, _)| address.clone())
            .collect();
        drop(servers);
        let start = random() as usize % up.len().max(1);
        let from_anywhere = up.iter().cycle().skip(start).take(up.len());
        from_anywhere
            .take(ASK_KNOWN)
            .chain(&self.seeds)
            .cloned()
            .collect()
    }

    /// Asks for the map, and takes it over.
    async fn refresh(&self) -> Result<(), String> {
        let limit = self.shared.config.connect_timeout;
        let mut reasons = Vec::new();
        for oracle in self.oracles() {
            let asked = timeout(limit, self.ask(&oracle)).await;
            match asked.unwrap_or_else(|_| Err(format!("has not answered within {limit:?}"))) {
                Ok(spans) => return self.take_over(spans),
                Err(why) => reasons.push(format!("{oracle}: {why}")),
            }
        }
        Err(format!(
            "no server tells the map of the cluster: {}",
            reasons.join("; ")
        ))
    }

    async fn ask(&self, oracle: &Address) -> Result<Vec<Span<Address>>, String> {
        let shared = &self.shared;
        let mut question = cmd("CLUSTER");
        question.arg("SLOTS");
        let (login, tls) = (&shared.config.login, shared.tls.as_ref());
        let answer = connect::question(shared, oracle, login, tls, &question).await?;
        map::parse(&answer, oracle).ok_or_else(|| "CLUSTER SLOTS of another form".to_owned())
    }

    fn take_over(&self, spans: Vec<Span<Address>>) -> Result<(), String> {
        let mut found = Vec::with_capacity(spans.len());
        for Span {
            first,
            last,
            server,
        } in spans
        {
            let server = self.server(&server).map_err(|fault| fault.why())?;
            found.push(Span {
                first,
                last,
                server,
            });
        }
        let now = self.shared.now();
        let map = Arc::new(Map::new(found, now));
        *self.map.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&map);
        // Those with slots have just been named.
        lock(&self.servers).retain(|_, known| now.since(known.named) < LINGER);
        Ok(())
    }

    /// Tells the world when the map is lost or found.
    fn note(&self, refreshed: &Result<(), String>) {
        let now = match refreshed {
            Ok(()) => None,
            Err(why) => Some((self.shared.now(), why.clone())),
        };
        let mut lost = lock(&self.lost);
        let since = lost.as_ref().map(|(since, _)| *since);
        *lost = now.map(|(now, why)| (since.unwrap_or(now), why));
        drop(lost);
        match (since, refreshed) {
            (Some(_), Ok(())) => tracing::info!("the map of the Redis cluster is known"),
            (None, Err(why)) => {
                tracing::warn!(why, "the map of the Redis cluster cannot be renewed");
            }
            _ => {}
        }
    }
}

/// Keeps the map fresh.
async fn keep(cluster: Arc<Inner>) {
    let mut backoff = Backoff::default();
    loop {
        let refreshed = cluster.refresh().await;
        cluster.note(&refreshed);
        if refreshed.is_err() {
            sleep(backoff.next(random())).await;
            continue;
        }
        backoff.reset();
        let map = cluster.map();
        let well = map.gap().is_none() && map.servers().all(|server| server.is_up());
        drop(map);
        let pause = if well { REFRESH } else { LONGEST };
        // When it ends early, another server has come up in a server's place.
        let _ = timeout(pause, cluster.shared.changed.notified()).await;
        sleep(GAP + Backoff::default().next(random())).await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
