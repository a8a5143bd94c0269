//! Listening sockets: one per core, and yet a port that is taken is an error.
//!
//! With `SO_REUSEPORT` alone a second gateway of the same user would quietly take half of the
//! connections. So the first socket of an address is bound and put to listen *without* it,
//! which the kernel refuses if anybody listens there, with `SO_REUSEPORT` or not; there is no
//! moment between a test and a bind. Only then is `SO_REUSEPORT` set on it, and the other cores'
//! sockets join it. Another gateway cannot: its own first socket is refused.
//!
//! A gateway that takes over from another is handed that one's sockets and keeps them all: what
//! waits in the queue of a socket that is closed is lost, whoever else listens.

use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Protocol, SockRef, Socket, Type};

/// At least `count` sockets that listen on `address` and share its connections, of which the
/// kernel holds `backlog` for each until they are accepted. Port 0 is a free port, the same for
/// all. Sockets of this address that are among `handed` are taken out of it and come first.
///
/// # Errors
/// What the kernel says; [`io::ErrorKind::AddrInUse`] if somebody listens there already.
pub(crate) fn listen(
    address: SocketAddr,
    count: usize,
    backlog: u32,
    handed: &mut Vec<TcpListener>,
) -> io::Result<Vec<TcpListener>> {
    let backlog = i32::try_from(backlog).unwrap_or(i32::MAX);
    let mut listeners = take(address, handed);
    if listeners.is_empty() {
        let first = socket(address)?;
        first.bind(&address.into())?;
        first.listen(backlog)?;
        listeners.push(first.into());
    } else {
        for listener in &listeners {
            // The length of a queue may change while the socket listens.
            SockRef::from(listener).listen(backlog)?;
        }
    }
    let bound = listeners[0].local_addr()?;
    if listeners.len() < count {
        share(&SockRef::from(&listeners[0]))?;
    }
    while listeners.len() < count {
        let another = another(&listeners[0], bound, backlog)?;
        listeners.push(another);
    }
    Ok(listeners)
}

/// Those of `handed` that listen on `address`; for port 0, those of the first port of that host.
fn take(address: SocketAddr, handed: &mut Vec<TcpListener>) -> Vec<TcpListener> {
    let mut wanted = address;
    handed
        .extract_if(.., |listener| {
            let Ok(bound) = listener.local_addr() else {
                return false;
            };
            if wanted.port() == 0 && bound.ip() == wanted.ip() {
                wanted = bound;
            }
            bound == wanted
        })
        .collect()
}

fn socket(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    // So that a restart need not wait for the old connections' last packets.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

#[cfg(target_os = "linux")]
fn share(first: &Socket) -> io::Result<()> {
    first.set_reuse_port(true)
}

#[cfg(target_os = "linux")]
fn another(_first: &TcpListener, bound: SocketAddr, backlog: i32) -> io::Result<TcpListener> {
    let socket = socket(bound)?;
    socket.set_reuse_port(true)?;
    socket.bind(&bound.into())?;
    socket.listen(backlog)?;
    Ok(socket.into())
}

/// Elsewhere `SO_REUSEPORT` does not spread connections: all cores accept from one socket.
#[cfg(not(target_os = "linux"))]
fn share(_first: &Socket) -> io::Result<()> {
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn another(first: &TcpListener, _bound: SocketAddr, _backlog: i32) -> io::Result<TcpListener> {
    first.try_clone()
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpStream};
    use std::time::{Duration, Instant};

    use super::*;

    fn free_port() -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
    }

    fn fresh(address: SocketAddr, count: usize) -> io::Result<Vec<TcpListener>> {
        listen(address, count, 4096, &mut Vec::new())
    }

    fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            if let Some(found) = found() {
                return found;
            }
            assert!(Instant::now() < deadline, "{what}");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_second_gateway_on_a_taken_port_is_refused() {
        for (ours, theirs) in [(1, 1), (2, 2), (2, 1), (1, 2)] {
            let listeners = fresh(free_port(), ours).unwrap();
            let address = listeners[0].local_addr().unwrap();
            let error = fresh(address, theirs).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
            drop(listeners);
            fresh(address, theirs).unwrap();
        }
    }

    #[test]
    fn somebody_elses_shared_port_is_taken_too() {
        let other = socket(free_port()).unwrap();
        other.set_reuse_port(true).unwrap();
        other.bind(&free_port().into()).unwrap();
        other.listen(1).unwrap();
        let address = TcpListener::from(other.try_clone().unwrap())
            .local_addr()
            .unwrap();
        let error = fresh(address, 2).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn every_core_gets_connections() {
        let listeners = fresh(free_port(), 2).unwrap();
        let address = listeners[0].local_addr().unwrap();
        assert_eq!(listeners[1].local_addr().unwrap(), address);
        let mut accepted = [0; 2];
        let mut clients = Vec::new();
        while accepted.contains(&0) {
            assert!(clients.len() < 64, "one socket gets all: {accepted:?}");
            clients.push(TcpStream::connect(address).unwrap());
            wait_for("the connection arrives", || {
                let index = listeners
                    .iter()
                    .position(|listener| listener.accept().is_ok())?;
                accepted[index] += 1;
                Some(())
            });
        }
    }
}
