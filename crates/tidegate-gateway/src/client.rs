//! One client connection: its task, its deadlines, its end.

mod inbound;
mod io;

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

use http::header::EXPECT;
use http::{HeaderValue, Request, Version};
use hyper::service::service_fn;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use self::inbound::Found;
use self::io::ClientIo;
use crate::access_log::{Record, Recorder};
use crate::core::Core;
use crate::exchange;
use crate::fault::Fault;
use crate::request_id::RequestId;
use crate::settings::Settings;
use crate::watch::{Phase, Watch};

/// What the parts of one client connection share.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) core: Rc<Core>,
    pub(crate) peer: IpAddr,
    /// The peer's address as `X-Forwarded-For` has it.
    pub(crate) peer_text: HeaderValue,
    pub(crate) watch: Watch,
    /// What is noted of the request that is under way.
    pub(crate) log: Recorder,
    /// The id of the request that is under way.
    pub(crate) id: RequestId,
    /// Whether a request's body was left unread, so that closing at once could destroy the
    /// answer on its way.
    pub(crate) linger: Cell<bool>,
    /// Whether the client has announced a body, and waits to be asked for it.
    pub(crate) awaits_100: Cell<bool>,
    /// Whether the socket has taken all that hyper had for it, since it was last set.
    pub(crate) is_flushed: Cell<bool>,
    /// Whether the request being answered is of HTTP/1.0, to which the end of a connection may be
    /// the end of a body.
    is_http_1_0: Cell<bool>,
    /// Requests that were answered, or are being answered.
    requests: Cell<u64>,
    /// Requests of which hyper has been given the head.
    requests_begun: Cell<u64>,
    /// Whether a part of a head has come, and not the whole.
    is_within_head: Cell<bool>,
    /// Whether all that has come are whole messages.
    is_between_messages: Cell<bool>,
    /// What was wrong with what the client sent.
    fault: Cell<Option<Found>>,
    /// Whether somebody waits for the client's bytes, who would see that it has gone.
    is_reading: Cell<bool>,
}

/// How a connection ended.
enum End {
    /// As HTTP has it.
    Closed,
    /// Not at all: nothing has come for a while.
    Rests,
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
        let timeouts = core.timeouts();
        let watch = Watch::new(Instant::now(), timeouts.header, timeouts.max_connection_age);
        let log = Recorder::new(Rc::clone(&core.lines), peer);
        Self {
            core,
            peer,
            peer_text,
            watch,
            log,
            id: RequestId::default(),
            linger: Cell::new(false),
            awaits_100: Cell::new(false),
            is_flushed: Cell::new(true),
            is_http_1_0: Cell::new(false),
            requests: Cell::new(0),
            requests_begun: Cell::new(0),
            is_within_head: Cell::new(false),
            is_between_messages: Cell::new(true),
            fault: Cell::new(None),
            is_reading: Cell::new(false),
        }
    }

    /// A request begins.
    ///
    /// # Errors
    /// What was wrong with its head; `request` stands for it then.
    pub(crate) fn begin<B>(&self, request: &Request<B>) -> Result<(), Fault> {
        self.watch.begin(&self.core.timeouts().response_rate);
        self.linger.set(false);
        self.awaits_100.set(request.headers().contains_key(EXPECT));
        self.is_http_1_0.set(request.version() == Version::HTTP_10);
        self.requests.set(self.requests.get() + 1);
        match self.fault.get() {
            Some(Found::InHead { request, fault }) if request == self.requests.get() => {
                // What follows is left unread.
                self.linger.set(true);
                Err(fault)
            }
            _ => Ok(()),
        }
    }

    /// What was wrong with the body of the last request, if that was found.
    pub(crate) fn body_fault(&self) -> Option<Fault> {
        match self.fault.get() {
            Some(Found::InBody(fault)) => Some(fault),
            Some(Found::InHead { .. }) | None => None,
        }
    }

    /// Whether the answer to this request is the connection's last.
    pub(crate) fn is_last_answer(&self) -> bool {
        let is_last = self.core.is_stopping()
            || self.watch.is_old()
            || self.requests.get() >= self.core.timeouts().max_requests_per_connection;
        if is_last && (self.is_within_head.get() || self.requests_begun.get() > self.requests.get())
        {
            // Requests that have come and are not answered.
            self.linger.set(true);
        }
        is_last
    }

    /// The answer has been handed over: the next request may come, or go on.
    pub(crate) fn rest(&self) {
        let timeouts = self.core.timeouts();
        self.watch.rest(timeouts.idle);
        if self.is_within_head.get() {
            self.watch.expect(Phase::Header, timeouts.header);
        }
    }
}

impl Client {
    /// A request has come: it has an id from now on, and is noted.
    pub(crate) fn note<B>(&self, request: &Request<B>, settings: &Rc<Settings>) {
        let trusted = || settings.trusted.contains(self.peer);
        let name = settings.request_id.as_ref();
        self.id
            .begin(name, request.headers(), trusted, &self.core.ids);
        self.log.begin(request, settings, self.watch.now());
        self.log.note(|record| record.id = self.id.value());
    }

    /// Whether hyper has had nothing in hand of this connection for a while: then it does without,
    /// since hyper's buffers take 20 KB.
    fn can_rest(&self) -> bool {
        self.watch.is_idle_for(self.core.timeouts().tick)
            && self.is_flushed.get()
            && self.is_between_messages.get()
            && self.requests_begun.get() == self.requests.get()
            && !self.linger.get()
            && !self.core.is_closing()
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
    let (reader, writer) = stream.into_split();
    let writer = Rc::new(writer);
    let mut io = ClientIo::new(reader, Rc::clone(&writer), Rc::clone(&client));
    let stream: &TcpStream = (*writer).as_ref();
    loop {
        let service = service_fn(|request| exchange::answer(Rc::clone(&client), request));
        let mut connection = client.core.http.serve_connection(io, service);
        match drive(&client, &mut connection, stream).await {
            End::Rests => {
                let parts = connection.into_parts();
                // Bytes that hyper has not looked at for so long are not a request's.
                if !parts.read_buf.is_empty() || !rest(&client, stream).await {
                    break;
                }
                io = parts.io;
                continue;
            }
            End::Closed if client.linger.get() => {
                linger(connection.into_parts().io.into_reader()).await;
            }
            End::TimedOut => {
                client.core.counters.connections_timed_out.add(1);
                client.log.note(Record::timed_out);
            }
            // A reset: a plain end would look like that of the answer.
            End::Broken if client.is_http_1_0.get() => {
                let _ = stream.set_zero_linger();
            }
            End::Closed | End::Broken => {}
        }
        break;
    }
    if let Some(writer) = Rc::into_inner(writer) {
        // Closing says all that is to be said.
        OwnedWriteHalf::forget(writer);
    }
}

/// Waits until the client sends something, or the gateway stops; `false` when its time is over.
async fn rest(client: &Client, stream: &TcpStream) -> bool {
    let core = &client.core;
    let time_is_over = async {
        match client.watch.deadline() {
            Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        readable = stream.readable() => readable.is_ok(),
        () = core.close.notified() => true,
        () = time_is_over => {
            if client.watch.phase() == Phase::Header {
                core.counters.connections_timed_out.add(1);
            }
            false
        }
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

/// Polls the connection, and looks after its deadlines, whether its client has gone, and whether
/// the gateway stops.
async fn drive(client: &Client, connection: &mut impl Drive, stream: &TcpStream) -> End {
    let core = &client.core;
    let watch = &client.watch;
    let mut look_at = watch.look_at(core.timeouts().tick);
    let mut alarm = pin!(tokio::time::sleep_until(look_at.into()));
    let mut close = pin!(core.close.notified());
    let mut hung_up = pin!(hung_up(stream));
    // The kernel is asked once more for what has arrived before an idle connection is closed.
    let mut last_look = pin!(tokio::task::yield_now());
    let mut first = true;
    let mut finishing = false;
    poll_fn(|context| {
        let now = Instant::now();
        watch.set_now(now);
        // A timer and a notification remember who waits: they need not be polled each time.
        if first {
            let _ = close.as_mut().poll(context);
        }
        let finish = core.is_closing() && !finishing && last_look.as_mut().poll(context).is_ready();
        let mut idle_too_long = false;
        let mut set_alarm = first;
        if first || now >= look_at {
            match watch.overdue() {
                Some(Phase::Header | Phase::Body) => return Poll::Ready(End::TimedOut),
                Some(Phase::Idle) => idle_too_long = true,
                Some(Phase::Response | Phase::Held) | None => {}
            }
            set_alarm = true;
        }
        first = false;
        client.is_reading.set(false);
        let mut polled = Pin::new(&mut *connection).poll(context);
        // Only now: what has arrived has been read, and makes the connection a busy one.
        idle_too_long &= watch.phase() == Phase::Idle;
        if (finish || idle_too_long) && polled.is_pending() {
            finishing = true;
            connection.finish();
            polled = Pin::new(&mut *connection).poll(context);
        }
        match polled {
            Poll::Ready(Ok(())) => return Poll::Ready(End::Closed),
            Poll::Ready(Err(error)) => {
                tracing::debug!(peer = %client.peer, %error, "a client connection broke off");
                return Poll::Ready(End::Broken);
            }
            // It was not as idle as that: a request's body has not ended, or the last answer
            // has not been read. Either has had its time.
            Poll::Pending if idle_too_long => return Poll::Ready(End::TimedOut),
            Poll::Pending => {}
        }
        // While it has enough to read, hyper does not look at the socket.
        if watch.is_busy() && !client.is_reading.get() && hung_up.as_mut().poll(context).is_ready()
        {
            tracing::debug!(peer = %client.peer, "a client has gone away");
            return Poll::Ready(End::Broken);
        }
        if set_alarm && client.can_rest() {
            return Poll::Ready(End::Rests);
        }
        if watch.has_to_look_sooner() || set_alarm {
            look_at = watch.look_at(core.timeouts().tick);
            alarm.as_mut().reset(look_at.into());
            if alarm.as_mut().poll(context).is_ready() {
                context.waker().wake_by_ref();
            }
        }
        Poll::Pending
    })
    .await
}

/// Waits until the client sends no more, or has gone, whatever of it has not been read: that is
/// what the socket's urgent readiness is told too, and it never is ready for what is there to read.
#[cfg(target_os = "linux")]
async fn hung_up(stream: &TcpStream) {
    // An error would be found by whoever reads or writes.
    while stream
        .ready(tokio::io::Interest::PRIORITY)
        .await
        .is_ok_and(|ready| !ready.is_read_closed())
    {
        tokio::task::yield_now().await;
    }
}

/// Elsewhere it shows when all has been read.
#[cfg(not(target_os = "linux"))]
async fn hung_up(_stream: &TcpStream) {
    std::future::pending().await
}

/// Reads what the client still sends, for a while, before the connection is closed: closing
/// with unread bytes would reset it, and the answer might be lost.
async fn linger(mut reader: OwnedReadHalf) {
    const TIME: Duration = Duration::from_secs(2);
    const MAX_BYTES: usize = 16 * 1024 * 1024;
    let drain = async {
        let mut buffer = vec![0; 8192];
        let mut left = MAX_BYTES;
        while left > 0 {
            match reader.read(&mut buffer).await? {
                0 => break,
                read => left = left.saturating_sub(read),
            }
        }
        std::io::Result::Ok(())
    };
    let _ = tokio::time::timeout(TIME, drain).await;
}
