//! Where a running process can be asked for its sockets.

use std::convert::Infallible;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::UnixListener;
use tokio::time::timeout;

use super::Sockets;
use super::channel::{Channel, Word};

/// Longest time until a new process says what it wants, and until it has taken the path.
const SHORT: Duration = Duration::from_secs(5);
/// Longest time that a new process takes to start.
const START: Duration = Duration::from_mins(1);
/// How long `accept` rests after the process has run out of something.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A Unix socket at a path of its own, until it is [published](Self::publish).
#[derive(Debug)]
pub(super) struct Door {
    listener: UnixListener,
    path: PathBuf,
    /// Device and number of the file: whether what is at a path is ours.
    file: (u64, u64),
    published: bool,
}

impl Door {
    /// Within the runtime. Only this user may connect.
    ///
    /// # Errors
    /// If the path cannot be used, or belongs to something else than a socket.
    pub(super) fn prepare(path: &Path) -> io::Result<Self> {
        match fs::symlink_metadata(path) {
            Ok(found) if !found.file_type().is_socket() => {
                let message = "there is something that is no socket";
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let own = own_path(path);
        // Left by a process that had our number and ended before it could clean up.
        let _ = fs::remove_file(&own);
        let listener = UnixListener::bind(&own)?;
        let found = fs::symlink_metadata(&own)?;
        let door = Self {
            listener,
            path: path.to_owned(),
            file: (found.dev(), found.ino()),
            published: false,
        };
        // Until now the file mode was the umask's; other users are turned away anyway.
        fs::set_permissions(&own, fs::Permissions::from_mode(0o600))?;
        Ok(door)
    }

    /// From now on whoever asks at the path comes to us.
    ///
    /// # Errors
    /// What the file system says.
    pub(super) fn publish(&mut self) -> io::Result<()> {
        // In one step: there is no moment at which nobody is there.
        fs::rename(own_path(&self.path), &self.path)?;
        self.published = true;
        Ok(())
    }

    /// Hands `sockets` to the first that asks for them and comes up.
    pub(super) async fn hand_over(&self, sockets: &Sockets, lend: &dyn Fn(bool)) {
        loop {
            let mut taker = self.next().await;
            let peer = taker.peer();
            let handed = tokio::select! {
                handed = give(&mut taker, sockets, lend) => handed,
                never = self.turn_away() => match never {},
            };
            match handed {
                Ok(()) => {
                    tracing::info!(process = peer, "handed over");
                    return;
                }
                Err(error) => {
                    lend(false);
                    tracing::warn!(process = peer, %error, "not handed over; serving on");
                }
            }
        }
    }

    /// The next process that asks, if it is this user's.
    async fn next(&self) -> Channel {
        loop {
            let asked = match self.listener.accept().await {
                Ok((stream, _)) => Channel::new(stream),
                Err(error) => {
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    Err(error)
                }
            };
            match asked {
                Ok(channel) => return channel,
                Err(error) => tracing::warn!(%error, "asked for a hand-over"),
            }
        }
    }

    async fn turn_away(&self) -> Infallible {
        loop {
            let other = self.next().await;
            tracing::warn!(
                process = other.peer(),
                "asked for a hand-over during another"
            );
            // There is room for a byte: it is told, or has gone.
            let _ = other.send(Word::Busy).await;
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let path = if self.published {
            self.path.clone()
        } else {
            own_path(&self.path)
        };
        let found = fs::symlink_metadata(&path);
        if found.is_ok_and(|found| (found.dev(), found.ino()) == self.file) {
            // Nothing is lost if it stays: the next process replaces it.
            let _ = fs::remove_file(&path);
        }
    }
}

/// Where a socket is until it is published: beside the path, so that it can be renamed.
fn own_path(path: &Path) -> PathBuf {
    let mut own = path.as_os_str().to_owned();
    own.push(format!(".{}", std::process::id()));
    own.into()
}

/// Hands over to one process: `Ok` if that one serves, and this one is to end.
async fn give(taker: &mut Channel, sockets: &Sockets, lend: &dyn Fn(bool)) -> io::Result<()> {
    let late = |what: &str| io::Error::new(io::ErrorKind::TimedOut, what.to_owned());
    let hello = timeout(SHORT, taker.receive_hello()).await;
    if let Err(error) = hello.unwrap_or_else(|_| Err(late("it does not say what it wants"))) {
        // It may have gone.
        let _ = taker.send(Word::NotUnderstood).await;
        return Err(error);
    }
    tracing::info!(process = taker.peer(), "handing over");
    lend(true);
    let ready = async {
        for socket in &sockets.gateway {
            taker.send_socket(Word::Gateway, socket).await?;
        }
        if let Some(socket) = &sockets.admin {
            taker.send_socket(Word::Admin, socket).await?;
        }
        taker.send(Word::AllSent).await?;
        taker.receive().await
    };
    match timeout(START, ready).await {
        Ok(Ok((Word::Ready, _))) => {}
        Ok(Ok(_)) => {
            let _ = taker.send(Word::NotUnderstood).await;
            let message = "it says what does not belong here";
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
            return Err(io::Error::new(error.kind(), "it ended before it was ready"));
        }
        Ok(Err(error)) => return Err(error),
        Err(_) => {
            // Both could be serving: it stops when it reads this.
            let _ = taker.send(Word::TooLate).await;
            return Err(late("it is not ready yet"));
        }
    }
    taker.send(Word::Going).await?;
    // It ends the connection when the path is its own. If it does not, it is the one all the same.
    let _ = timeout(SHORT, taker.receive()).await;
    Ok(())
}
