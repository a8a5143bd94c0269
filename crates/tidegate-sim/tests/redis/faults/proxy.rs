//! A way to Redis that can be cut, in one direction or both, and made longer.
//!
//! A direction that is cut loses nothing: bytes arrive when it is let go on, as over a network that
//! sends them again. So calls and answers come late, and after others were made.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::super::server::free_address;

/// How often a direction that is cut looks whether it still is.
const LOOK: Duration = Duration::from_millis(1);

/// Both directions of all connections through a proxy.
#[derive(Debug, Default)]
struct Wires {
    to_redis: Wire,
    to_node: Wire,
}

#[derive(Debug, Default)]
struct Wire {
    is_cut: AtomicBool,
    delay_ms: AtomicU64,
}

/// Forwards connections to a server until it is dropped.
#[derive(Debug)]
pub(crate) struct Proxy {
    wires: Arc<Wires>,
    address: SocketAddr,
}

impl Proxy {
    pub(crate) fn start(server: SocketAddr) -> Self {
        let address = free_address();
        let listener = TcpListener::bind(address).unwrap();
        let wires = Arc::new(Wires::default());
        let weak = Arc::downgrade(&wires);
        std::thread::spawn(move || {
            for node in listener.incoming() {
                if weak.strong_count() == 0 {
                    break;
                }
                let (Ok(node), Ok(redis)) = (node, TcpStream::connect(server)) else {
                    continue;
                };
                let (Ok(of_node), Ok(of_redis)) = (node.try_clone(), redis.try_clone()) else {
                    continue;
                };
                forward(of_node, redis, weak.clone(), |wires| &wires.to_redis);
                forward(of_redis, node, weak.clone(), |wires| &wires.to_node);
            }
        });
        Self { wires, address }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}/", self.address)
    }

    pub(crate) fn cut_to_redis(&self, is_cut: bool) {
        self.wires.to_redis.is_cut.store(is_cut, Ordering::Relaxed);
    }

    pub(crate) fn cut_to_node(&self, is_cut: bool) {
        self.wires.to_node.is_cut.store(is_cut, Ordering::Relaxed);
    }

    /// How much later answers arrive.
    pub(crate) fn delay_answers(&self, delay: Duration) {
        let millis = delay.as_millis() as u64;
        self.wires.to_node.delay_ms.store(millis, Ordering::Relaxed);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.wires = Arc::default();
        // One more connection, for the listener to notice.
        let _ = TcpStream::connect(self.address);
    }
}

/// Two threads for each direction of each connection: one reads, and one that writes when it is
/// time, so that what is delayed does not wait for what was delayed before.
fn forward(mut from: TcpStream, to: TcpStream, wires: Weak<Wires>, which: fn(&Wires) -> &Wire) {
    let (pieces, due) = channel();
    let _ = to.set_nodelay(true);
    std::thread::spawn({
        let wires = wires.clone();
        move || write_when_due(to, &due, &wires, which)
    });
    std::thread::spawn(move || {
        let mut buffer = [0; 16_384];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            let Some(wires) = wires.upgrade() else { break };
            let delay = which(&wires).delay_ms.load(Ordering::Relaxed);
            let due = Instant::now() + Duration::from_millis(delay);
            if pieces.send((due, buffer[..read].to_vec())).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Read);
    });
}

fn write_when_due(
    mut to: TcpStream,
    pieces: &Receiver<(Instant, Vec<u8>)>,
    wires: &Weak<Wires>,
    which: fn(&Wires) -> &Wire,
) {
    let is_cut = || {
        let wires = wires.upgrade();
        wires.is_some_and(|wires| which(&wires).is_cut.load(Ordering::Relaxed))
    };
    for (due, piece) in pieces {
        while Instant::now() < due || is_cut() {
            std::thread::park_timeout(LOOK);
        }
        if to.write_all(&piece).is_err() {
            break;
        }
    }
    // The other side hears of the end when all before it has arrived.
    let _ = to.shutdown(Shutdown::Write);
}
