//! Where requests go: the servers of an upstream, in turn, each with a pool of connections.
//!
//! All of it belongs to one core; nothing is shared or locked.

mod connection;
mod pool;
mod resend;

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use http::HeaderValue;
use tidegate_policy::UpstreamKind;

pub(crate) use connection::Failure;
pub(crate) use pool::{Lease, Server};

/// A destination of a policy.
#[derive(Debug)]
pub(crate) enum Upstream {
    /// Answers by itself.
    Echo,
    /// Servers that are tried in turn.
    Servers(Servers),
}

impl Upstream {
    pub(crate) fn new(
        upstream: &tidegate_policy::Upstream,
        mut server: impl FnMut(&str) -> Rc<Server>,
    ) -> Self {
        match &upstream.kind {
            UpstreamKind::Echo => Self::Echo,
            UpstreamKind::Servers(addresses) => Self::Servers(Servers {
                name: upstream.name.clone(),
                host: addresses
                    .first()
                    .and_then(|address| HeaderValue::from_str(address).ok())
                    .unwrap_or_else(|| NO_HOST.clone()),
                all: addresses.iter().map(|address| server(address)).collect(),
                next: Cell::new(0),
            }),
        }
    }
}

impl Upstream {
    /// The `Host` of requests whose clients have said none.
    pub(crate) const fn host(&self) -> &HeaderValue {
        match self {
            Self::Echo => &NO_HOST,
            Self::Servers(servers) => &servers.host,
        }
    }
}

static NO_HOST: HeaderValue = HeaderValue::from_static("");

/// The servers of an upstream, taken one after the other.
#[derive(Debug)]
pub(crate) struct Servers {
    name: String,
    /// The address of the first.
    host: HeaderValue,
    all: Box<[Rc<Server>]>,
    next: Cell<usize>,
}

impl Servers {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The servers in the order in which this request tries them.
    fn in_turn(&self) -> impl Iterator<Item = &Rc<Server>> {
        let first = self.next.get();
        self.next.set((first + 1) % self.all.len());
        let (before, from) = self.all.split_at(first);
        from.iter().chain(before)
    }

    /// A connection to the next server, from its pool or a new one; where a server cannot be
    /// connected to, the one after it is tried, each once.
    ///
    /// # Errors
    /// Of the last server, if none can be connected to.
    pub(crate) async fn connect(&self, timeout: Duration) -> io::Result<Lease> {
        let mut failure = io::ErrorKind::NotFound.into();
        for server in self.in_turn() {
            match server.lease(timeout).await {
                Ok(lease) => return Ok(lease),
                Err(error) => {
                    server.connect_failed(&self.name, &error);
                    failure = error;
                }
            }
        }
        Err(failure)
    }
}
