//! One core: a thread with a runtime, its listeners, and all that its connections share.
//!
//! Nothing here is shared with another core but the node and the count of connections.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use hyper::server::conn::http1;
use tidegate_node::{Node, Snapshot, Timer};
use tidegate_policy::Gateway;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::access_log::{Lines, Outlet};
use crate::client;
use crate::connections::{Connections, Place};
use crate::counters::CoreCounters;
use crate::framer::Bounds;
use crate::gateway::Shutdown;
use crate::request_id::Ids;
use crate::settings::{Settings, Timeouts};
use crate::socket::{self, Scratch};
use crate::upstream::Server;

/// What all connections of a core use.
pub(crate) struct Core {
    pub(crate) node: Arc<Node>,
    pub(crate) timer: Arc<dyn Timer>,
    pub(crate) counters: Arc<CoreCounters>,
    pub(crate) http: http1::Builder,
    /// Lines of the access log.
    pub(crate) lines: Rc<Lines>,
    pub(crate) ids: Ids,
    /// Of what clients send.
    pub(crate) bounds: Bounds,
    pub(crate) scratch: Scratch,
    /// Wakes whoever accepts when the gateway stops.
    stop: Notify,
    stopping: Cell<bool>,
    /// Wakes all connections when idle ones are to be closed.
    pub(crate) close: Notify,
    closing: Cell<bool>,
    settings: RefCell<Rc<Settings>>,
    timeouts: Cell<Timeouts>,
    servers: RefCell<HashMap<Box<str>, Rc<Server>>>,
    /// Of all cores.
    connections: Arc<Connections>,
    /// How many connections are still accepted from a socket after the stop.
    accept_queue: u32,
    open: Cell<usize>,
    /// Says that the last connection has closed.
    empty: Notify,
}

impl Core {
    /// How long `accept` rests after the process has run out of something.
    const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
    /// How long a connection is kept, after a hand-over, for one more request: whoever closes
    /// it may cross one that is on its way.
    const LAST_REQUESTS: Duration = Duration::from_secs(5);
    /// How often pools are looked through.
    const SWEEP: Duration = Duration::from_secs(5);

    pub(crate) fn new(
        gateway: &Gateway,
        node: Arc<Node>,
        timer: Arc<dyn Timer>,
        counters: Arc<CoreCounters>,
        connections: Arc<Connections>,
        log: Outlet,
    ) -> Rc<Self> {
        let servers = RefCell::default();
        let scratch = socket::scratch();
        let settings = {
            let snapshot = node.snapshot();
            Settings::new(snapshot.revision(), snapshot.policy(), |address| {
                server(&servers, address, &counters, &scratch)
            })
        };
        let lines = Rc::new(Lines::new(log, Arc::clone(&counters)));
        Rc::new(Self {
            node,
            timer,
            counters,
            http: http(gateway),
            lines,
            ids: Ids::default(),
            bounds: Bounds {
                head_bytes: gateway.max_header_bytes,
                trailer_bytes: gateway.max_trailer_bytes,
                fields: gateway.max_headers,
            },
            scratch,
            stop: Notify::new(),
            stopping: Cell::new(false),
            close: Notify::new(),
            closing: Cell::new(false),
            timeouts: Cell::new(settings.timeouts),
            settings: RefCell::new(Rc::new(settings)),
            servers,
            connections,
            accept_queue: gateway.accept_queue,
            open: Cell::new(0),
            empty: Notify::new(),
        })
    }

    /// Whether each answer is to be the last of its connection.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.get()
    }

    /// Whether idle connections are to be closed.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.get()
    }

    /// The timeouts of the newest policy that a request has met.
    pub(crate) fn timeouts(&self) -> Timeouts {
        self.timeouts.get()
    }

    /// What goes with the newest policy that a request has met.
    pub(crate) fn settings(&self) -> Rc<Settings> {
        Rc::clone(&self.settings.borrow())
    }

    /// What goes with `snapshot`.
    pub(crate) fn settings_of(&self, snapshot: &Snapshot) -> Rc<Settings> {
        let current = self.settings.borrow();
        if current.revision == snapshot.revision() {
            return Rc::clone(&current);
        }
        drop(current);
        self.renew(snapshot)
    }

    #[cold]
    fn renew(&self, snapshot: &Snapshot) -> Rc<Settings> {
        let settings = Settings::new(snapshot.revision(), snapshot.policy(), |address| {
            server(&self.servers, address, &self.counters, &self.scratch)
        });
        let settings = Rc::new(settings);
        self.timeouts.set(settings.timeouts);
        *self.settings.borrow_mut() = Rc::clone(&settings);
        // Servers that no upstream has any more go, with their connections.
        self.servers
            .borrow_mut()
            .retain(|_, server| Rc::strong_count(server) > 1);
        settings
    }

    /// Begins to accept.
    pub(crate) fn accept_from(
        self: &Rc<Self>,
        listeners: Vec<std::net::TcpListener>,
    ) -> io::Result<JoinSet<()>> {
        let mut acceptors = JoinSet::new();
        for listener in listeners {
            let listener = TcpListener::from_std(listener)?;
            acceptors.spawn_local(Rc::clone(self).accept(listener));
        }
        Ok(acceptors)
    }

    /// Serves until `stop` ends; then finishes what is in flight, for at most `grace`.
    pub(crate) async fn run(
        self: Rc<Self>,
        mut acceptors: JoinSet<()>,
        stop: impl Future<Output = Shutdown>,
        grace: Duration,
    ) -> io::Result<()> {
        let sweeping = tokio::task::spawn_local(Rc::clone(&self).sweep());
        let logging = tokio::task::spawn_local(Rc::clone(&self.lines).keep_moving());
        let shutdown = tokio::select! {
            shutdown = stop => shutdown,
            Some(_) = acceptors.join_next() => {
                return Err(io::Error::other("a listener of the gateway has died"));
            }
        };
        self.stopping.set(true);
        self.stop.notify_waiters();
        let last_requests = match shutdown {
            Shutdown::Stop => Duration::ZERO,
            Shutdown::HandOver => Self::LAST_REQUESTS.min(grace / 2),
        };
        if last_requests.is_zero() {
            self.close_idle();
        }
        let closing = async {
            tokio::time::sleep(last_requests).await;
            self.close_idle();
            std::future::pending::<()>().await;
        };
        let all_closed = async {
            // They accept what the kernel has already let in, and end.
            while acceptors.join_next().await.is_some() {}
            while self.open.get() > 0 {
                self.empty.notified().await;
            }
        };
        let ended = async {
            tokio::select! {
                () = all_closed => {}
                () = closing => {}
            }
        };
        if tokio::time::timeout(grace, ended).await.is_err() {
            tracing::warn!(
                open = self.open.get(),
                "connections are cut off: they took too long"
            );
        }
        sweeping.abort();
        logging.abort();
        Ok(())
    }

    fn close_idle(&self) {
        self.closing.set(true);
        self.close.notify_waiters();
    }

    async fn accept(self: Rc<Self>, listener: TcpListener) {
        // What comes after the stop could go on for ever.
        let mut last_ones = self.accept_queue;
        while last_ones > 0
            && let Some(accepted) = self.next_connection(&listener).await
        {
            last_ones -= u32::from(self.is_stopping());
            match accepted {
                Ok((stream, peer)) => {
                    let is_trusted = || self.settings.borrow().trusted.contains(peer.ip());
                    // While there is no place, further connections wait in the kernel.
                    let place = match self.connections.place(peer.ip(), is_trusted).await {
                        Ok(place) => place,
                        Err(too_many) => {
                            self.counters.connections_refused.add(1);
                            too_many.tell(stream);
                            continue;
                        }
                    };
                    self.counters.connections_accepted.add(1);
                    let open = Open::new(Rc::clone(&self), place);
                    let core = Rc::clone(&self);
                    tokio::task::spawn_local(async move {
                        let _open = open;
                        client::serve(core, stream, peer).await;
                    });
                }
                Err(error) => {
                    self.counters.accept_errors.add(1);
                    tracing::warn!(%error, "cannot accept connections");
                    tokio::time::sleep(Self::ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// The next connection; `None` when the gateway stops and no more are waiting.
    async fn next_connection(
        &self,
        listener: &TcpListener,
    ) -> Option<io::Result<(TcpStream, SocketAddr)>> {
        let mut stop = std::pin::pin!(self.stop.notified());
        // The kernel is asked once more for what has arrived before the end.
        let mut last_look = std::pin::pin!(tokio::task::yield_now());
        std::future::poll_fn(|context| {
            let _ = stop.as_mut().poll(context);
            let end = self.is_stopping() && last_look.as_mut().poll(context).is_ready();
            loop {
                match listener.poll_accept(context) {
                    Poll::Ready(Err(error)) if is_of_one_connection(&error) => {}
                    Poll::Ready(accepted) => return Poll::Ready(Some(accepted)),
                    Poll::Pending if end => return Poll::Ready(None),
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await
    }

    async fn sweep(self: Rc<Self>) {
        loop {
            tokio::time::sleep(Self::SWEEP).await;
            let servers: Vec<_> = self.servers.borrow().values().cloned().collect();
            for server in servers {
                server.sweep(Instant::now());
            }
        }
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core")
            .field("open", &self.open.get())
            .finish_non_exhaustive()
    }
}

fn http(gateway: &Gateway) -> http1::Builder {
    /// What hyper reads without an allocation per request.
    const FREE_HEADERS: usize = 100;
    let mut http = http1::Builder::new();
    // Deadlines are the watch's.
    http.header_read_timeout(None)
        .max_header_size(gateway.max_header_bytes);
    if gateway.max_headers > FREE_HEADERS {
        http.max_headers(gateway.max_headers);
    }
    http
}

fn server(
    servers: &RefCell<HashMap<Box<str>, Rc<Server>>>,
    address: &str,
    counters: &Arc<CoreCounters>,
    scratch: &Scratch,
) -> Rc<Server> {
    let mut servers = servers.borrow_mut();
    if let Some(server) = servers.get(address) {
        return Rc::clone(server);
    }
    let server = Rc::new(Server::new(
        address,
        Arc::clone(counters),
        Rc::clone(scratch),
    ));
    servers.insert(Box::from(address), Rc::clone(&server));
    server
}

/// Errors of `accept` that are the connection's, not ours: the next one may be fine.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted
    )
}

/// A client connection that is open; counts it out again whatever happens to it.
struct Open {
    core: Rc<Core>,
    _place: Place,
}

impl Open {
    fn new(core: Rc<Core>, place: Place) -> Self {
        core.counters.connections_open.add(1);
        core.open.set(core.open.get() + 1);
        Self {
            core,
            _place: place,
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let core = &self.core;
        core.counters.connections_open.subtract(1);
        if std::thread::panicking() {
            core.counters.panics.add(1);
        }
        core.open.set(core.open.get() - 1);
        if core.open.get() == 0 {
            core.empty.notify_one();
        }
    }
}
