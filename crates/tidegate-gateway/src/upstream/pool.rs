//! The idle connections to one server.
//!
//! Last in, first out, so that few connections stay warm; bounded in number and in age. A
//! connection that the server closed while it rested is found out when a request is put on it:
//! nothing has been sent then, and the request goes over another. Where it was found out too late,
//! the request is sent again if it may be ([`resend`](super::resend)).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Request;
use tokio::net::TcpStream;

use super::connection::{Connection, Started};
use super::resend::Resend;
use crate::body::RequestBody;
use crate::counters::CoreCounters;
use crate::socket::Scratch;

/// One server of an upstream: `host:port`.
pub(crate) struct Server {
    address: Box<str>,
    counters: Arc<CoreCounters>,
    scratch: Scratch,
    /// The oldest in front.
    idle: RefCell<VecDeque<Idle>>,
}

struct Idle {
    connection: Box<Connection>,
    since: Instant,
}

/// A connection on loan; dropping it closes it.
#[derive(Debug)]
pub(crate) struct Lease {
    connection: Box<Connection>,
    server: Rc<Server>,
    /// Whether it has been used before, and so may be closed without our knowing.
    pub(crate) pooled: bool,
}

impl Server {
    /// Most idle connections of one core to one server.
    pub(crate) const MAX_IDLE: usize = 256;
    /// Longest rest of a connection.
    pub(crate) const MAX_REST: Duration = Duration::from_secs(30);

    pub(crate) fn new(address: &str, counters: Arc<CoreCounters>, scratch: Scratch) -> Self {
        Self {
            address: Box::from(address),
            counters,
            scratch,
            idle: RefCell::default(),
        }
    }

    /// The connection that was used last, or a new one.
    ///
    /// # Errors
    /// What the kernel or the resolver says; [`io::ErrorKind::TimedOut`] after `timeout`.
    pub(super) async fn lease(self: &Rc<Self>, timeout: Duration) -> io::Result<Lease> {
        let pooled = self.idle.borrow_mut().pop_back();
        if let Some(Idle { connection, .. }) = pooled {
            self.counters.upstream_idle.subtract(1);
            return Ok(Lease {
                connection,
                server: Rc::clone(self),
                pooled: true,
            });
        }
        let stream = tokio::time::timeout(timeout, TcpStream::connect(&*self.address)).await??;
        let (counters, scratch) = (Arc::clone(&self.counters), Rc::clone(&self.scratch));
        let resend = Resend::new(&self.address, counters, scratch);
        let connection = Box::new(Connection::open(stream, resend).await?);
        self.counters.upstream_connections.add(1);
        Ok(Lease {
            connection,
            server: Rc::clone(self),
            pooled: false,
        })
    }

    /// Counts and notes a failed attempt.
    pub(super) fn connect_failed(&self, upstream: &str, error: &io::Error) {
        self.counters.upstream_connect_errors.add(1);
        tracing::debug!(upstream, server = &*self.address, %error, "cannot connect");
    }

    /// Closes what has rested too long, or has been closed at the other end.
    pub(crate) fn sweep(&self, now: Instant) {
        let mut idle = self.idle.borrow_mut();
        let before = idle.len();
        idle.retain_mut(|idle| {
            now.saturating_duration_since(idle.since) < Self::MAX_REST && idle.connection.is_alive()
        });
        self.counters
            .upstream_idle
            .subtract((before - idle.len()) as u64);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.counters
            .upstream_idle
            .subtract(self.idle.get_mut().len() as u64);
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("address", &self.address)
            .field("idle", &self.idle.borrow().len())
            .finish_non_exhaustive()
    }
}

impl Lease {
    /// The server's address.
    pub(crate) fn server(&self) -> &str {
        &self.server.address
    }

    /// Puts `request` on the connection. Where its server may have closed it without our knowing,
    /// and the request may be done twice, a new one is made for it within `timeout`.
    pub(crate) fn start(
        &mut self,
        request: Request<RequestBody>,
        timeout: Duration,
    ) -> impl Started + use<> {
        self.connection
            .start(request, self.pooled.then_some(timeout))
    }

    pub(crate) fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Gives the connection back after a response has ended; closes it where it is of no use
    /// any more, or there are enough.
    pub(crate) fn give_back(mut self, now: Instant) {
        if !self.connection.is_reusable() {
            return;
        }
        let mut idle = self.server.idle.borrow_mut();
        if idle.len() < Server::MAX_IDLE {
            self.server.counters.upstream_idle.add(1);
            idle.push_back(Idle {
                connection: self.connection,
                since: now,
            });
        }
    }
}
