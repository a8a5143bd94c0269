//! One gateway's sockets in another's hands.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate::SystemClock;
use tidegate_gateway::{Gateway, Shutdown, TokioTimer};
use tidegate_node::Node;
use tidegate_policy::Policy;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::gateway::policy;
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
    let policy = policy(&[upstream.address], "", "  shutdown_timeout: 1s");
    let turn = Turn::start(&policy, 1, Vec::new()).await;
    let mut kept = turn.connect().await;
    assert_eq!(kept.get("/").await.status(), 200);
    let mut unused = turn.connect().await;
    let start = Instant::now();
    let (_sockets, ended) = turn.hand_over();
    assert!(kept.closes_quietly().await);
    assert!(unused.closes_quietly().await);
    // Half of the time that there is.
    assert!(
        start.elapsed() >= Duration::from_millis(490),
        "{:?}",
        start.elapsed()
    );
    end(ended).await;
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

/// What stops and is taken over by nobody closes idle connections, but none that has asked.
#[tokio::test]
async fn a_kept_connection_that_has_asked_is_answered_whatever_stops() {
    let upstream = Upstream::answering(OK).await;
    let policy = policy(&[upstream.address], "", "");
    for _ in 0..20 {
        let turn = Turn::start(&policy, 1, Vec::new()).await;
        let mut clients = Vec::new();
        for _ in 0..10 {
            let mut client = turn.connect().await;
            assert_eq!(client.get("/").await.status(), 200);
            clients.push(client);
        }
        for client in &mut clients {
            client.send(GET).await;
        }
        turn.stop.send(Shutdown::Stop).unwrap();
        for client in &mut clients {
            assert_eq!(client.message().await.status(), 200);
        }
        end(turn.ended).await;
    }
}
