//! Handing the listening sockets of a running `tidegate serve` to a new one.
//!
//! Both are given the same path. The running one listens there, on a Unix socket; the new one
//! connects, is sent the sockets (`SCM_RIGHTS`), and says that it is ready once it accepts from
//! them. Only then does the old one stop accepting. The sockets are never closed meanwhile, so
//! that what waits in their queues is not lost; with `SO_REUSEPORT` alone it would be, since each
//! socket has a queue of its own. (`HAProxy` hands its sockets over for the same reason.)
//!
//! ```text
//!   new                              old
//!   HELLO ────────────────────────►        same user? nobody else at it? my version?
//!         ◄──────────────────────── Gateway + socket, ..., Admin + socket, AllSent
//!   (binds the rest, starts)
//!   Ready ────────────────────────►        both accept
//!         ◄──────────────────────── Going
//!   (its own socket takes the path)
//!   end   ────────────────────────►        stops, finishes what is in flight, ends
//! ```
//!
//! Whatever goes wrong before `Ready` is the new one's end, and the old one goes on. After it,
//! the new one serves unless the old one says that it does, too: if the old one is gone, it
//! cannot say so.

mod channel;
mod door;
mod taker;
mod turn;

use std::net::TcpListener;

pub(crate) use self::turn::Turn;

/// What is handed over.
#[derive(Debug, Default)]
pub(crate) struct Sockets {
    pub(crate) gateway: Vec<TcpListener>,
    pub(crate) admin: Option<TcpListener>,
}
