//! How many client connections there may be: of all, and of one client.
//!
//! Counted over all cores. A connection that is too many is answered without being read: the
//! answer is the same for all, is written once and not waited for, so that a flood costs the
//! gateway no more than to accept and to close.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::StatusCode;
use socket2::SockRef;
use tidegate_http::{PROBLEM_JSON, Problem};
use tidegate_policy::{Gateway, WhenFull};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What all cores share of it.
#[derive(Debug)]
pub(crate) struct Connections {
    places: Arc<Semaphore>,
    when_full: WhenFull,
    of_clients: Option<OfClients>,
    gateway: Gateway,
    full: Box<[u8]>,
    too_many: Box<[u8]>,
}

/// A place for one connection, which is given back whatever happens to it.
#[derive(Debug)]
pub(crate) struct Place {
    _of_all: OwnedSemaphorePermit,
    _of_client: Option<OfClient>,
}

/// The answer to a connection that is too many.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TooMany<'a>(&'a [u8]);

impl Connections {
    pub(crate) fn new(gateway: &Gateway) -> Arc<Self> {
        let places = gateway.max_connections.min(Semaphore::MAX_PERMITS);
        Arc::new(Self {
            places: Arc::new(Semaphore::new(places)),
            when_full: gateway.when_full,
            of_clients: gateway.max_connections_per_client.map(OfClients::new),
            gateway: gateway.clone(),
            full: answer(
                StatusCode::SERVICE_UNAVAILABLE,
                "there are as many connections as there may be",
            ),
            too_many: answer(
                StatusCode::TOO_MANY_REQUESTS,
                "this client has as many connections as it may have",
            ),
        })
    }

    /// A place for one more connection of `peer`; waits for one if the policy says so.
    ///
    /// # Cancel safety
    /// Nothing is taken.
    pub(crate) async fn place(
        self: &Arc<Self>,
        peer: IpAddr,
        is_trusted: impl FnOnce() -> bool,
    ) -> Result<Place, TooMany<'_>> {
        let of_client = match &self.of_clients {
            Some(of_clients) if !is_trusted() => {
                let client = self.gateway.client_of(peer);
                Some(of_clients.enter(client).ok_or(TooMany(&self.too_many))?)
            }
            Some(_) | None => None,
        };
        let places = Arc::clone(&self.places);
        let of_all = match self.when_full {
            WhenFull::Wait => places.acquire_owned().await.ok(),
            WhenFull::Refuse => places.try_acquire_owned().ok(),
        };
        Ok(Place {
            _of_all: of_all.ok_or(TooMany(&self.full))?,
            _of_client: of_client,
        })
    }
}

impl TooMany<'_> {
    /// Says so, and closes. What does not go into the socket at once is lost; so may be all of it
    /// if the client sends on.
    pub(crate) fn tell(self, stream: TcpStream) {
        const MAX_READS: usize = 4;
        let socket = SockRef::from(&stream);
        // A socket that is closed with something unread is reset.
        let mut buffer = [MaybeUninit::uninit(); 4096];
        for _ in 0..MAX_READS {
            if !socket
                .recv(&mut buffer)
                .is_ok_and(|read| read == buffer.len())
            {
                break;
            }
        }
        let _ = socket.send(self.0);
        drop(stream);
    }
}

fn answer(status: StatusCode, detail: &str) -> Box<[u8]> {
    let body = Problem::of(status).detail(detail).to_json();
    let reason = status.canonical_reason().unwrap_or_default();
    let code = status.as_u16();
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {code} {reason}\r\ncontent-type: {PROBLEM_JSON}\r\n\
         content-length: {length}\r\nconnection: close\r\n\r\n"
    );
    let mut answer = head.into_bytes();
    answer.extend_from_slice(body.as_ref());
    answer.into()
}

/// How many connections each client has. Only those that have some are remembered.
#[derive(Clone, Debug)]
struct OfClients {
    most: NonZeroU32,
    open: Arc<Mutex<HashMap<IpAddr, u32>>>,
}

/// One connection of a client.
#[derive(Debug)]
struct OfClient {
    of_clients: OfClients,
    client: IpAddr,
}

impl OfClients {
    fn new(most: NonZeroU32) -> Self {
        let open = Arc::default();
        Self { most, open }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<IpAddr, u32>> {
        // A number is changed in one step: whoever panicked has left nothing half done.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, client: IpAddr) -> Option<OfClient> {
        let mut all = self.open();
        let open = all.entry(client).or_default();
        if *open >= self.most.get() {
            return None;
        }
        *open += 1;
        drop(all);
        Some(OfClient {
            of_clients: self.clone(),
            client,
        })
    }
}

impl Drop for OfClient {
    fn drop(&mut self) {
        if let Entry::Occupied(mut open) = self.of_clients.open().entry(self.client) {
            *open.get_mut() -= 1;
            if *open.get() == 0 {
                open.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;
    use std::task::{Context, Waker};

    use super::*;

    fn connections(most: u32) -> Arc<Connections> {
        Connections::new(&Gateway {
            max_connections_per_client: NonZeroU32::new(most),
            ..Gateway::default()
        })
    }

    fn remembered(connections: &Connections) -> usize {
        connections.of_clients.as_ref().unwrap().open().len()
    }

    fn client(line: u128, host: u128) -> IpAddr {
        IpAddr::V6(Ipv6Addr::from_bits(0x2001_0db8 << 96 | line << 64 | host))
    }

    #[tokio::test]
    async fn only_clients_with_connections_are_remembered() {
        let connections = connections(1);
        let mut places = Vec::new();
        for line in 0..100 {
            places.push(connections.place(client(line, 0), || false).await.unwrap());
            let another = connections.place(client(line, 1), || false).await;
            assert!(another.is_err(), "one line is one client");
        }
        assert_eq!(remembered(&connections), 100);
        places.truncate(10);
        assert_eq!(remembered(&connections), 10);
        places.clear();
        assert_eq!(remembered(&connections), 0);
    }

    #[tokio::test]
    async fn who_is_trusted_is_not_counted() {
        let connections = connections(1);
        let _first = connections.place(client(0, 0), || true).await.unwrap();
        let _second = connections.place(client(0, 0), || true).await.unwrap();
        assert_eq!(remembered(&connections), 0);
    }

    /// Whoever gives up waiting has taken nothing.
    #[tokio::test]
    async fn a_connection_that_waits_in_vain_leaves_its_clients_place() {
        let connections = Connections::new(&Gateway {
            max_connections: 1,
            max_connections_per_client: NonZeroU32::new(2),
            ..Gateway::default()
        });
        let _place = connections.place(client(0, 0), || false).await.unwrap();
        {
            let mut waiting = std::pin::pin!(connections.place(client(1, 0), || false));
            let mut context = Context::from_waker(Waker::noop());
            assert!(waiting.as_mut().poll(&mut context).is_pending());
            assert_eq!(remembered(&connections), 2);
        }
        assert_eq!(remembered(&connections), 1);
    }

    #[test]
    fn counts_are_exact_when_many_come_and_go() {
        const MOST: u32 = 3;
        let of_clients = OfClients::new(NonZeroU32::new(MOST).unwrap());
        let address = client(0, 0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        let place = of_clients.enter(address);
                        let open = of_clients.open().get(&address).copied().unwrap_or(0);
                        assert!(open <= MOST && (place.is_none() || open > 0));
                    }
                });
            }
        });
        assert!(of_clients.open().is_empty());
    }
}
