//! The gateway as a whole: bound, then run.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tidegate_node::{Node, Timer};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{Semaphore, oneshot, watch};

use crate::access_log::{Outlet, Reopen, Writer};
use crate::connections::Connections;
use crate::core::Core;
use crate::counters::Counters;
use crate::listener::listen;

/// The reverse proxy.
#[derive(Debug)]
pub struct Gateway;

/// A gateway that listens, and answers as soon as it is [run](Self::run).
pub struct Bound {
    config: tidegate_policy::Gateway,
    node: Arc<Node>,
    timer: Arc<dyn Timer>,
    addresses: Vec<SocketAddr>,
    /// The sockets of each core.
    listeners: Vec<Vec<TcpListener>>,
    counters: Counters,
    /// A permit for each core that accepts.
    accepting: Arc<Semaphore>,
    log: Writer,
}

/// Why a gateway is to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// It is to end: idle connections are closed at once.
    Stop,
    /// Another gateway accepts from the same sockets: what is in their queues is that one's.
    /// Connections that are kept alive are told to close with their next answer; idle ones are
    /// given some seconds for a request that may be on its way.
    HandOver,
}

impl Gateway {
    /// Listens on the addresses of `config`, for as many cores as the process may use.
    ///
    /// Addresses to listen on, the bounds of a request's header, the number of connections and
    /// the time to shut down are taken from `config` and stay; everything else follows the
    /// policy of `node`. Delays that limits impose are waited out on `timer`, which goes with
    /// the clock of `node`.
    ///
    /// # Errors
    /// What the kernel says, with the address; [`io::ErrorKind::AddrInUse`] if somebody listens
    /// there already, even if both would share (`SO_REUSEPORT`).
    pub fn bind(
        config: &tidegate_policy::Gateway,
        node: Arc<Node>,
        timer: Arc<dyn Timer>,
    ) -> io::Result<Bound> {
        let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Self::bind_on(config, node, timer, cores)
    }

    /// The same, for so many cores.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub fn bind_on(
        config: &tidegate_policy::Gateway,
        node: Arc<Node>,
        timer: Arc<dyn Timer>,
        cores: NonZeroUsize,
    ) -> io::Result<Bound> {
        Self::take_over(config, node, timer, cores, Vec::new())
    }

    /// The same, with the sockets that another gateway has handed over: those of addresses of
    /// `config` are used as they are, all of them, even if there are more than cores; for other
    /// addresses new ones are bound. Sockets that `config` has no use for are closed.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub fn take_over(
        config: &tidegate_policy::Gateway,
        node: Arc<Node>,
        timer: Arc<dyn Timer>,
        cores: NonZeroUsize,
        mut handed: Vec<TcpListener>,
    ) -> io::Result<Bound> {
        let cores = cores.get();
        let mut addresses = Vec::with_capacity(config.listen.len());
        let mut listeners: Vec<_> = (0..cores).map(|_| Vec::new()).collect();
        for &address in &config.listen {
            let explain = |error: io::Error| {
                io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
            };
            let sockets =
                listen(address, cores, config.accept_queue, &mut handed).map_err(explain)?;
            addresses.push(sockets[0].local_addr().map_err(explain)?);
            for (index, socket) in sockets.into_iter().enumerate() {
                listeners[index % cores].push(socket);
            }
        }
        // One more, for the thread that writes the access log.
        let counters = Counters::new(cores + 1);
        let target = config.access_log.as_ref().map(|log| &log.target);
        let log = Writer::open(target, counters.core(cores))?;
        Ok(Bound {
            config: config.clone(),
            node,
            timer,
            addresses,
            listeners,
            counters,
            accepting: Arc::new(Semaphore::new(0)),
            log,
        })
    }
}

impl Bound {
    /// Where it listens: the addresses of its policy, with the port that was found for port 0.
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What it counts, to be read while it runs.
    pub fn counters(&self) -> Counters {
        self.counters.clone()
    }

    /// The sockets that it accepts from, to be handed to another gateway. While there is a copy
    /// of one, clients can connect to it, whether or not anybody accepts.
    ///
    /// # Errors
    /// If there are no more file descriptors.
    pub fn sockets(&self) -> io::Result<Vec<TcpListener>> {
        let all = self.listeners.iter().flatten();
        all.map(TcpListener::try_clone).collect()
    }

    /// Ends once it is run and each core accepts connections; if one cannot start, never.
    pub fn accepting(&self) -> impl Future<Output = ()> + Send + use<> {
        let accepting = Arc::clone(&self.accepting);
        let cores = u32::try_from(self.listeners.len()).unwrap_or(u32::MAX);
        async move {
            if accepting.acquire_many(cores).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Has the access log's file opened anew, at any time.
    pub fn reopen(&self) -> Reopen {
        self.log.reopen()
    }

    /// Serves until `shutdown` ends. Then it stops accepting, closes idle connections, lets
    /// requests in flight end for as long as the policy's shutdown timeout, and returns.
    ///
    /// # Errors
    /// If a core cannot start, or has died; the others are stopped then.
    ///
    /// # Cancel safety
    /// Dropping the future shuts the gateway down in the background.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        self.run_until(async {
            shutdown.await;
            Shutdown::Stop
        })
        .await
    }

    /// The same, ending as `shutdown` says.
    ///
    /// # Errors
    /// If a core cannot start, or has died; the others are stopped then.
    ///
    /// # Cancel safety
    /// Dropping the future shuts the gateway down in the background.
    pub async fn run_until(self, shutdown: impl Future<Output = Shutdown>) -> io::Result<()> {
        let (stop, stopped) = watch::channel(None);
        let connections = Connections::new(&self.config);
        let mut cores = Vec::new();
        for (index, listeners) in self.listeners.into_iter().enumerate() {
            let seed = Seed {
                config: self.config.clone(),
                node: Arc::clone(&self.node),
                timer: Arc::clone(&self.timer),
                counters: self.counters.clone(),
                connections: Arc::clone(&connections),
                accepting: Arc::clone(&self.accepting),
                log: self.log.outlet(),
                index,
            };
            cores.push(seed.start(listeners, stopped.clone())?);
        }
        drop(stopped);
        let written = self.log.start()?;
        let mut ended = std::pin::pin!(all(cores));
        let shutdown = tokio::select! {
            result = &mut ended => return result,
            shutdown = shutdown => shutdown,
        };
        stop.send_replace(Some(shutdown));
        let result = ended.await;
        // What was logged last is in the file when the gateway has stopped.
        let _ = tokio::task::spawn_blocking(|| written.wait()).await;
        result
    }
}

impl fmt::Debug for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bound")
            .field("addresses", &self.addresses)
            .finish_non_exhaustive()
    }
}

/// Waits for all cores, or for the first that fails.
async fn all(mut cores: Vec<oneshot::Receiver<io::Result<()>>>) -> io::Result<()> {
    poll_fn(|context| {
        let mut failure = Ok(());
        cores.retain_mut(|core| match Pin::new(core).poll(context) {
            Poll::Pending => true,
            Poll::Ready(Ok(Ok(()))) => false,
            Poll::Ready(Ok(Err(error))) => {
                failure = Err(error);
                false
            }
            Poll::Ready(Err(_)) => {
                failure = Err(io::Error::other("a core of the gateway has died"));
                false
            }
        });
        if failure.is_err() || cores.is_empty() {
            Poll::Ready(failure)
        } else {
            Poll::Pending
        }
    })
    .await
}

/// What a core is made of, on its own thread.
struct Seed {
    config: tidegate_policy::Gateway,
    node: Arc<Node>,
    timer: Arc<dyn Timer>,
    counters: Counters,
    connections: Arc<Connections>,
    accepting: Arc<Semaphore>,
    log: Outlet,
    index: usize,
}

impl Seed {
    /// Starts the thread; the receiver says how it ended.
    fn start(
        self,
        listeners: Vec<TcpListener>,
        stopped: watch::Receiver<Option<Shutdown>>,
    ) -> io::Result<oneshot::Receiver<io::Result<()>>> {
        let (end, ended) = oneshot::channel();
        std::thread::Builder::new()
            .name(format!("gateway-{}", self.index))
            .spawn(move || {
                // Nobody listens any more if the gateway's future has been dropped.
                let _ = end.send(self.run(listeners, stopped));
            })?;
        Ok(ended)
    }

    fn run(
        self,
        listeners: Vec<TcpListener>,
        mut stopped: watch::Receiver<Option<Shutdown>>,
    ) -> io::Result<()> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build_local(LocalOptions::default())?;
        let counters = self.counters.core(self.index);
        let core = Core::new(
            &self.config,
            self.node,
            self.timer,
            counters,
            self.connections,
            self.log,
        );
        let stop = async move {
            // An error says that the sender has gone: that is a stop as well.
            let stopped = stopped.wait_for(Option::is_some).await;
            stopped
                .ok()
                .and_then(|shutdown| *shutdown)
                .unwrap_or(Shutdown::Stop)
        };
        let running = async move {
            let acceptors = core.accept_from(listeners)?;
            self.accepting.add_permits(1);
            core.run(acceptors, stop, self.config.shutdown_timeout)
                .await
        };
        runtime.block_on(running)?;
        runtime.shutdown_timeout(Duration::ZERO);
        Ok(())
    }
}
