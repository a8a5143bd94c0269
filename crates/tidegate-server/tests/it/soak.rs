//! Mixed load with clients that break off at random and upstreams that do what they like: in the
//! end nothing is held, nothing waits, and memory is as it was.

mod client;
mod upstream;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use self::client::Client;
use self::upstream::Upstream;
use crate::running::{DEADLINE, Folder, Serve};

const CLIENTS: u64 = 24;

/// Answers by status; and connections that ended before an answer.
#[derive(Debug, Default)]
struct Answers {
    ok: AtomicU64,
    refused: AtomicU64,
    bad_gateway: AtomicU64,
    gateway_timeout: AtomicU64,
    /// Anything else that was answered.
    strange: AtomicU64,
}

impl Answers {
    fn count(&self, status: u16) {
        let counter = match status {
            200 => &self.ok,
            429 => &self.refused,
            502 => &self.bad_gateway,
            504 => &self.gateway_timeout,
            _ => &self.strange,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

fn policy(upstream: &Upstream) -> String {
    format!(
        "limits:\n\
         \x20 slots: {{ concurrency: 4, key: path, \
         on_limit: {{ queue: {{ length: 4, max_wait: 50ms }} }} }}\n\
         \x20 all: {{ concurrency: 20 }}\n\
         \x20 rate: {{ rate: 2000/s, burst: 20, on_limit: {{ queue: {{ length: 50 }} }} }}\n\
         \x20 per-client: {{ rate: 1500/s, burst: 100, key: client_ip, \
         on_limit: {{ tarpit: {{ delay: 5ms, length: 3 }} }} }}\n\
         upstreams: {{ up: {{ servers: \"{}\" }} }}\n\
         gateway:\n  listen: \"127.0.0.1:0\"\n  response_timeout: 500ms\n  header_timeout: 2s\n\
         \x20 routes: [{{ id: all, upstream: up, limits: [slots, all, rate, per-client] }}]\n\
         admin: {{ listen: \"127.0.0.1:0\" }}\n",
        upstream.address
    )
}

/// Resident memory of a process, in bytes.
fn resident(serve: &Serve) -> u64 {
    let statm = std::fs::read_to_string(format!("/proc/{}/statm", serve.id())).unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// Loads a gateway for so long.
fn soak(time: Duration) {
    let upstream = Upstream::start();
    let folder = Folder::new();
    let serve = Serve::start(&folder.write("policy.yaml", &policy(&upstream)));
    let answers = Arc::new(Answers::default());
    let start = Instant::now();
    let clients: Vec<_> = (1..=CLIENTS)
        .map(|seed| {
            let (gateway, answers) = (serve.gateway, Arc::clone(&answers));
            std::thread::spawn(move || {
                let mut client = Client::new(gateway, seed);
                while start.elapsed() < time {
                    client.act(|status| answers.count(status));
                }
            })
        })
        .collect();
    // By then all that is made once has been made.
    while start.elapsed() < time / 4 {
        std::thread::park_timeout(Duration::from_millis(100));
    }
    let early = resident(&serve);
    for client in clients {
        client.join().unwrap();
    }
    let late = resident(&serve);

    let zero = |metric: &str| {
        let deadline = Instant::now() + DEADLINE;
        while serve.metric(metric) != Ok(0.0) {
            assert!(
                Instant::now() < deadline,
                "{metric}: {:?}",
                serve.metric(metric)
            );
            std::thread::park_timeout(Duration::from_millis(20));
        }
    };
    zero("tidegate_connections_open");
    for limit in ["slots", "all"] {
        zero(&format!("tidegate_limit_in_use{{limit=\"{limit}\"}}"));
    }
    for limit in ["slots", "rate"] {
        zero(&format!("tidegate_limit_waiting{{limit=\"{limit}\"}}"));
    }
    assert_eq!(serve.metric("tidegate_panics_total"), Ok(0.0));
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    assert!(count(&answers.ok) > 500, "{answers:?}");
    assert!(count(&answers.refused) > 0, "{answers:?}");
    assert!(count(&answers.bad_gateway) > 0, "{answers:?}");
    assert!(count(&answers.gateway_timeout) > 0, "{answers:?}");
    assert_eq!(count(&answers.strange), 0, "{answers:?}");
    let grown = late.saturating_sub(early);
    assert!(
        grown < 4 << 20,
        "{early} bytes became {late} in {:?}: {answers:?}",
        time * 3 / 4
    );
    assert!(serve.stop(), "it ends well");
}

// shows: A2 (places come back), H1 (memory stays)
#[test]
fn a_soak_of_three_minutes_leaves_nothing_behind() {
    soak(Duration::from_mins(3));
}

#[test]
#[ignore = "takes half an hour"]
fn a_soak_of_half_an_hour_leaves_nothing_behind() {
    soak(Duration::from_mins(30));
}
