//! A process's turn: taken from the one before, passed on to the next.

use std::future::pending;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use tidegate_gateway::{Bound, Shutdown};

use super::Sockets;
use super::door::Door;
use super::taker::{Taken, take};
use crate::exit::CommandError;

/// Without a path, nothing: neither taken nor passed on.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// What the process before has handed over, to be bound.
    pub(crate) handed: Sockets,
    path: Option<PathBuf>,
    taken: Option<Taken>,
    next: Option<(Door, Sockets)>,
}

impl Turn {
    /// Asks the process before, if there is one.
    ///
    /// # Errors
    /// If there is one that does not hand over.
    pub(crate) async fn take(path: Option<&Path>) -> Result<Self, CommandError> {
        let Some(path) = path else {
            return Ok(Self::default());
        };
        let error =
            |error| CommandError::io(format!("cannot take over at {}", path.display()), error);
        let (handed, taken) = take(path).await.map_err(error)?.unzip();
        Ok(Self {
            handed: handed.unwrap_or_default(),
            path: Some(path.to_owned()),
            taken,
            next: None,
        })
    }

    /// Opens a door for the process after, which nobody sees yet. Sockets that were handed over and
    /// are not in use are closed. Within the runtime.
    ///
    /// # Errors
    /// If the path cannot be used, or there are no more file descriptors.
    pub(crate) fn keep_for_next(
        &mut self,
        gateway: Option<&Bound>,
        admin: Option<&TcpListener>,
    ) -> Result<(), CommandError> {
        self.handed = Sockets::default();
        let Some(path) = &self.path else {
            return Ok(());
        };
        let keep = || {
            let sockets = Sockets {
                gateway: gateway.map(Bound::sockets).transpose()?.unwrap_or_default(),
                admin: admin.map(TcpListener::try_clone).transpose()?,
            };
            Ok((Door::prepare(path)?, sockets))
        };
        let error =
            |error| CommandError::io(format!("cannot hand over at {}", path.display()), error);
        self.next = Some(keep().map_err(error)?);
        Ok(())
    }

    /// Takes over once `accepting` has ended, and ends when the process after has taken over.
    /// Then, and when it is dropped, nothing of it keeps a socket open.
    ///
    /// `lend(true)` is called before the sockets are handed to a process that asks for them, and
    /// `lend(false)` if it does not come up.
    ///
    /// # Errors
    /// If the process before goes on serving, or the file system is at fault: this process is to
    /// stop.
    pub(crate) async fn pass_on(
        self,
        accepting: Option<impl Future<Output = ()>>,
        lend: &dyn Fn(bool),
    ) -> io::Result<Shutdown> {
        if let Some(accepting) = accepting {
            accepting.await;
        }
        let Some((mut door, sockets)) = self.next else {
            return pending().await;
        };
        if let Some(taken) = self.taken {
            taken.ready().await?;
            tracing::info!(process = taken.from(), "taken over");
            // The other side waits until the path is ours: it ends with this block.
            door.publish()?;
        } else {
            door.publish()?;
        }
        tracing::info!(path = ?self.path.unwrap_or_default(), "ready to hand over");
        door.hand_over(&sockets, lend).await;
        Ok(Shutdown::HandOver)
    }
}
