//! One client connection: its task, its deadlines, its end.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use http::HeaderValue;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::service::service_fn;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::core::Core;
use crate::exchange;
use crate::socket::Socket;
use crate::watch::{Phase, Watch};

/// What the parts of one client connection share.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) core: Rc<Core>,
    pub(crate) peer: IpAddr,
    /// The peer's address as `X-Forwarded-For` has it.
    pub(crate) peer_text: HeaderValue,
    pub(crate) watch: Watch,
    /// Whether a request's body was left unread, so that closing at once could destroy the
    /// answer on its way.
    pub(crate) linger: Cell<bool>,
    /// Whether the client has announced a body, and waits to be asked for it.
    pub(crate) awaits_100: Cell<bool>,
}

/// How a connection ended.
enum End {
    /// As HTTP has it.
    Closed,
    /// By a deadline.
    TimedOut,
    /// Broken off, by either side.
    Broken,
}

impl Client {
    fn new(core: Rc<Core>, peer: SocketAddr) -> Self {
        let peer = peer.ip().to_canonical();
        let peer_text =
            HeaderValue::try_from(peer.to_string()).expect("an address is printable ASCII");
        let watch = Watch::new(Instant::now(), core.timeouts().header);
        Self {
            core,
            peer,
            peer_text,
            watch,
            linger: Cell::new(false),
            awaits_100: Cell::new(false),
        }
    }
}

impl Client {
    /// From now on the next piece of a response, or that the client takes what is there.
    pub(crate) fn expect_more(&self) {
        self.watch
            .expect(Phase::Body, self.core.timeouts().response);
    }
}

/// Serves the connection until it ends.
pub(crate) async fn serve(core: Rc<Core>, stream: TcpStream, peer: SocketAddr) {
    // Answers are written as a whole: nothing is gained by waiting for more.
    let _ = stream.set_nodelay(true);
    let client = Rc::new(Client::new(core, peer));
    let io = ClientIo {
        socket: Socket::new(stream),
        client: Rc::clone(&client),
    };
    let service = service_fn(|request| exchange::answer(Rc::clone(&client), request));
    let mut connection = client.core.http.serve_connection(io, service);
    match drive(&client, &mut connection).await {
        End::Closed if client.linger.get() => {
            linger(connection.into_parts().io.socket.into_inner()).await;
        }
        End::TimedOut => client.core.counters.connections_timed_out.add(1),
        End::Closed | End::Broken => {}
    }
}

/// What [`drive`] needs of a hyper connection, whose own type names what cannot be named.
trait Drive: Future<Output = hyper::Result<()>> + Unpin {
    fn finish(&mut self);
}

impl<S> Drive for hyper::server::conn::http1::Connection<ClientIo, S>
where
    S: hyper::service::HttpService<hyper::body::Incoming, ResBody = crate::body::ResponseBody>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    fn finish(&mut self) {
        Pin::new(self).graceful_shutdown();
    }
}

/// Polls the connection, and looks after its deadlines and whether the gateway stops.
async fn drive(client: &Client, connection: &mut impl Drive) -> End {
    let core = &client.core;
    let watch = &client.watch;
    let mut look_at = watch.look_at(core.timeouts().tick);
    let mut alarm = pin!(tokio::time::sleep_until(look_at.into()));
    let mut stop = pin!(core.stop.notified());
    // The kernel is asked once more for what has arrived before an idle connection is closed.
    let mut last_look = pin!(tokio::task::yield_now());
    let mut first = true;
    let mut finishing = false;
    poll_fn(|context| {
        let now = Instant::now();
        watch.set_now(now);
        // A timer and a notification remember who waits: they need not be polled each time.
        if first {
            let _ = stop.as_mut().poll(context);
        }
        if core.is_stopping() && !finishing && last_look.as_mut().poll(context).is_ready() {
            finishing = true;
            connection.finish();
        }
        let mut idle_too_long = false;
        if first || now >= look_at {
            match watch.overdue() {
                Some(Phase::Header | Phase::Body) => return Poll::Ready(End::TimedOut),
                Some(Phase::Idle) => {
                    connection.finish();
                    idle_too_long = true;
                }
                Some(Phase::Response | Phase::Held) | None => {}
            }
            look_at = watch.look_at(core.timeouts().tick);
            alarm.as_mut().reset(look_at.into());
            if alarm.as_mut().poll(context).is_ready() {
                context.waker().wake_by_ref();
            }
        }
        first = false;
        match Pin::new(&mut *connection).poll(context) {
            Poll::Ready(Ok(())) => Poll::Ready(End::Closed),
            Poll::Ready(Err(error)) => {
                tracing::debug!(peer = %client.peer, %error, "a client connection broke off");
                Poll::Ready(End::Broken)
            }
            // It was not as idle as that: a request's body has not ended, or the last answer
            // has not been read. Either has had its time.
            Poll::Pending if idle_too_long => Poll::Ready(End::TimedOut),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Reads what the client still sends, for a while, before the connection is closed: closing
/// with unread bytes would reset it, and the answer might be lost.
async fn linger(mut stream: TcpStream) {
    const TIME: Duration = Duration::from_secs(2);
    const MAX_BYTES: usize = 16 * 1024 * 1024;
    let drain = async {
        stream.shutdown().await?;
        let mut buffer = vec![0; 8192];
        let mut left = MAX_BYTES;
        while left > 0 {
            match stream.read(&mut buffer).await? {
                0 => break,
                read => left = left.saturating_sub(read),
            }
        }
        io::Result::Ok(())
    };
    let _ = tokio::time::timeout(TIME, drain).await;
}

/// The client's socket; notes when a request begins.
struct ClientIo {
    socket: Socket,
    client: Rc<Client>,
}

impl Read for ClientIo {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let read = Pin::new(&mut this.socket).poll_read(context, buffer);
        let client = &this.client;
        if read.is_ready() && client.watch.phase() == Phase::Idle {
            client
                .watch
                .expect(Phase::Header, client.core.timeouts().header);
        }
        read
    }
}

impl Write for ClientIo {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().socket).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().socket).poll_write_vectored(context, buffers)
    }
}
