//! Listening sockets: one per core, and yet a port that is taken is an error.
//!
//! With `SO_REUSEPORT` alone a second gateway of the same user would quietly take half of the
//! connections. So the first socket of an address is bound and put to listen *without* it,
//! which the kernel refuses if anybody listens there, with `SO_REUSEPORT` or not; there is no
//! moment between a test and a bind. Only then is `SO_REUSEPORT` set on it, and the other cores'
//! sockets join it. Another gateway cannot: its own first socket is refused.

use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Protocol, Socket, Type};

/// Connections that the kernel holds for one socket until they are accepted.
const BACKLOG: i32 = 4096;

/// `count` sockets that listen on `address` and share its connections. Port 0 is a free port,
/// the same for all.
///
/// # Errors
/// What the kernel says; [`io::ErrorKind::AddrInUse`] if somebody listens there already.
pub(crate) fn listen(address: SocketAddr, count: usize) -> io::Result<Vec<TcpListener>> {
    let first = socket(address)?;
    bind_and_listen(&first, address)?;
    let mut listeners = Vec::with_capacity(count);
    if count > 1 {
        share(&first)?;
    }
    let first = TcpListener::from(first);
    let bound = first.local_addr()?;
    for _ in 1..count {
        listeners.push(another(&first, bound)?);
    }
    listeners.push(first);
    Ok(listeners)
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

fn bind_and_listen(socket: &Socket, address: SocketAddr) -> io::Result<()> {
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)
}

#[cfg(target_os = "linux")]
fn share(first: &Socket) -> io::Result<()> {
    first.set_reuse_port(true)
}

#[cfg(target_os = "linux")]
fn another(_first: &TcpListener, bound: SocketAddr) -> io::Result<TcpListener> {
    let socket = socket(bound)?;
    socket.set_reuse_port(true)?;
    bind_and_listen(&socket, bound)?;
    Ok(socket.into())
}

/// Elsewhere `SO_REUSEPORT` does not spread connections: all cores accept from one socket.
#[cfg(not(target_os = "linux"))]
fn share(_first: &Socket) -> io::Result<()> {
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn another(first: &TcpListener, _bound: SocketAddr) -> io::Result<TcpListener> {
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
            let listeners = listen(free_port(), ours).unwrap();
            let address = listeners[0].local_addr().unwrap();
            let error = listen(address, theirs).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
            drop(listeners);
            listen(address, theirs).unwrap();
        }
    }

    #[test]
    fn somebody_elses_shared_port_is_taken_too() {
        let other = socket(free_port()).unwrap();
        other.set_reuse_port(true).unwrap();
        bind_and_listen(&other, free_port()).unwrap();
        let address = TcpListener::from(other.try_clone().unwrap())
            .local_addr()
            .unwrap();
        let error = listen(address, 2).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn every_core_gets_connections() {
        let listeners = listen(free_port(), 2).unwrap();
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
