//! One node of a limit that several processes share: what tests of faults kill, stop and cut off.
//!
//! ```text
//! shared-node REDIS strict|optimistic|exact RATE BURST OFFERED
//! shared-node REDIS node_share|slots|double_window PLACES LEASE_MS SHORT HOLD_MS LONG
//! ```
//!
//! `REDIS` is `single URL`, `cluster URL,URL` or `sentinel NAME,URL,URL`. It prints what happens as
//! it happens, a line each, and ends with its standard input. Times are Unix microseconds, so that
//! what several processes print can be put together.

mod journal;
mod places;
mod rate;

use std::error::Error;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate_redis::{Endpoint, EndpointConfig, LEASE};
use tokio::runtime::{Builder, Handle};

use self::journal::Journal;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// What every kind of node has.
struct Node {
    endpoint: Arc<Endpoint>,
    runtime: Handle,
    journal: Arc<Journal>,
    is_over: Arc<AtomicBool>,
}

impl Node {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Prints what has been noted, and how often Redis was asked for anything so far.
    fn flush(&self) {
        let counts = self.endpoint.health().counts;
        let calls = counts.calls - counts.not_sent + counts.scripts_sent;
        let connects = counts.connects + counts.failed_connects;
        self.journal.flush(calls + connects);
    }
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let [topology, urls, kind, numbers @ ..] = &args[..] else {
        return Err("see the top of this program's source".into());
    };
    let numbers = numbers.iter().map(|number| number.parse());
    let numbers = numbers.collect::<std::result::Result<Vec<u64>, _>>()?;

    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
    let _inside = handle.enter();
    let node = Node {
        endpoint: Arc::new(Endpoint::start(config(topology, urls)?, &[&LEASE])?),
        runtime: handle.clone(),
        journal: Arc::new(Journal::new()),
        is_over: Arc::new(AtomicBool::new(false)),
    };
    let is_over = Arc::clone(&node.is_over);
    std::thread::spawn(move || {
        // Whoever started this has ended, or says nothing more.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        is_over.store(true, Ordering::Relaxed);
    });
    match (*kind, &numbers[..]) {
        ("strict" | "optimistic" | "exact", &[rate, burst, offered]) => {
            rate::run(&node, kind, rate, burst, offered)
        }
        ("node_share" | "slots" | "double_window", &[limit, lease, short, hold, long]) => {
            let held = places::Held { short, hold, long };
            places::run(&node, kind, limit, lease, &held)
        }
        _ => Err("no such kind of node".into()),
    }
}

fn config(topology: &str, urls: &str) -> Result<EndpointConfig> {
    let urls: Vec<&str> = urls.split(',').collect();
    Ok(match (topology, &urls[..]) {
        ("single", [url]) => EndpointConfig::single(url)?,
        ("cluster", urls) => EndpointConfig::cluster(urls)?,
        ("sentinel", [name, urls @ ..]) => EndpointConfig::sentinel(name, urls)?,
        _ => return Err("no such Redis".into()),
    })
}
