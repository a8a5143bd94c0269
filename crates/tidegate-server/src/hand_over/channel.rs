//! What the two processes say to each other: words of one byte, some with a socket.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;

/// The first thing a new process says. The number changes with the words below.
const HELLO: [u8; 20] = *b"tidegate hand-over 1";

/// One word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// With a listening socket of the gateway.
    Gateway,
    /// With the listening socket of the admin port.
    Admin,
    /// There are no more sockets.
    AllSent,
    /// The new process accepts connections.
    Ready,
    /// The old process ends.
    Going,
    /// The old process goes on: it hands over to somebody else.
    Busy,
    /// The old process goes on: what it was told is not what it understands.
    NotUnderstood,
    /// The old process goes on: the new one took too long.
    TooLate,
}

impl Word {
    const ALL: [(Self, u8); 8] = [
        (Self::Gateway, b'G'),
        (Self::Admin, b'A'),
        (Self::AllSent, b'E'),
        (Self::Ready, b'R'),
        (Self::Going, b'D'),
        (Self::Busy, b'B'),
        (Self::NotUnderstood, b'N'),
        (Self::TooLate, b'L'),
    ];

    fn byte(self) -> u8 {
        let found = Self::ALL.iter().find(|(word, _)| *word == self);
        found.map_or(0, |(_, byte)| *byte)
    }

    fn of(byte: u8) -> io::Result<Self> {
        let found = Self::ALL.iter().find(|(_, its)| *its == byte);
        found
            .map(|(word, _)| *word)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not a word of a hand-over"))
    }
}

/// A connection between the two. Both are the same user's.
#[derive(Debug)]
pub(super) struct Channel {
    stream: UnixStream,
    peer: i32,
}

impl Channel {
    /// # Errors
    /// If the other side is another user's process.
    pub(super) fn new(stream: UnixStream) -> io::Result<Self> {
        let credentials = stream.peer_cred()?;
        let (theirs, ours) = (credentials.uid(), rustix::process::geteuid().as_raw());
        if theirs != ours {
            let message = format!("a process of user {theirs}, and this is one of user {ours}");
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
        }
        let peer = credentials.pid().unwrap_or_default();
        Ok(Self { stream, peer })
    }

    /// The id of the process at the other side.
    pub(super) fn peer(&self) -> i32 {
        self.peer
    }

    pub(super) async fn send_hello(&mut self) -> io::Result<()> {
        self.stream.write_all(&HELLO).await
    }

    pub(super) async fn receive_hello(&mut self) -> io::Result<()> {
        let mut said = [0; HELLO.len()];
        self.stream.read_exact(&mut said).await?;
        if said != HELLO {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "it does not ask for a hand-over that this version knows",
            ));
        }
        Ok(())
    }

    pub(super) async fn send(&self, word: Word) -> io::Result<()> {
        self.send_with(word, &[]).await
    }

    pub(super) async fn send_socket(&self, word: Word, socket: impl AsFd) -> io::Result<()> {
        self.send_with(word, &[socket.as_fd()]).await
    }

    async fn send_with(&self, word: Word, sockets: &[BorrowedFd<'_>]) -> io::Result<()> {
        let byte = [word.byte()];
        let send = || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            if !sockets.is_empty() && !control.push(SendAncillaryMessage::ScmRights(sockets)) {
                return Err(io::Error::other("there is room for one socket"));
            }
            let bytes = [IoSlice::new(&byte)];
            let sent = sendmsg(&self.stream, &bytes, &mut control, SendFlags::empty())?;
            debug_assert_eq!(sent, 1);
            Ok(())
        };
        self.stream.async_io(Interest::WRITABLE, send).await
    }

    /// The next word, and the socket that came with it.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] if the other side has gone.
    pub(super) async fn receive(&self) -> io::Result<(Word, Option<OwnedFd>)> {
        let receive = || {
            let mut byte = [0];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let mut bytes = [IoSliceMut::new(&mut byte)];
            let flags = RecvFlags::empty();
            let received = recvmsg(&self.stream, &mut bytes, &mut control, flags)?;
            let sockets = control.drain().filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(sockets) => Some(sockets),
                _ => None,
            });
            // What more may have come is closed.
            let socket = sockets.flatten().next();
            if received.bytes == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(socket) = &socket {
                fcntl_setfd(socket, FdFlags::CLOEXEC)?;
            }
            Ok((byte[0], socket))
        };
        let (byte, socket) = self.stream.async_io(Interest::READABLE, receive).await?;
        Ok((Word::of(byte)?, socket))
    }
}
