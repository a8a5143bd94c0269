//! Requests that wait: for a rate, for a place, in line.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tidegate::{Clock, ManualClock, Timestamp};
use tidegate_node::Timer;
use tokio::sync::{mpsc, oneshot};

use crate::gateway::{Running, policy};
use crate::upstream::{OK, Upstream};
use crate::wire::soon;

const PACED: &str = "  paced:\n    rate: 1/s\n    algorithm: smooth_bursty";
const ONE_SLOT_AND_A_LINE: &str = "  slots:\n    concurrency: 1\n    on_limit: \
    { queue: { length: 2, max_wait: 10s } }";
const START: Timestamp = Timestamp::from_secs(1_800_000_000);

/// A timer of a clock that stands still: says what it is asked for, and rings when told.
#[derive(Debug)]
struct ManualTimer(mpsc::UnboundedSender<Asked>);

/// Until when somebody sleeps, and what wakes them.
pub(crate) type Asked = (Timestamp, oneshot::Sender<()>);

impl Timer for ManualTimer {
    fn sleep_until(&self, at: Timestamp) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let (ring, rings) = oneshot::channel();
        self.0.send((at, ring)).unwrap();
        Box::pin(async move {
            let _ = rings.await;
        })
    }
}

/// A gateway under this limit; its clock, which stands still, and what its timer is asked for.
pub(crate) fn limited(
    upstream: &Upstream,
    limit: &str,
) -> (Running, ManualClock, mpsc::UnboundedReceiver<Asked>) {
    let clock = ManualClock::new(START);
    let (send, asked) = mpsc::unbounded_channel();
    let policy = policy(&[upstream.address], limit, "");
    let timer = Arc::new(ManualTimer(send));
    let gateway = Running::with_clock(policy, Arc::new(clock.clone()), timer);
    (gateway, clock, asked)
}

/// A gateway of one request a second, the next of which waits; its clock, which stands still, and
/// what its timer is asked for.
fn paced(upstream: &Upstream) -> (Running, ManualClock, mpsc::UnboundedReceiver<Asked>) {
    limited(upstream, PACED)
}

// shows: B6 (local)
#[tokio::test]
async fn a_delay_is_waited_out_on_the_nodes_time() {
    let mut upstream = Upstream::answering(OK).await;
    let (gateway, clock, mut asked) = paced(&upstream);
    let mut first = gateway.connect().await;
    assert_eq!(first.get("/1").await.status(), 200);
    upstream.seen().await;
    first.send("GET /2 HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let (at, ring) = soon(asked.recv()).await.unwrap();
    assert_eq!(at.since(clock.now()), Duration::from_secs(1));
    assert!(!upstream.has_seen());
    clock.set(at);
    ring.send(()).unwrap();
    assert_eq!(first.message().await.status(), 200);
    // What has been waited for stays paid for.
    first.send("GET /3 HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let (next, ring) = soon(asked.recv()).await.unwrap();
    assert_eq!(next.since(at), Duration::from_secs(1));
    ring.send(()).unwrap();
    assert_eq!(first.message().await.status(), 200);
}

#[tokio::test]
async fn a_client_that_goes_away_while_it_waits_gives_its_permits_back() {
    let upstream = Upstream::answering(OK).await;
    let (gateway, _, mut asked) = paced(&upstream);
    let mut client = gateway.connect().await;
    assert_eq!(client.get("/1").await.status(), 200);
    client.send("GET /2 HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let (first, mut ring) = soon(asked.recv()).await.unwrap();
    drop(client);
    soon(ring.closed()).await;
    let mut client = gateway.connect().await;
    client.send("GET /3 HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let (second, ring) = soon(asked.recv()).await.unwrap();
    assert_eq!(second, first, "the place in the row was given up");
    ring.send(()).unwrap();
    assert_eq!(client.message().await.status(), 200);
}

/// What a client has sent behind the header of a request that waits, and nobody reads meanwhile.
const UNREAD: [&str; 4] = [
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HT",
];

/// hyper does not look at a socket while it has unread bytes of it.
#[tokio::test]
async fn a_client_that_goes_away_behind_unread_bytes_gives_its_permits_back() {
    for unread in UNREAD {
        let upstream = Upstream::answering(OK).await;
        let (gateway, _, mut asked) = paced(&upstream);
        let mut client = gateway.connect().await;
        assert_eq!(client.get("/1").await.status(), 200);
        client.send(unread).await;
        let (first, mut ring) = soon(asked.recv()).await.unwrap();
        drop(client);
        soon(ring.closed()).await;
        let mut client = gateway.connect().await;
        client.send("GET /3 HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let (second, ring) = soon(asked.recv()).await.unwrap();
        assert_eq!(second, first, "the place in the row was given up: {unread}");
        ring.send(()).unwrap();
        assert_eq!(client.message().await.status(), 200);
    }
}

/// More than hyper would read: the kernel has it.
#[tokio::test]
async fn a_client_that_goes_away_behind_a_long_body_leaves_the_line() {
    let (upstream, mut held) = Upstream::held(NOTHING_YET, OK).await;
    let (gateway, _, mut asked) = limited(&upstream, ONE_SLOT_AND_A_LINE);
    let mut inside = gateway.connect().await;
    inside.send(GET).await;
    let finish = soon(held.recv()).await.unwrap();
    let mut goes_away = gateway.connect().await;
    let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n";
    goes_away
        .send(format!("{head}{}", "x".repeat(40_000)))
        .await;
    let (_, mut gone) = soon(asked.recv()).await.unwrap();
    drop(goes_away);
    soon(gone.closed()).await;
    finish.send(()).unwrap();
    assert_eq!(inside.message().await.status(), 200);
}

/// The upstream is told by the end of its connection, whatever of the request it has taken.
#[tokio::test]
async fn a_client_that_goes_away_behind_unread_bytes_ends_what_the_upstream_does_for_it() {
    for unread in UNREAD {
        let (send, mut ends) = mpsc::unbounded_channel();
        let upstream = Upstream::start(move |mut served| {
            let send = send.clone();
            async move {
                served.wire.head().await;
                send.send("begun").unwrap();
                served.wire.rest().await;
                send.send("over").unwrap();
            }
        })
        .await;
        let gateway = Running::before(&[upstream.address], "", "");
        let mut client = gateway.connect().await;
        client.send(unread).await;
        assert_eq!(soon(ends.recv()).await.unwrap(), "begun");
        drop(client);
        assert_eq!(soon(ends.recv()).await.unwrap(), "over", "{unread}");
        gateway
            .counted(|counters| counters.connections_open == 0)
            .await;
    }
}

const NOTHING_YET: &str = "";
const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

// shows: A2 (bounded waiting), A8 (queue)
#[tokio::test]
async fn who_waits_for_a_place_gets_in_in_order_and_a_full_line_refuses() {
    let (upstream, mut held) = Upstream::held(NOTHING_YET, OK).await;
    let (gateway, clock, mut asked) = limited(&upstream, ONE_SLOT_AND_A_LINE);
    let mut inside = gateway.connect().await;
    inside.send(GET).await;
    let mut finish = soon(held.recv()).await.unwrap();
    let (mut clients, mut rings) = (vec![inside], Vec::new());
    for _ in 0..2 {
        let mut client = gateway.connect().await;
        client.send(GET).await;
        let (until, ring) = soon(asked.recv()).await.unwrap();
        assert_eq!(until.since(clock.now()), Duration::from_secs(10));
        clients.push(client);
        rings.push(ring);
    }
    let mut one_more = gateway.connect().await;
    assert_eq!(one_more.get("/").await.status(), 429, "two wait already");
    let last = clients.pop().unwrap();
    for mut client in clients {
        assert!(held.try_recv().is_err(), "one at a time");
        finish.send(()).unwrap();
        assert_eq!(client.message().await.status(), 200);
        finish = soon(held.recv()).await.unwrap();
    }
    finish.send(()).unwrap();
    let mut client = last;
    assert_eq!(client.message().await.status(), 200);
    assert_eq!(gateway.counters().refused, 1);
}

// shows: A2 (bounded waiting), A8 (queue)
#[tokio::test]
async fn who_has_waited_too_long_for_a_place_is_refused_and_who_goes_away_leaves_the_line() {
    let (upstream, mut held) = Upstream::held(NOTHING_YET, OK).await;
    let (gateway, clock, mut asked) = limited(&upstream, ONE_SLOT_AND_A_LINE);
    let mut inside = gateway.connect().await;
    inside.send(GET).await;
    let finish = soon(held.recv()).await.unwrap();
    let mut goes_away = gateway.connect().await;
    goes_away.send(GET).await;
    let (_, mut gone) = soon(asked.recv()).await.unwrap();
    let mut too_long = gateway.connect().await;
    too_long.send(GET).await;
    let (until, ring) = soon(asked.recv()).await.unwrap();
    drop(goes_away);
    soon(gone.closed()).await;
    clock.set(until);
    ring.send(()).unwrap();
    assert_eq!(too_long.message().await.status(), 429);
    // The line is empty: there is room for two again, and the place goes to the first of them.
    let mut waits = gateway.connect().await;
    waits.send(GET).await;
    let _until = soon(asked.recv()).await.unwrap();
    finish.send(()).unwrap();
    assert_eq!(inside.message().await.status(), 200);
    soon(held.recv()).await.unwrap().send(()).unwrap();
    assert_eq!(waits.message().await.status(), 200);
}

// shows: A2 (bounded waiting), B8, D3
#[tokio::test]
async fn a_hundred_callers_on_ten_places_are_all_served_and_never_eleven_inside() {
    const LIMIT: &str = "  slots:\n    concurrency: 10\n    on_limit: \
        { queue: { length: 100, max_wait: 1m } }";
    let (inside, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counted = (Arc::clone(&inside), Arc::clone(&most));
    let upstream = Upstream::start(move |mut served| {
        let (inside, most) = counted.clone();
        async move {
            while served.request().await.is_some() {
                let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                most.fetch_max(now, Ordering::SeqCst);
                for _ in 0..20 {
                    tokio::task::yield_now().await;
                }
                inside.fetch_sub(1, Ordering::SeqCst);
                served.wire.send(OK).await;
            }
        }
    })
    .await;
    let gateway = Running::before(&[upstream.address], LIMIT, "");
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let mut client = gateway.connect().await;
        callers.spawn(async move { client.get("/").await.status() });
    }
    let statuses = soon(callers.join_all()).await;
    assert_eq!(statuses, [200; 100]);
    let most = most.load(Ordering::SeqCst);
    assert!((2..=10).contains(&most), "{most} inside at once");
}

/// A timer that is broken.
#[derive(Debug)]
struct NoTimer;

impl Timer for NoTimer {
    fn sleep_until(&self, at: Timestamp) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        panic!("asked to wait until {at:?}")
    }
}

#[tokio::test]
async fn a_panic_in_one_request_costs_its_connection_and_nothing_else() {
    let upstream = Upstream::answering(OK).await;
    let limits = format!("{PACED}\n    key: [path]");
    let policy = policy(&[upstream.address], &limits, "");
    let clock = Arc::new(ManualClock::new(START));
    let gateway = Running::with_clock(policy, clock, Arc::new(NoTimer));
    let mut other = gateway.connect().await;
    assert_eq!(other.get("/1").await.status(), 200);
    let mut client = gateway.connect().await;
    assert_eq!(client.get("/2").await.status(), 200);
    client.send("GET /2 HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(client.closes_quietly().await);
    assert_eq!(other.get("/3").await.status(), 200);
    assert_eq!(gateway.connect().await.get("/4").await.status(), 200);
    gateway
        .counted(|counters| counters.connections_open == 1)
        .await;
    assert_eq!(gateway.counters().panics, 1);
}
