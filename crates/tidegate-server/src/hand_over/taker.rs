//! The new process: asks for the sockets, and says when it serves.

use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use socket2::Socket;
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::Sockets;
use super::channel::{Channel, Word};

/// Longest time that an old process takes for its next word.
const ANSWER: Duration = Duration::from_secs(10);
/// More sockets than any process hands over.
const MAX_SOCKETS: usize = 65_536;

/// An old process that has handed over its sockets, and still serves.
#[derive(Debug)]
pub(super) struct Taken(Channel);

/// Asks whoever is at `path` for its sockets. `None` if nobody is there. Within the runtime.
///
/// # Errors
/// If somebody is there and does not hand over: another user, one that hands over to another
/// process just now, one that ends meanwhile.
pub(super) async fn take(path: &Path) -> io::Result<Option<(Sockets, Taken)>> {
    let stream = match UnixStream::connect(path).await {
        Ok(stream) => stream,
        // No file, or one that a process has left behind.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            ) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let mut old = Channel::new(stream)?;
    // Whoever does not want to hear it may have said so already, and closed.
    let _ = old.send_hello().await;
    let mut sockets = Sockets::default();
    loop {
        let word = timeout(ANSWER, old.receive()).await;
        let word = word.map_err(|_| say("it does not answer"))?;
        let (word, socket) = word.map_err(ended)?;
        match word {
            Word::Gateway if sockets.gateway.len() < MAX_SOCKETS => {
                sockets.gateway.push(listener(socket)?);
            }
            Word::Admin => sockets.admin = Some(listener(socket)?),
            Word::AllSent => break,
            Word::Busy => return Err(say("it is handing over to another process")),
            Word::NotUnderstood => return Err(say("its version does not know this hand-over")),
            Word::Gateway | Word::Ready | Word::Going | Word::TooLate => {
                return Err(say("it says what does not belong here"));
            }
        }
    }
    Ok(Some((sockets, Taken(old))))
}

impl Taken {
    /// The id of the old process.
    pub(super) fn from(&self) -> i32 {
        self.0.peer()
    }

    /// Tells the old process that this one accepts connections, and waits for its leave: for as
    /// long as it takes, since both serve meanwhile.
    ///
    /// # Errors
    /// If the old process goes on serving; this one is to stop.
    pub(super) async fn ready(&self) -> io::Result<()> {
        if self.0.send(Word::Ready).await.is_err() {
            return Ok(()); // It has gone.
        }
        match self.0.receive().await {
            Ok((Word::Going, _)) => Ok(()),
            Ok((Word::TooLate, _)) => Err(say("this process took too long to start")),
            Ok(_) => Err(say("it says what does not belong here")),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(error),
            // It has gone: while it lives, it says what it does.
            Err(error) => {
                tracing::warn!(%error, "the old process ended before it had handed over");
                Ok(())
            }
        }
    }
}

/// Says that the old process has gone, if that is what `error` means.
fn ended(error: io::Error) -> io::Error {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    match error.kind() {
        BrokenPipe | ConnectionReset | UnexpectedEof => {
            say("it ended before it had handed all over")
        }
        _ => error,
    }
}

fn say(what: &str) -> io::Error {
    io::Error::other(what.to_owned())
}

/// A listening socket from what came with a word.
fn listener(socket: Option<OwnedFd>) -> io::Result<TcpListener> {
    let Some(socket) = socket else {
        return Err(say("a socket is missing (too many open files?)"));
    };
    let socket = Socket::from(socket);
    let is_internet = socket.local_addr()?.as_socket().is_some();
    if !is_internet || !socket.is_listener()? {
        return Err(say("it hands over what is no listening socket"));
    }
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}
