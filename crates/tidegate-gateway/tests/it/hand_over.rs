//! One gateway's sockets in another's hands.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use tidegate::{Clock, SystemClock, Timestamp};
use tidegate_gateway::{Gateway, Shutdown, TokioTimer};
use tidegate_node::Node;
use tidegate_policy::Policy;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::gateway::{Running, policy};
use crate::upstream::{OK, Upstream};
use crate::wire::{Wire, soon};

/// A gateway that can be handed over.
struct Turn {
    address: SocketAddr,
    sockets: Vec<TcpListener>,
    stop: oneshot::Sender<Shutdown>,
    ended: JoinHandle<io::Result<()>>,
}

impl Turn {
    async fn start(policy: &Policy, cores: usize, handed: Vec<TcpListener>) -> Self {
        let config = policy.gateway.clone().unwrap();
        let clock = Arc::new(SystemClock::new());
        let node = Node::new(policy.clone(), clock.clone()).unwrap();
        let timer = Arc::new(TokioTimer::new(clock));
        let cores = NonZeroUsize::new(cores).unwrap();
        let bound = Gateway::take_over(&config, node, timer, cores, handed).unwrap();
        let address = bound.local_addrs()[0];
        let sockets = bound.sockets().unwrap();
        let accepting = bound.accepting();
        let (stop, stopped) = oneshot::channel();
        let shutdown = async { stopped.await.unwrap_or(Shutdown::Stop) };
        let ended = tokio::spawn(bound.run_until(shutdown));
        soon(accepting).await;
        Self {
            address,
            sockets,
            stop,
            ended,
        }
    }

    async fn connect(&self) -> Wire {
        Wire::connect(self.address).await
    }

    /// Its sockets, for another one; it is told so.
    fn hand_over(self) -> (Vec<TcpListener>, JoinHandle<io::Result<()>>) {
        self.stop.send(Shutdown::HandOver).unwrap();
        (self.sockets, self.ended)
    }
}

async fn end(ended: JoinHandle<io::Result<()>>) {
    soon(ended).await.unwrap().unwrap();
}

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// Also with fewer cores than sockets, and more.
#[tokio::test]
async fn connections_that_nobody_has_accepted_are_the_next_gateways() {
    let upstream = Upstream::answering(OK).await;
    let policy = policy(&[upstream.address], "", "");
    let mut turn = Turn::start(&policy, 3, Vec::new()).await;
    let address = turn.address;
    for (cores, sockets) in [(1, 3), (5, 5), (2, 5), (2, 5)] {
        let (handed, ended) = turn.hand_over();
        end(ended).await;
        // Nobody accepts now.
        let mut clients = Vec::new();
        for _ in 0..40 {
            let mut client = Wire::connect(address).await;
            client.send(GET).await;
            clients.push(client);
        }
        turn = Turn::start(&policy, cores, handed).await;
        assert_eq!((turn.address, turn.sockets.len()), (address, sockets));
        for client in &mut clients {
            assert_eq!(client.message().await.status(), 200);
        }
    }
}

#[tokio::test]
async fn a_kept_connection_ends_with_the_next_answer_and_not_before() {
    let (upstream, mut held) = Upstream::held("", OK).await;
    let policy = policy(&[upstream.address], "", "");
    let turn = Turn::start(&policy, 1, Vec::new()).await;
    let mut idle = turn.connect().await;
    idle.send(GET).await;
    soon(held.recv()).await.unwrap().send(()).unwrap();
    assert_eq!(idle.message().await.get("connection"), None);
    let mut busy = turn.connect().await;
    busy.send(GET).await;
    let answer = soon(held.recv()).await.unwrap();

    let (sockets, ended) = turn.hand_over();
    let next = Turn::start(&policy, 1, sockets).await;
    answer.send(()).unwrap();
    let last = busy.message().await;
    assert_eq!(
        (last.status(), last.get("connection").unwrap()),
        (200, "close".to_owned())
    );
    assert!(busy.closes_quietly().await);
    // It was there at the hand-over, and has been idle all the time.
    idle.send(GET).await;
    soon(held.recv()).await.unwrap().send(()).unwrap();
    let last = idle.message().await;
    assert_eq!(
        (last.status(), last.get("connection").unwrap()),
        (200, "close".to_owned())
    );
    assert!(idle.closes_quietly().await);
    end(ended).await;
    let mut new = next.connect().await;
    new.send(GET).await;
    soon(held.recv()).await.unwrap().send(()).unwrap();
    assert_eq!(new.message().await.get("connection"), None);
}

#[tokio::test]
async fn who_has_nothing_more_to_ask_is_closed_before_the_end() {
    let upstream = Upstream::answering(OK).await;
    let policy = policy(&[upstream.address], "", "  shutdown_timeout: 3s");
    let turn = Turn::start(&policy, 1, Vec::new()).await;
    let mut kept = turn.connect().await;
    assert_eq!(kept.get("/").await.status(), 200);
    let mut unused = turn.connect().await;
    let start = Instant::now();
    let (_sockets, ended) = turn.hand_over();
    assert!(kept.closes_quietly().await);
    assert!(unused.closes_quietly().await);
    end(ended).await;
    // Half of the time that there is.
    let half = Duration::from_millis(1490)..Duration::from_millis(2900);
    assert!(half.contains(&start.elapsed()), "{:?}", start.elapsed());
}

/// There was no place for them: one had been accepted and waited, the others were in the kernel.
#[tokio::test]
async fn connections_that_wait_for_a_place_are_served_by_either() {
    let upstream = Upstream::answering(OK).await;
    let policy = policy(&[upstream.address], "", "  max_connections: 1");
    let turn = Turn::start(&policy, 1, Vec::new()).await;
    let mut first = turn.connect().await;
    assert_eq!(first.get("/").await.status(), 200);
    let mut clients = Vec::new();
    for _ in 0..5 {
        let mut client = turn.connect().await;
        client
            .send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            .await;
        clients.push(client);
    }
    let (sockets, ended) = turn.hand_over();
    let _next = Turn::start(&policy, 1, sockets).await;
    assert_eq!(first.get("/").await.get("connection").unwrap(), "close");
    for client in &mut clients {
        assert_eq!(client.message().await.status(), 200);
    }
    end(ended).await;
}

/// A clock that keeps whoever asks it waiting, and so a core.
#[derive(Debug)]
struct Obstacle {
    clock: SystemClock,
    /// How many more are let through.
    passes: Mutex<usize>,
    opened: Condvar,
    asked: AtomicUsize,
}

impl Obstacle {
    fn let_through(&self, passes: usize) {
        *self.passes.lock().unwrap() = passes;
        self.opened.notify_all();
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// Waits until somebody stands before it who has not yet.
    async fn is_met(&self, before: usize) {
        soon(async {
            while self.asked() == before {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

impl Clock for Obstacle {
    fn now(&self) -> Timestamp {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let passes = self.passes.lock().unwrap();
        let mut passes = self
            .opened
            .wait_while(passes, |passes| *passes == 0)
            .unwrap();
        *passes -= 1;
        self.clock.now()
    }

    fn sleep(&self, duration: Duration) {
        self.clock.sleep(duration);
    }
}

/// What stops and is taken over by nobody closes idle connections, but none that has asked: here
/// after the stop was seen, and before each connection was looked at.
#[tokio::test]
async fn a_kept_connection_that_has_asked_is_answered_whatever_stops() {
    let upstream = Upstream::answering(OK).await;
    let policy = policy(&[upstream.address], "", "");
    let clock = Arc::new(Obstacle {
        clock: SystemClock::new(),
        passes: Mutex::new(usize::MAX),
        opened: Condvar::new(),
        asked: AtomicUsize::new(0),
    });
    let timer = Arc::new(TokioTimer::new(clock.clone()));
    let mut gateway = Running::with_clock(policy, clock.clone(), timer);
    let mut clients = Vec::new();
    for _ in 0..10 {
        let mut client = gateway.connect().await;
        assert_eq!(client.get("/").await.status(), 200);
        clients.push(client);
    }
    clock.let_through(0);
    // The first holds the core up, so that it finds the stop and the second at once.
    let before = clock.asked();
    clients[0].send(GET).await;
    clock.is_met(before).await;
    clients[1].send(GET).await;
    gateway.stop();
    for _ in 0..10 {
        // The stop goes its way on this thread.
        tokio::task::yield_now().await;
    }
    let before = clock.asked();
    clock.let_through(1);
    // The second holds it up again: the stop has been seen, the others have not been looked at.
    clock.is_met(before).await;
    for client in &mut clients[2..] {
        client.send(GET).await;
    }
    clock.let_through(usize::MAX);
    for client in &mut clients {
        assert_eq!(client.message().await.status(), 200);
    }
    gateway.ended().await;
}
